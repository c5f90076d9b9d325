from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import numpy_helper

from passfit.codegen import write_library
from passfit.errors import ConfigError, NumericError
from passfit.support.children import run
from passfit.targets import Runner, get_target, how_to_run, load_catalogue
from passfit.verify.cases import choose_cases
from passfit.verify.linked import program
from passfit.verify.run import verify_library
from passfit.verify.runner import link

from ..codegen import models

pytestmark = pytest.mark.slow
HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")


#: one target of each core and emulator
CORES = list(
    {
        (each.triple, each.cpu, each.features, each.emulator): name
        for name, each in reversed([*load_catalogue().items()])
    }.values()
)


def library(model, folder: Path, target=HOST):
    name = model.program.name
    built = models.build_object(model.kernels, name, target, folder / "kernels.o")
    return write_library(name, model.program, model.plan, model.workspace, model.weights, [built], target, folder)


def verify(model, folder: Path, target=HOST, tolerance=1e-4):
    cases = partial(choose_cases, model.onnx, 0, 3, tolerance)
    return verify_library(library(model, folder, target), model.program, cases, target, tolerance)


def _ways() -> list:
    """Pair each core with the first model and one of the others by day, and with all of them at night."""
    others = [models.empty_program, models.comparison, models.whole_numbers]
    return [
        pytest.param(name, make, marks=() if make in (models.matmul_exp, others[at % 3]) else pytest.mark.nightly)
        for at, name in enumerate(CORES)
        for make in (models.matmul_exp, *others)
    ]


@pytest.mark.parametrize(("name", "make"), _ways())
def test_every_core_computes_what_onnx_runtime_does(tmp_path, name, make):
    measured = verify(make(), tmp_path, get_target(name))
    if not measured.ran:
        pytest.skip(measured.how)
    assert measured.max_rel_error <= 1e-4 and 0 <= measured.stack < 1 << 20
    # an emulator's memory and time are not the device's
    assert (measured.latency_ms is not None) == (measured.how == "native")
    assert (measured.ram is not None) == (measured.how == "native" or get_target(name).bare)


@native
@pytest.mark.parametrize("make", [partial(models.matmul_exp, 300, 400, 500), models.comparison, models.whole_numbers])
def test_measured_memory_is_the_arena_and_the_workspace(tmp_path, make):
    model = make()
    measured = verify(model, tmp_path)
    predicted = model.plan.arena + model.workspace
    assert abs(measured.ram - predicted) <= 0.02 * predicted + 3 * measured.page  # whole pages


@native
def test_a_slow_library_is_timed_by_its_cases_alone(tmp_path):
    """Sleep 2 ms a run: the cases after the first take longer than the 3 ms of timed runs."""
    model = models.comparison()
    built = library(model, tmp_path)
    name = model.program.name
    slow = f"""
#include <time.h>
static int32_t slow(void) {{
  const struct timespec pause = {{0, 2000000}};
  nanosleep(&pause, NULL);
  return {name}_run();
}}
#undef {name}_run
#define {name}_run slow
"""
    built.header.write_text(built.header.read_text() + slow)
    cases = choose_cases(model.onnx, 0, 3, 1e-4)
    report, _ = link(built, model.program, HOST, tmp_path).run([case.inputs for case in cases], 10, 0.003)
    assert report["runs"] == 2


@native
def test_five_pages_more_than_predicted_are_seen(tmp_path):
    """Run a library of a few hundred bytes that writes to five unplanned pages."""
    model = models.comparison()
    built = library(model, tmp_path)
    name = model.program.name
    hidden = f"""
static unsigned char hidden[5 * 4096];
static int32_t wasteful(void) {{
  for (unsigned i = 0; i < sizeof hidden; ++i) ((volatile unsigned char *)hidden)[i] = 1;
  return {name}_run();
}}
#undef {name}_run
#define {name}_run wasteful
"""
    built.header.write_text(built.header.read_text() + hidden)
    cases = partial(choose_cases, model.onnx, 0, 1, 1e-4)
    measured = verify_library(built, model.program, cases, HOST, 1e-4)
    predicted = model.plan.arena + model.workspace
    assert measured.ram > 1.02 * predicted + 2 * measured.page


@native
def test_the_place_of_the_stack_adds_no_page(tmp_path, monkeypatch):
    """Start the program with its stack at all 256 places: without a warm-up that goes deeper than runs, 1 % gain a page."""
    model = models.comparison()
    linked = link(library(model, tmp_path), model.program, HOST, tmp_path)
    inputs = [case.inputs for case in choose_cases(model.onnx, 0, 1, 1e-4)]
    gains = set()
    for length in range(0, 4096, 16):
        monkeypatch.setenv("LENGTH", "a" * length)
        report, _ = linked.run(inputs)
        gains.add(report["after_kib"] - report["before_kib"])
    assert len(gains) == 1


