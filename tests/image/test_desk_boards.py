"""Verify and measure libraries on devices of a user's own, by the runner in params.yaml."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from passfit import api
from passfit.artifacts.origin import target_digest, verify_record
from passfit.errors import NumericError, ToolchainError
from passfit.targets import get_target, how_to_run
from passfit.verify.cases import choose_cases
from passfit.verify.linked import program as running
from passfit.verify.run import verify_library
from passfit.verify.runner import link
from passfit.verify.settings import VerifySettings

from ..codegen import models
from ..models import model_of
from .serial_device import RUNNER, SerialDevice
from .test_link_image import library

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
EMULATED = get_target("mps2-an386")


def test_a_device_behind_a_serial_line_is_verified_and_measured_like_an_emulated_one(tmp_path, monkeypatch):
    if how_to_run(EMULATED).command is None:
        pytest.skip(how_to_run(EMULATED).how)
    (tmp_path / "device").mkdir()
    device = SerialDevice(tmp_path / "device", how_to_run(EMULATED).command)
    (tmp_path / "run.py").write_text(RUNNER)
    words = ["{python}", "{repo}/run.py", device.line, "{elf}", "{inputs}", "{outputs}", "{report}"]
    (tmp_path / "params.yaml").write_text(f"boards:\n  my-board: {{base: mps2-an386, runner: {json.dumps(words)}}}\n")
    monkeypatch.chdir(tmp_path)
    weights = np.random.default_rng(0).normal(size=(16, 10)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])]
    onnx.save(model_of(nodes, {"x": (4, 16)}, {"y": (4, 10)}, {"w": weights}), "small.onnx")
    found = {}
    for name in ("my-board", "mps2-an386"):
        search = api.SearchSettings("tvm-default", workers=0)
        found[name] = api.compile_model(
            "small.onnx", get_target(name, Path()), out=Path(name), search=search, verify=VerifySettings(image=True)
        )
    desk, emulated = (each.measured for each in found.values())
    assert device.runs == 1 and desk.ran and desk.how == "the runner of my-board" and desk.max_rel_error <= 1e-4
    assert desk.stack == emulated.stack > 0 and found["my-board"].best.ram == found["mps2-an386"].best.ram
    assert desk.cycles > 0 and desk.instructions is None and emulated.cycles is None
    assert Path("my-board/outputs.bin").read_bytes() == Path("mps2-an386/outputs.bin").read_bytes()
    assert json.loads(Path("my-board/golden.json").read_text())["outputs_of"] == "the library (the runner of my-board)"


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """Return a function that links a small library for a device with such a runner."""

    def of(*words: str):
        folder, model = tmp_path_factory.mktemp("desk"), models.matmul_exp()
        target = replace(EMULATED, name="my-board", runner=words)
        (folder / "linked").mkdir()
        return link(library(model, folder, target), model.program, target, folder / "linked"), model.program.inputs[
            0
        ].name

    return of


def python(text: str) -> tuple[str, ...]:
    return ("{python}", "-c", text)


@pytest.mark.parametrize(
    "words, message",
    [
        (
            python("print('no such probe'); print('Error: unplugged'); exit(3)"),
            "ended with exit code 3: no such probe | Error: unplugged.",
        ),
        (python("pass"), "wrote 0 bytes of outputs instead of"),
        (
            python("open('outputs.bin', 'wb').write(b'1'); open('report.bin', 'wb').write(b'12')"),
            "wrote 2 bytes of report instead of 16",
        ),
    ],
)
def test_a_runner_that_fails_is_told_with_its_last_lines_and_what_to_check(linked, words, message):
    program, name = linked(*words)
    with pytest.raises(ToolchainError) as error:
        program.run([{name: np.zeros((4, 6), np.float32)}])
    assert message in str(error.value) and "Check the device and the runner of my-board" in str(error.value)


def test_wrong_numbers_of_a_device_lay_suspicion_on_it_and_its_runner(tmp_path):
    model = models.matmul_exp()
    cases = choose_cases(model.onnx, 0, 1, 1e-4)
    size = sum(model.program.tensors[port.tensor].nbytes for port in model.program.outputs)
    target = replace(EMULATED, name="my-board", runner=python(f"open('outputs.bin', 'wb').write(bytes({size}))"))
    with pytest.raises(NumericError) as error:
        verify_library(library(model, tmp_path, target), model.program, lambda: cases, target, 1e-4)
    assert "differ in" in error.value.what and error.value.hint.startswith(
        "Check the device and the runner of my-board first. Compile without"
    )
    assert str(error.value) == f"{error.value.what} {error.value.hint}"


def test_outputs_of_an_earlier_run_are_not_taken_for_those_of_a_later_one(linked):
    program, name = linked(*python("pass"))
    (program.folder / "outputs.bin").write_bytes(b"1" * 4096)
    with pytest.raises(ToolchainError, match="wrote 0 bytes of outputs"):
        program.run([{name: np.zeros((4, 6), np.float32)}])


def test_a_runner_that_hangs_is_ended_with_all_that_it_started(linked, monkeypatch):
    monkeypatch.setattr(running, "_TIMEOUT_SECONDS", 1.0)
    # a debugger in the background holds the pipe open: its end lets the lines be read
    program, name = linked(
        *python(
            "import subprocess, sys, time; print('waiting', flush=True); subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); time.sleep(600)"
        )
    )
    with pytest.raises(ToolchainError, match=r"did not finish in 1 s: waiting\."):
        program.run([{name: np.zeros((4, 6), np.float32)}])


def test_firmware_without_a_report_has_neither_stack_nor_cycles(linked):
    # the runner's own: it only returns as many bytes as the outputs have
    size = sum(models.matmul_exp().program.tensors[port.tensor].nbytes for port in models.matmul_exp().program.outputs)
    program, name = linked(
        "{python}",
        "-c",
        f"import sys; assert sys.argv[1].endswith('.a'); open(sys.argv[2], 'wb').write(bytes({size}))",
        "{library}",
        "{outputs}",
    )
    report, outputs = program.run([{name: np.zeros((4, 6), np.float32)}])
    assert report == {} and not any(value.any() for value in outputs[0].values())


def test_a_runner_that_is_not_installed_is_a_reason_not_to_run(linked):
    program, _ = linked("no-such-probe", "{elf}")
    assert program.runner.command is None and "not-run: 'no-such-probe' is not installed" in program.runner.how


def test_another_runner_runs_a_library_again_but_searches_no_other_sequence():
    with_runner = replace(EMULATED, runner=(sys.executable,))
    assert target_digest(with_runner) == target_digest(EMULATED)
    records = [verify_record(VerifySettings(), False, each) for each in (EMULATED, with_runner)]
    assert records[0] != records[1] and "runner" not in records[0]
