"""Test predictions end to end: beside the library of the same sequence, and on the whole catalogue."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from passfit import api
from passfit.errors import ConfigError, ModelError
from passfit.fit.predict import SizePredictor
from passfit.fit.predicted_remedies import in_int8
from passfit.fit.verdict import Sizes
from passfit.frontend.imported_model import load
from passfit.memory.footprint import Budget
from passfit.passes.sequence.sequence import Sequence, write_sequence
from passfit.quantise.prepare import write_model
from passfit.targets import Target, get_target
from passfit.targets.catalogue import load_catalogue

from ..models import model_of, save

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
QUICK = api.SearchSettings(seconds=1.0, workers=0)


@pytest.fixture(scope="module")
def cnn(save_tiny_cnn: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_cnn(tmp_path_factory.mktemp("model") / "cnn.onnx")


@pytest.mark.parametrize("name", ["stm32f446", pytest.param("rp2040", marks=pytest.mark.nightly), "esp32-c3", "x86-64"])
def test_the_prediction_is_near_what_is_built(cnn: Path, tmp_path: Path, name: str):
    target = get_target(name)
    report = api.fit(cnn, [target], search=QUICK, exact=True)
    sizes = report.on(name).sizes
    write_sequence(Sequence.parse(report.passes), tmp_path / "sequence.json")
    built = api.compile_model(
        cnn, target, out=tmp_path, sequence=tmp_path / "sequence.json", verify=api.VerifySettings(image=target.bare)
    )
    assert not sizes.near and sizes.arena == built.best.arena and sizes.weights == built.best.weights
    assert sizes.flash == pytest.approx(built.best.flash, rel=0.05)
    if built.measured.ran:
        assert sizes.ram == pytest.approx(built.best.ram if target.bare else built.best.planned_ram, rel=0.05)


def test_all_targets_are_told_smallest_first_and_the_same_twice(cnn: Path):
    targets = list(load_catalogue().values())
    report = api.fit(cnn, targets, search=QUICK)
    assert {each.target for each in report.verdicts} == {each.name for each in targets}
    assert report.smallest == report.verdicts[0].target and report.next is None and report.remedies == ()
    some = targets[::6]
    again, turned = (json.dumps(api.fit(cnn, each, search=QUICK).to_json()) for each in (some, some[::-1]))
    assert json.loads(again) == json.loads(turned)


def test_verdicts_are_told_as_they_come_boards_first_and_one_with_an_operating_system_is_computed(cnn: Path):
    names, told = ("x86-64", "rpi4", "stm32f446", "beaglebone", "esp32-c3"), []
    small = {"x86-64": Budget(ram=64 << 10), "rpi4": Budget(ram=32 << 10)}
    report = api.fit(cnn, [get_target(name) for name in names], small, search=QUICK, found=told.append)
    assert tuple(told) == report.verdicts
    assert [each.target for each in told] == ["stm32f446", "esp32-c3", "rpi4", "x86-64", "beaglebone"]
    assert report.smallest == "rpi4", "smallest by its limits"
    assert [each.target for each in told if each.sizes.near] == ["x86-64", "beaglebone"]
    tight = {"beaglebone": Budget(flash=report.on("beaglebone").sizes.flash)}
    close = api.fit(cnn, [get_target(name) for name in names], small | tight, search=QUICK)
    assert not close.on("beaglebone").sizes.near, "a limit so near is not left to an estimate"


def test_remedies_say_what_makes_the_next_smaller_target_fit(cnn: Path):
    targets = [get_target(name) for name in ("stm32f446", "stm32h743")]
    (small,) = api.fit(cnn, targets[:1], search=QUICK).verdicts
    report = api.fit(cnn, targets, {"stm32f446": Budget(ram=small.sizes.ram // 2)}, search=QUICK)
    assert (report.smallest, report.next) == ("stm32h743", "stm32f446")
    assert report.remedies
    for remedy, told in zip(report.remedies, report.to_json()["remedies"], strict=True):
        assert remedy.ram < small.sizes.ram
        assert told["fits"] == remedy.fits(report.on("stm32f446").limits) and told["options"] == remedy.options


def test_int8_is_predicted_as_it_is_built_and_left_out_where_it_gains_nothing(cnn: Path, tmp_path: Path):
    target = get_target("stm32f446")
    (small,) = api.fit(cnn, [target], search=QUICK).verdicts
    report = api.fit(cnn, [target], {target.name: Budget(flash=small.sizes.flash // 2)}, search=QUICK)
    found, file = in_int8(load(cnn)), tmp_path / "int8.onnx"
    (remedy,) = [each for each in report.remedies if not each.settings]
    assert found is not None
    write_model(found, file)
    assert in_int8(load(file)) is None
    built = api.compile_model(file, target, out=tmp_path / "out", search=replace(QUICK, evaluations=12))
    assert remedy.flash == pytest.approx(built.best.flash, rel=0.1) and built.best.ram <= 1.1 * remedy.ram


def test_a_target_that_a_kernel_cannot_be_compiled_for_holds_nothing(cnn: Path, monkeypatch: pytest.MonkeyPatch):
    targets, sizes = [get_target(name) for name in ("stm32f446", "stm32h743")], SizePredictor.sizes

    def only_large(self: SizePredictor, target: Target) -> Sizes:
        if target is targets[0]:
            raise ModelError("Kernel 'f' needs the symbol 'lgamma'.", "")
        return sizes(self, target)

    monkeypatch.setattr(SizePredictor, "sizes", only_large)
    report = api.fit(cnn, targets, search=replace(QUICK, max_slowdown=None))
    assert (report.smallest, report.next) == ("stm32h743", None)
    assert "lgamma" in report.on("stm32f446").refused and not report.on("stm32f446").fits
    with pytest.raises(ModelError, match="lgamma"):
        api.fit(cnn, targets[:1], search=QUICK, found=pytest.fail)


def test_boards_have_a_time_by_their_clock(cnn: Path):
    names = ("stm32f446", "stm32l4r5", "stm32h743", "rp2040", "rpi4")
    report = api.fit(cnn, [get_target(name) for name in names], search=replace(QUICK, max_slowdown=None))
    times = {name: report.on(name).milliseconds for name in names}
    assert times["rpi4"] is None and times["stm32h743"] < times["stm32f446"] < times["stm32l4r5"] < times["rp2040"]
    assert times["stm32l4r5"] == pytest.approx(times["stm32f446"] * 180 / 120)


def test_without_a_target_there_is_nothing_to_fit(cnn: Path):
    with pytest.raises(ConfigError):
        api.fit(cnn, [])


def test_what_the_quantiser_says_of_its_work_is_not_said_to_users(tmp_path: Path, caplog, capfd):
    scales = {name: np.ones(3, np.float32) for name in "sb"}
    nodes = [helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"])]
    assert in_int8(load(save(model_of(nodes, {"x": [4, 3]}, ["y"], scales), tmp_path))) is not None
    assert caplog.messages == [] and capfd.readouterr().err == ""