@native
def test_the_stack_of_a_run_is_measured(tmp_path):
    model = models.comparison()
    built = library(model, tmp_path)
    name, cases = model.program.name, partial(choose_cases, model.onnx, 0, 1, 1e-4)
    before = verify_library(built, model.program, cases, HOST, 1e-4)
    deep = f"""
static __attribute__((noinline)) int32_t deep(void) {{
  volatile unsigned char room[100000];
  for (unsigned i = 0; i < sizeof room; ++i) room[i] = 1;
  return {name}_run();
}}
#undef {name}_run
#define {name}_run deep
"""
    built.header.write_text(built.header.read_text() + deep)
    after = verify_library(built, model.program, cases, HOST, 1e-4)
    assert before.stack < 8_000 and 100_000 <= after.stack <= 108_000  # room for what a machine's signals add
    assert abs(after.ram - before.ram) <= 2 * after.page  # pages of the program's own vary; the frame takes 24


@native
def test_copied_weights_count_as_memory(tmp_path):
    model = models.matmul_exp(30, 400, 500)
    in_place, copied = (
        verify(model, tmp_path, replace(HOST, weights=weights)).ram for weights in ("in-place", "copied")
    )
    assert abs(copied - in_place - model.program.weight_bytes) <= 64 * 1024


@native
@pytest.mark.fault("the library", "one result is wrong", "it is refused with output, place and error")
def test_a_wrong_result_is_refused_and_named(tmp_path):
    model = models.matmul_exp()
    for tensor in model.onnx.graph.initializer:
        if tensor.name == "half":
            tensor.CopyFrom(numpy_helper.from_array(np.array(0.51, np.float32), "half"))
    with pytest.raises(NumericError, match=r"of case 0, element \[0, 0\]"):
        verify(model, tmp_path)


@native
@pytest.mark.fault(
    "an emulator", "it changes a result", "the library is refused with output, place and error; the emulator is the first suspect"
)  # fmt: skip
def test_an_emulator_that_lies_is_suspected(tmp_path, monkeypatch):
    liar = tmp_path / "liar"
    liar.write_text('#!/bin/sh\n"$@" && printf "\\377" | dd of=outputs.bin bs=1 seek=3 conv=notrunc status=none\n')
    liar.chmod(0o755)
    monkeypatch.setattr("passfit.verify.runner.how_to_run", lambda target: Runner([str(liar)], "qemu-liar"))
    monkeypatch.setattr("passfit.verify.run.instructions", lambda *_, **__: None)  # it has no log of them
    with pytest.raises(NumericError, match=r"of case 0, element \[0, 0\].*Check the emulator, qemu-liar, first"):
        verify(models.matmul_exp(), tmp_path)


@native
def test_a_kernel_that_drops_a_channel_is_refused(tmp_path):
    model = models.matmul_exp(30, 40, 20)
    weights = [each.copy() for each in model.weights]
    weights[0][7] = 0
    with pytest.raises(NumericError, match="elements differ") as error:
        verify(replace(model, weights=tuple(weights)), tmp_path)
    assert any(told["library"]["largest"] > 10 * told["allowed"]["largest"] for told in error.value.outputs)


@native
@pytest.mark.fault("the library", "it crashes", "it is refused with the name of the signal")
def test_a_crash_is_reported_with_its_signal(tmp_path):
    model = models.matmul_exp()
    far = replace(model.plan, offsets=(*model.plan.offsets[:-1], 1 << 44))
    with pytest.raises(NumericError, match="SIGSEGV"):
        verify(replace(model, plan=far), tmp_path)


@native
def test_an_error_code_is_reported_with_its_reason(tmp_path):
    model = models.matmul_exp(30, 40, 20)
    with pytest.raises(NumericError, match="the workspace is too small"):
        verify(replace(model, workspace=64), tmp_path)


def test_an_image_whose_library_fails_runs_once(tmp_path, monkeypatch):
    model, runs, board = models.matmul_exp(30, 40, 20), [], get_target("mps2-an386")
    if how_to_run(board).command is None:
        pytest.skip(how_to_run(board).how)
    monkeypatch.setattr(program, "run", lambda command, **options: runs.append(command) or run(command, **options))
    with pytest.raises(NumericError, match="the workspace is too small"):
        verify(replace(model, workspace=64), tmp_path, board)
    assert len(runs) == 1


@pytest.mark.fault("an emulator", "it is not installed", "`measured.how` says so; the library is delivered unmeasured")
def test_a_missing_emulator_is_no_failure(tmp_path, monkeypatch):
    monkeypatch.setattr("passfit.targets.emulator.shutil", SimpleNamespace(which=lambda name: None))
    monkeypatch.setattr("passfit.targets.emulator.platform.machine", lambda: "sparc64")
    measured = verify(models.comparison(), tmp_path)
    assert not measured.ran and "qemu-user-static" in measured.how
    assert (measured.ram, measured.latency_ms, measured.max_abs_error) == (None, None, None)


def test_no_cases_are_refused():
    with pytest.raises(ConfigError):
        choose_cases(models.comparison().onnx, 0, 0, 1e-4)
