"""Test libraries of streaming regions: they compute the same, equal kernels are one function, and failures are told."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.codegen.build_library import build_library
from passfit.codegen.functions.merge_kernels import merge_identical_kernels
from passfit.codegen.library import Library
from passfit.kernels.lower.lower import Lowered
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.lower.specialise import specialise_kernels
from passfit.kernels.rewrite.splittable import splits_of
from passfit.kernels.rewrite.stream_region import stream_region
from passfit.memory import plan_arena
from passfit.memory.streaming.region import region
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.program import Loop
from passfit.targets import get_target, how_to_run
from passfit.verify.runner import link

from ..kernels.programs import lowered, random_inputs, run
from ..kernels.rewrite.test_stream_region import MODELS, PASSES

pytestmark = [pytest.mark.tvm, pytest.mark.slow]
HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")


def streamed(program: Lowered, axis: int = 2) -> Lowered:
    """Stream the longest region of a program by rows, and schedule it."""
    last = len(program.program.steps) - 1
    found = (
        region(program.program, splits_of(program), first, end, axis)
        for end in range(last, 0, -1)
        for first in (0, 1)
        if first < end
    )
    return schedule_program(stream_region(program, next(each for each in found if each is not None)))[0]


def built(program: Lowered, folder) -> tuple[Lowered, Library]:
    special = specialise_kernels(program)
    return special, build_library("net", special, plan_arena(special.program), 0, HOST, folder)


@native
@pytest.mark.parametrize(
    "name", ["residual", "squeeze", "pools", "one kernel twice", "odd edges", "enlarged", "convolved pools"]
)
def test_a_library_of_a_region_computes_the_same(tmp_path, name):
    shape, body = MODELS[name]
    before = lowered([shape], body, PASSES.get(name, TVM_DEFAULT))
    inputs = random_inputs(before)
    after, library = built(streamed(before), tmp_path)
    _, (found,) = link(library, after.program, HOST, tmp_path).run([{"x0": inputs[0]}], 20, 1.0)
    (wanted,) = run(before, inputs)
    np.testing.assert_allclose(found["y"], wanted, rtol=1e-5, atol=1e-5 * float(np.abs(wanted).max()))


def test_a_region_is_a_loop_of_guarded_calls_in_c(tmp_path, monkeypatch):
    """Calls compute rows by their number; those of strided steps run every second tick."""
    written = {}
    monkeypatch.setattr(
        "passfit.codegen.library.zig_cc",
        lambda command, target, folder: written.update(c=(folder / "library.c").read_text()) or 1 / 0,
    )
    program = streamed(lowered([MODELS["conv-pool"][0]], MODELS["conv-pool"][1]))
    with pytest.raises(ZeroDivisionError):
        built(program, tmp_path)
    (loop,) = (step for step in program.program.steps if isinstance(step, Loop))
    assert f"t0 < {loop.trips}; t0++)" in written["c"]
    assert re.search(r"if \(t0 >= \d+ && .*\(t0 - \d+\) % 2 == 0\) net_\w+_rows\(\(t0 - \d+\) / 2, ", written["c"])


def alike(x):
    """Build five equal convolutions: all but the first and the last read and write rows in one way."""
    weights = relax.const(np.random.default_rng(0).standard_normal((2, 2, 3, 3)).astype("float32"))
    for _ in range(5):
        x = relax.BlockBuilder.current().emit(relax.op.nn.conv2d(x, weights, padding=1))
    return x


def test_equal_kernels_of_rows_are_one():
    program = streamed(lowered([(1, 2, 12, 8)], alike))
    (loop,) = program.program.steps
    called = [step.kernel for step in merge_identical_kernels(program).program.steps[0].body.steps]
    assert isinstance(loop, Loop) and len(set(called)) < len({step.kernel for step in loop.body.steps})


def taken(x):
    """Build windows over rows of a table that an input chooses."""
    table = relax.const(np.random.default_rng(0).standard_normal((20, 2)).astype("float32"))
    emit = relax.BlockBuilder.current().emit
    y = emit(
        relax.op.permute_dims(
            emit(relax.op.take(table, emit(relax.op.astype(x, "int64")), axis=0, mode="fast")), (0, 2, 1)
        )
    )
    weights = relax.const(np.random.default_rng(1).standard_normal((2, 2, 3)).astype("float32"))
    return emit(relax.op.nn.relu(emit(relax.op.nn.conv1d(y, weights, padding=1))))


@native
@pytest.mark.parametrize("mode", ["fail", "clamp"])
def test_an_index_out_of_range_fails_the_library(tmp_path, mode):
    before = lowered([(1, 16)], taken, ("legalize", "fuse-operators"))
    found = region(before.program, splits_of(before), 0, len(before.program.steps) - 1, 1)
    assert found is not None, "the rows of a table are not streamed"
    after = specialise_kernels(schedule_program(stream_region(before, found))[0])
    library = build_library("net", after, plan_arena(after.program), 0, HOST.with_index_checks(mode), tmp_path)
    loaded = ctypes.CDLL(str(library.shared))
    loaded.net_input.restype = ctypes.c_void_p
    for index, code in ((19.0, 0), (20.0, 4 if mode == "fail" else 0)):
        rows = np.full((1, 16), 3, np.float32)
        rows[0, 7] = index
        ctypes.memmove(loaded.net_input(0), rows.ctypes.data, rows.nbytes)
        assert loaded.net_run() == code
