"""Test the comparison of speed: more work costs more, in the unit of the machine."""

from dataclasses import replace
from pathlib import Path

import pytest

import passfit.verify.measure.side_by_side as room
from passfit.targets import get_target, how_to_run
from passfit.verify.inputs import make_input
from passfit.verify.measure.side_by_side import compare_speed
from passfit.verify.runner import Linked, link

from ..codegen import models
from .test_run import library

pytestmark = pytest.mark.slow


def linked(folder: Path, target, *sizes: int) -> tuple[Linked, dict]:
    folder.mkdir()
    model = models.matmul_exp(*sizes)
    made = link(library(model, folder, target), model.program, target, folder)
    return made, make_input(model.onnx, 0, 0)


@pytest.mark.parametrize("name, unit", [("x86-64", "ms"), ("rpi4", "instructions")])
def test_more_work_takes_more(tmp_path, name, unit):
    target = get_target(name)
    if how_to_run(target).command is None:
        pytest.skip(how_to_run(target).how)
    made = (linked(tmp_path / "small", target, 20, 30, 40), linked(tmp_path / "large", target, 40, 60, 80))
    small, large = (compare_speed([each], inputs) for each, inputs in made)
    assert small[0] == large[0] == unit and 0 < small[1][0] < large[1][0]


def test_counts_are_the_same_each_time(tmp_path):
    target = get_target("rpi4")
    if how_to_run(target).command is None:
        pytest.skip(how_to_run(target).how)
    made, inputs = linked(tmp_path / "small", target, 20, 30, 40)
    _, (one, again) = compare_speed([made, made], inputs)
    assert one == again == int(one) and one > 20 * 30 * 40 / 8


def test_what_is_too_much_to_count_or_cannot_run_here_has_no_pace(tmp_path, monkeypatch):
    target = get_target("rpi4")
    if how_to_run(target).command is None:
        pytest.skip(how_to_run(target).how)
    made, inputs = linked(tmp_path / "small", target, 20, 30, 40)
    assert compare_speed([replace(made, runner=replace(made.runner, command=None))], inputs) is None
    monkeypatch.setattr(room, "instructions", lambda *_: None)
    assert compare_speed([made], inputs) is None
