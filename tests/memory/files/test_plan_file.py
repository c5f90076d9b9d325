import json

import pytest
from hypothesis import given

from passfit.errors import ConfigError
from passfit.memory import SavedPlan, plan_arena, read_plan, write_plan

from ...strategies import chain, programs


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("plan") / "plan.json"


@given(program=programs())
def test_a_plan_survives_its_file(place, program):
    saved = SavedPlan(program, plan_arena(program, 32), 32)
    write_plan(saved, place)
    first = place.read_bytes()
    assert read_plan(place) == saved
    write_plan(read_plan(place), place)
    assert place.read_bytes() == first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=1), "is of version 1, not 3"),
        (lambda d: d.pop("version"), "is of version None"),
        (lambda d: d.update(alignment=0), "alignment is 0"),
        (lambda d: d.pop("plan"), "plan.json"),
        (lambda d: d["plan"].pop("arena"), "arena is missing"),
        (lambda d: d["plan"].update(offsets=[0, 0, 0]), "was changed: Buffers 'b0'"),
        (lambda d: d.pop("program"), "plan.json"),
        (lambda d: d["program"]["steps"][0].update(reads=[9]), "uses tensor 9"),
    ],
)
def test_a_malformed_plan_is_refused(tmp_path, change, message):
    place = tmp_path / "plan.json"
    program = chain(10, 20, 30)
    write_plan(SavedPlan(program, plan_arena(program), 64), place)
    data = json.loads(place.read_text())
    change(data)
    place.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=message):
        read_plan(place)


@pytest.mark.parametrize("text", ["", "[]", "{", "{}"])
def test_what_is_no_plan_is_refused(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ConfigError, match="plan.json"):
        read_plan(tmp_path / "plan.json")
