from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from passfit.codegen import write_library
from passfit.errors import ConfigError, NumericError
from passfit.targets import get_target, how_to_run, load_catalogue
from passfit.verify import choose_cases, verify_library

from ..codegen import models

pytestmark = pytest.mark.slow
HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")


def library(model, folder: Path, target=HOST):
    name = model.program.name
    built = models.build_object(model.kernels, name, target, folder / "kernels.o")
    return write_library(name, model.program, model.plan, model.workspace, model.weights, [built], target, folder)


def verify(model, folder: Path, target=HOST, tolerance=1e-4):
    cases = partial(choose_cases, model.onnx, 0, 3, tolerance)
    return verify_library(library(model, folder, target), model.program, cases, target, tolerance)


@pytest.mark.parametrize("make", [models.matmul_exp, models.empty_program, models.comparison, models.whole_numbers])
@pytest.mark.parametrize("name", load_catalogue())
def test_every_target_computes_what_onnx_runtime_does(tmp_path, name, make):
    measured = verify(make(), tmp_path, get_target(name))
    if not measured.ran:
        pytest.skip(measured.how)
    assert measured.max_rel_error <= 1e-4 and measured.latency_ms > 0
    assert (measured.ram is not None) == (measured.how == "native")


@native
def test_measured_memory_is_the_arena_and_the_workspace(tmp_path):
    model = models.matmul_exp(300, 400, 500)
    measured = verify(model, tmp_path)
    predicted = model.plan.arena + model.workspace
    assert abs(measured.ram - predicted) <= max(0.05 * predicted, 128 * 1024)


@native
def test_copied_weights_count_as_memory(tmp_path):
    model = models.matmul_exp(30, 400, 500)
    in_place, copied = (
        verify(model, tmp_path, replace(HOST, weights=weights)).ram for weights in ("in-place", "copied")
    )
    assert abs(copied - in_place - model.program.weight_bytes) <= 64 * 1024


@native
def test_a_wrong_result_is_refused_and_named(tmp_path):
    model = models.matmul_exp()
    for tensor in model.onnx.graph.initializer:
        if tensor.name == "half":
            tensor.CopyFrom(numpy_helper.from_array(np.array(0.51, np.float32), "half"))
    with pytest.raises(NumericError, match=r"of case 0, element \[0, 0\]"):
        verify(model, tmp_path)


@native
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


def test_a_missing_emulator_is_no_failure(tmp_path, monkeypatch):
    monkeypatch.setattr("passfit.targets.emulator.shutil.which", lambda name: None)
    monkeypatch.setattr("passfit.targets.emulator.platform.machine", lambda: "sparc64")
    measured = verify(models.comparison(), tmp_path)
    assert not measured.ran and "qemu-user-static" in measured.how
    assert (measured.ram, measured.latency_ms, measured.max_abs_error) == (None, None, None)


def test_no_cases_are_refused():
    with pytest.raises(ConfigError):
        choose_cases(models.comparison().onnx, 0, 0, 1e-4)
