"""Make an image by the command, and judge it by its own files."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper

from passfit import api
from passfit.errors import ConfigError
from passfit.image.image_sizes import image_sizes
from passfit.memory.footprint import Budget
from passfit.targets import get_target, how_to_run

from ..models import model_of

pytestmark = [pytest.mark.slow, pytest.mark.tvm]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Make a network whose kernels call exp, log, floor and a product: x → softmax(floor(log(1 + exp(x))) w)."""
    nodes = [
        helper.make_node("Softplus", ["x"], ["a"]), helper.make_node("Floor", ["a"], ["b"]), helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("MatMul", ["c", "w"], ["d"]), helper.make_node("Softmax", ["d"], ["y"]),
    ]  # fmt: skip
    weights = np.random.default_rng(0).normal(size=(16, 10)).astype(np.float32)
    path = tmp_path_factory.mktemp("model") / "small.onnx"
    onnx.save(model_of(nodes, {"x": (4, 16)}, {"y": (4, 10)}, {"w": weights}), path)
    return path


def compiled(model, target, out, budget=None, sequence=None):
    search = api.SearchSettings("tvm-default", workers=0)
    return api.compile_model(
        model, target, budget, out=out, sequence=sequence, search=search, verify=api.VerifySettings(image=True)
    )


@pytest.mark.parametrize("name", ["mps2-an386", "rv32-virt", "rp2040", "stm32f746"])
def test_the_footprint_is_that_of_the_image_and_its_stack(tmp_path, model, name):
    target = get_target(name)
    report = compiled(model, target, tmp_path)
    best, sizes = report.best, image_sizes(tmp_path / "small.elf")
    assert best.flash == sizes.flash == best.weights + best.code and best.ram == sizes.ram + best.stack
    assert {"small.map", "main.c", "startup.c", "link.ld", "libsmall.a", "small.h"} <= {
        file.name for file in tmp_path.iterdir()
    }
    if not report.measured.ran:
        pytest.skip(how_to_run(target).how)
    assert best.stack == report.measured.stack > 0 and report.measured.instructions > 640
    assert f"#define SMALL_STACK_BYTES {best.stack} " in (tmp_path / "small.h").read_text()
    assert (tmp_path / "outputs.bin").stat().st_size % 160 == 0
    recorded = json.loads((tmp_path / "footprint.json").read_text())["best"]
    assert recorded["stack"] == best.stack and recorded["ram"] == best.ram


def test_the_same_model_gives_the_same_image(tmp_path, model):
    target = get_target("mps2-an386")
    for name in "ab":
        compiled(model, target, tmp_path / name)
    for file in ("small.elf", "small.map", "libsmall.a", "small.h", "footprint.json", "inputs.bin", "outputs.bin"):
        one, two = ((tmp_path / name / file) for name in "ab")
        if file == "footprint.json":
            times = [json.loads(each.read_text()) for each in (one, two)]
            assert [each["measured"].pop("compile_seconds") for each in times]
            assert times[0] == times[1]
        else:
            assert one.exists() == two.exists() and (not one.exists() or one.read_bytes() == two.read_bytes()), file


def test_one_byte_less_than_the_image_needs_does_not_fit(tmp_path, model):
    target = get_target("mps2-an386")
    best = compiled(model, target, tmp_path).best
    exact = Budget(ram=best.ram, flash=best.flash)
    for budget, fits in (
        (exact, True),
        (replace(exact, ram=best.ram - 1), False),
        (replace(exact, flash=best.flash - 1), False),
    ):
        assert compiled(model, target, tmp_path, budget, tmp_path / "sequence.json").fits is fits
    assert not compiled(model, replace(target, ram=best.ram - 1), tmp_path, None, tmp_path / "sequence.json").fits


def test_kernels_of_a_board_are_not_tuned_one_by_one(tmp_path, model):
    if how_to_run(get_target("mps2-an386")).command is None:
        pytest.skip(how_to_run(get_target("mps2-an386")).how)
    with pytest.raises(ConfigError, match="no operating system"):
        api.tune(model, get_target("mps2-an386"), tmp_path / "tuning.json", settings=api.TuneSettings(1.0))


def test_a_target_with_an_operating_system_has_no_image(tmp_path, model, monkeypatch, capsys):
    from passfit.cli.app import main

    monkeypatch.setattr(
        "sys.argv", ["passfit", "image", str(model), "--target", "rpi4", "--out", str(tmp_path / "out")]
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2 and not (tmp_path / "out").exists()
    assert "rpi4 has an operating system" in capsys.readouterr().err
