"""Test `passfit fit`: its refusals, its table, its JSON and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Refused = Callable[..., str]


@pytest.fixture
def cnn(save_tiny_cnn: Callable[..., Path], tmp_path: Path) -> Path:
    return save_tiny_cnn(tmp_path / "cnn.onnx")


def test_bad_input_is_refused(refused: Refused, cnn: Path, tmp_path: Path):
    (tmp_path / "bad.onnx").write_bytes(b"not a model\n")
    assert "bad.onnx" in refused("fit", "bad.onnx")
    assert "missing.onnx" in refused("fit", "missing.onnx")
    assert "stm32f447" in refused("fit", cnn, "--target", "stm32f447")
    assert "ram=much" in refused("fit", cnn, "--budget", "ram=much")
    assert "soon" in refused("fit", cnn, "--max-slowdown", "soon")
    assert "opt" in refused("fit", cnn, "--opt", "small")
    assert "Add --build" in refused("fit", cnn, "--out", tmp_path / "out")
    for option, word, known in (("--core", "m4", "cortex-m4, cortex-m55"), ("--family", "stm", "rv32, stm32")):
        said = refused("fit", cnn, option, word)
        assert f"{option} {word}: none of the targets has it. Known: " in said and known in said
    assert "Known: mps2, nrf, stm32." in refused("fit", cnn, "--core", "cortex-m4", "--family", "esp32")
    (tmp_path / "params.yaml").write_text("targets: 1\n")
    assert "params.yaml" in refused("fit", cnn)


@pytest.mark.slow
@pytest.mark.tvm
def test_the_table_and_the_json_tell_the_same(passfit: Callable, cnn: Path, tmp_path: Path):
    asked = ("fit", cnn, "--target", "stm32f446", "--target", "rp2040")
    shown, told = passfit(*asked), passfit(*asked, "--json")
    assert shown.code == told.code == 0
    found = json.loads(told.out)
    assert [each["target"] for each in found["verdicts"]] == ["stm32f446", "rp2040"] and found["built"] is None
    assert "stm32f446" in shown.out and "predicted" in shown.out
    assert shown.out.splitlines()[-1] == found["answer"] == "stm32f446 is the smallest that fits"


@pytest.mark.slow
@pytest.mark.tvm
def test_cores_and_families_choose_targets(passfit: Callable, cnn: Path):
    told = [
        passfit("fit", cnn, "--json", *options)
        for options in (
            ("--core", "cortex-m0plus"),
            ("--core", "cortex-m7", "--core", "cortex-m33", "--family", "stm32"),
        )
    ]
    targets = [[each["target"] for each in json.loads(done.out)["verdicts"]] for done in told]
    assert targets == [["rp2040"], ["stm32f746", "stm32u585", "stm32h743"]]
    one = passfit("fit", cnn, "--target", "rp2040", "--target", "stm32f446", "--core", "cortex-m4", "--build")
    assert one.code == 0 and "cnn on stm32f446" in one.out


@pytest.mark.slow
@pytest.mark.tvm
def test_a_budget_of_params_yaml_that_is_exceeded_is_exit_code_1(passfit: Callable, cnn: Path, tmp_path: Path):
    (tmp_path / "params.yaml").write_text("targets: {stm32f446: {budget: {ram: 1KiB}}}\n")
    done = passfit("fit", cnn, "--target", "stm32f446")
    assert done.code == 1 and "int8" in done.out and "lacks" in done.out
