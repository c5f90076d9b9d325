import json

import pytest
from hypothesis import given

from passfit.errors import ConfigError
from passfit.memory import SavedPlan, plan_arena, read_plan, write_plan

from ...strategies import chain, programs
from ..bodies import with_loop


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
        (lambda d: d.update(version=1), "is of version 1, not 4"),
        (lambda d: d.pop("version"), "is of version None"),
        (lambda d: d.update(alignment=0), "alignment is 0"),
        (lambda d: d.pop("plan"), "plan.json"),
        (lambda d: d["plan"].pop("arena"), "arena is missing"),
        (lambda d: d["plan"].update(offsets=[0, 0, 0]), "was changed: Buffers 'b0'"),
        (lambda d: d.pop("program"), "plan.json"),
        (lambda d: d["program"]["steps"][0].update(reads=[9]), "uses tensor 9"),
        (lambda d: d.pop("bodies"), "plan.json"),
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


def test_the_bodies_of_loops_survive_their_file(place):
    write_plan(with_loop(), place)
    assert read_plan(place) == with_loop()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda outer, inner: outer["arrays"][0]["plan"].update(offsets=[0, 0, 0, 0]), "was changed: Buffers 'wide'"),
        (lambda outer, inner: inner["arrays"][0]["plan"].update(bound=64), "its bound is 64"),
        (lambda outer, inner: inner["program"]["steps"].reverse(), "before anything wrote it"),
        (lambda outer, inner: outer["program"]["tensors"][0].update(shape=[9999]), "has 9999 bytes"),
        (lambda outer, inner: outer.update(kernel="k9"), "runs no kernel 'k9'"),
        (lambda outer, inner: outer.update(kernel="k0"), "outside its workspace of 0 bytes"),
        (lambda outer, inner: outer.update(trips=0), "has 0 iterations"),
        (lambda outer, inner: inner.update(arrays=[]), r"arrays of \[\]"),
        (lambda outer, inner: outer["arrays"][0].update(offset=192), "not the buffer of"),
        (lambda outer, inner: outer["arrays"][0].update(name="uint8_values_1"), "one name"),
        (lambda outer, inner: inner["arrays"][0].update(name="other"), "shares memory with 'uint8_values'"),
        (lambda outer, inner: (outer["arrays"][0].update(offset=4096), inner["arrays"][0].update(offset=None)), "is not the buffer of"),
    ],
)
def test_a_damaged_plan_of_a_body_is_refused(place, change, message):
    write_plan(with_loop(), place)
    data = json.loads(place.read_text())
    change(*data["bodies"])
    place.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=message):
        read_plan(place)


@pytest.mark.parametrize("text", ["", "[]", "{", "{}"])
def test_what_is_no_plan_is_refused(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ConfigError, match="plan.json"):
        read_plan(tmp_path / "plan.json")
