"""Test that loops over taps stay loops, so that the sums of a tile stay in registers whatever comes after them."""

import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from tvm import relax
from tvm.tirx import For

from passfit.codegen.objects import build_module
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.targets import get_target
from passfit.tir.rolled_loops import is_rolled

from ..kernels.programs import lowered, random_inputs, run, weight

TARGET = get_target("x86-64")
UNROLLED = replace(TARGET.machine, keep_tap_loops=False)
pytestmark = pytest.mark.tvm
EPILOGUES = {
    "relu": relax.op.nn.relu,
    "leaky": relax.op.nn.leakyrelu,
    "hardswish": lambda x: relax.op.multiply(x, relax.op.clip(relax.op.add(x, relax.const(3.0)), 0, 6)),
}


def convolution(epilogue, machine=TARGET.machine, columns=26, size=3, stride=1):
    """Schedule a convolution of 32 channels and its epilogue; return it unscheduled too."""

    def body(x):
        made = relax.op.nn.conv2d(x, weight(32, 32, size, size), padding=size // 2, strides=stride)
        return EPILOGUES[epilogue](relax.op.add(made, weight(32, 1, 1, seed=2)))

    program = replace(lowered([(1, 32, 5, columns)], body), machine=machine)
    return program, schedule_program(program)[0]


def rolled(program):
    """List the extents of marked loops."""
    found = []
    for kernel in program.kernels.values():
        tvm_ffi.structural_walk(
            kernel.body, [(For, lambda loop: found.append(int(loop.extent)) if is_rolled(loop) else None)]
        )
    return found


def spilled(program):
    """Count the vectors put on the stack between multiply-adds of one basic block."""
    (kernel,) = program.kernels.values()
    text = build_module({"f": kernel}, TARGET.llvm_config()).inspect_source("asm")
    found = 0
    for block in re.split(r"^[.\w]+:", text, flags=re.MULTILINE):
        products = [at.start() for at in re.finditer(r"vfmadd\w+", block)]
        found += (
            len(re.findall(r"vmov\w+\s+%ymm\d+, -?\d*\(%rsp\)", block[products[0] : products[-1]])) if products else 0
        )
    return found


@pytest.mark.parametrize("columns, size, stride", [(26, 3, 1), (28, 3, 2), (30, 5, 1)])
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_sums_stay_in_registers(epilogue, columns, size, stride):
    program, scheduled = convolution(epilogue, columns=columns, size=size, stride=stride)
    assert set(rolled(scheduled)) == {size}
    assert spilled(scheduled) <= 2  # an end tile of five taps spills two; unrolled, up to 16
    assert_computes_the_same(program, scheduled)


def assert_computes_the_same(program, scheduled):
    inputs = random_inputs(program)
    for ours, reference in zip(run(scheduled, inputs), run(program, inputs), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-4, atol=1e-4 * float(np.abs(reference).max()))


@pytest.mark.parametrize("rows, columns, spills", [(10, 2, 8), (8, 4, 0)])
def test_taps_of_one_column_are_rolled_too(rows, columns, spills):
    """Loops of one step around the tile do not count as loops. Tiles whose sums share no scalar spill in regions, with ring buffers."""

    def body(x):
        made = relax.op.nn.conv2d(x, weight(96, 96, 3, 1))
        return relax.op.nn.leakyrelu(relax.op.add(made, weight(96, 1, 1, seed=2)))

    program = replace(lowered([(1, 96, rows, columns)], body), machine=TARGET.machine)
    scheduled = schedule_program(program)[0]
    assert set(rolled(scheduled)) == {3} and spilled(scheduled) <= 2
    assert spilled(unmarked(scheduled)) >= spills
    assert_computes_the_same(program, scheduled)


def unmarked(program):
    """Let LLVM unroll the marked loops."""
    plain = lambda loop: For(loop.loop_var, loop.min, loop.extent, loop.kind, loop.body) if is_rolled(loop) else loop  # noqa: E731
    kernels = {
        name: kernel.with_body(tvm_ffi.structural_map(kernel.body, (For, plain)))
        for name, kernel in program.kernels.items()
    }
    return replace(program, kernels=kernels)


def test_unrolled_taps_spill_sums():
    """Show the reason: remove the rule if LLVM learns to keep them in registers."""
    made = [
        convolution("leaky", UNROLLED)[1],
        convolution("hardswish", UNROLLED, 30, 5)[1],
        convolution("relu", UNROLLED, 28, 3, 2)[1],
    ]
    assert not any(map(rolled, made)) and max(map(spilled, made)) > 0


def test_machines_with_more_registers_unroll():
    for name in ("x86-64-v4", "rpi4", "visionfive2"):
        assert not rolled(convolution("relu", get_target(name).machine)[1])
