import json

import pytest
from hypothesis import given

from passfit.errors import ConfigError
from passfit.program.serial import program_from_json, program_to_json
from passfit.support.text_files import json_lines

from ..strategies import chain, programs


@given(programs())
def test_a_program_survives_json(program):
    text = json_lines(program_to_json(program))
    assert program_from_json(json.loads(text)) == program


@given(programs())
def test_the_same_program_gives_the_same_text(program):
    data = program_to_json(program)
    again = program_to_json(program_from_json(data))
    assert json_lines(again) == json_lines(data)


def test_one_item_has_one_line():
    lines = json_lines(program_to_json(chain(10, 20, 30))).splitlines()
    assert ' {"kernel": "k0", "reads": [0], "writes": [1], "nodes": ["node0"]},' in (line[1:] for line in lines)


def _broken(change) -> dict:
    data = json.loads(json.dumps(program_to_json(chain(10, 20, 30))))
    change(data)
    return data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("steps"), "steps is missing"),
        (lambda d: d["steps"].append(7), "steps.2"),
        (lambda d: d["buffers"][0].update(nbytes="10"), "buffers.0.nbytes"),
        (lambda d: d["buffers"][0].update(nbytes=-1), "has -1 bytes"),
        (lambda d: d["tensors"][1].update(buffer=9), "tensor 1 refers to number 9 of 3"),
        (lambda d: d["tensors"][1].update(weight=0), "tensor 1 must have either"),
        (lambda d: d["tensors"][1].update(dtype="float7"), "unknown dtype 'float7'"),
        (lambda d: d["tensors"][1].update(shape=[99]), "tensor 1 has 99 bytes, more than 'b1'"),
        (lambda d: d["steps"][0].update(reads=[3]), "uses tensor 3"),
        (lambda d: d["steps"][0].update(reads=[2]), "reads 'b2' before anything wrote it"),
        (lambda d: d["outputs"][0].update(tensor=-1), "'y' is tensor -1"),
        (lambda d: d["steps"].pop(), "nothing writes output 'y'"),
    ],
)
def test_a_malformed_program_is_refused_with_the_place(change, message):
    with pytest.raises(ConfigError, match=message):
        program_from_json(_broken(change), "plan.json")


@pytest.mark.parametrize("data", [None, 3, [], "text", {}])
def test_what_is_no_program_is_refused(data):
    with pytest.raises(ConfigError, match="plan.json"):
        program_from_json(data, "plan.json")
