import json

import pytest
from hypothesis import given

from passfit.errors import ConfigError
from passfit.memory import SavedPlan, plan_arena, read_plan, write_plan

from ...strategies import chain, programs
from ..loops import with_loop


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("plan") / "plan.json"


@given(program=programs())
def test_a_plan_survives_its_file(place, program):
    saved = SavedPlan(program, plan_arena(program, 32), 32, macs={"k0": 7})
    write_plan(saved, place)
    first = place.read_bytes()
    assert read_plan(place) == saved
    write_plan(read_plan(place), place)
    assert place.read_bytes() == first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=1), "is of version 1, not 8"),
        (lambda d: d.pop("version"), "is of version None"),
        (lambda d: d.update(alignment=0), "alignment is 0"),
        (lambda d: d.pop("plan"), "plan.json"),
        (lambda d: d["plan"].pop("arena"), "arena is missing"),
        (lambda d: d["plan"].update(offsets=[0, 0, 0]), "was changed: Buffers 'b0'"),
        (lambda d: d.pop("program"), "plan.json"),
        (lambda d: d.update(code=[{"name": "k"}]), "nbytes is missing"),
        (lambda d: d.update(macs={"k": "7"}), "k should be a valid integer"),
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


def test_a_plan_of_the_version_without_banks_and_code_is_read(tmp_path):
    saved = SavedPlan(program := chain(10, 20, 30), plan_arena(program), 64)
    write_plan(saved, place := tmp_path / "plan.json")
    data = json.loads(place.read_text()) | {"version": 6}
    assert data["plan"].pop("banks") == [] == data.pop("code")
    place.write_text(json.dumps(data))
    assert read_plan(place) == saved


def test_the_bodies_of_loops_survive_their_file(place):
    write_plan(with_loop(), place)
    assert read_plan(place) == with_loop()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda outer, inner: outer.update(offsets=[0] * len(outer["offsets"])), "was changed: Buffers"),
        (lambda outer, inner: inner["body"]["steps"].reverse(), "before anything wrote it"),
        (lambda outer, inner: outer.update(trips=0), "it has 0 trips"),
        (lambda outer, inner: inner.update(trips=6), "leaves operand 0"),
        (lambda outer, inner: inner["windows"][0].update(tensor=99), "does not exist"),
        (lambda outer, inner: inner["windows"][0].update(place=9), "does not exist"),
        (lambda outer, inner: inner.update(carries=[[0, 99]]), "carries a tensor that does not exist"),
        (lambda outer, inner: outer.update(offsets=[0]), "1 offsets for"),
    ],
)
def test_a_damaged_plan_of_a_body_is_refused(place, change, message):
    write_plan(with_loop(), place)
    data = json.loads(place.read_text())
    (outer,) = data["program"]["steps"]
    change(outer, next(step for step in outer["body"]["steps"] if "body" in step))
    place.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=message):
        read_plan(place)


@pytest.mark.parametrize("text", ["", "[]", "{", "{}"])
def test_what_is_no_plan_is_refused(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ConfigError, match="plan.json"):
        read_plan(tmp_path / "plan.json")
