"""Kernels far below the roofline are named, most time first; kernels that a schedule rule takes are not."""

import pytest

pytest.importorskip("tvm")

from tvm.script import tirx as T

from passfit.kernels.lower.lower import Lowered
from passfit.memory import Baseline, Footprint, FootprintReport, Measured, Start
from passfit.memory.footprint import SlowKernel
from passfit.program.program import Buffer, Port, Program, Step, Tensor
from passfit.targets import get_target
from passfit.tuning.slow_kernels import slow_kernels

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")


@T.prim_func(private=True, s_tir=True)
def plain(x: T.Buffer((64, 64), "float32"), y: T.Buffer((64, 64), "float32")):
    for i in range(64):
        for j in range(64):
            for k in range(64):
                y[i, j] = y[i, j] + x[k, i] * x[j, k]


@T.prim_func(private=True, s_tir=True)
def tiled(x: T.Buffer((64, 64), "float32"), y: T.Buffer((64, 64), "float32")):
    for i in range(16):
        for j in range(8):
            for k in range(64):
                for ii in T.unroll(4):
                    for v in T.vectorized(8):
                        y[i * 4 + ii, j * 8 + v] = y[i * 4 + ii, j * 8 + v] + x[i * 4 + ii, k] * x[k, j * 8 + v]


def program(*kernels) -> Lowered:
    """Run kernels one after the other, each on the result of the one before."""
    names = [f"k{number}" for number in range(len(kernels))]
    steps = tuple(Step(name, (number,), (number + 1,), nodes=(f"node{number}",)) for number, name in enumerate(names))
    tensors = tuple(Tensor((64, 64), "float32", number) for number in range(len(kernels) + 1))
    buffers = tuple(Buffer(f"b{number}", 4 * 64 * 64) for number in range(len(kernels) + 1))
    made = Program("m", steps, tensors, buffers, (), (Port("x", 0),), (Port("y", len(kernels)),))
    return Lowered(made, dict(zip(names, kernels)), ())


def test_plain_loops_are_named_and_tiles_are_not():
    (slow,) = slow_kernels(program(tiled, plain, tiled), TARGET)
    assert (slow.step, slow.kernel, slow.nodes) == (1, "k1", ("node1",))
    assert slow.roofline < 0.1 and 0.5 < slow.share < 1
    assert slow_kernels(program(tiled, tiled), TARGET) == ()


def test_a_small_part_of_the_time_is_not_named():
    @T.prim_func(private=True, s_tir=True)
    def small(x: T.Buffer((64, 64), "float32"), y: T.Buffer((64, 64), "float32")):
        for k in range(64):
            y[0, 0] = y[0, 0] + x[k, 0] * x[0, k]

    assert slow_kernels(program(tiled, small), TARGET) == ()


def test_the_line_names_the_most_time_first():
    size = Footprint(1, 1, 1, 0, 1, 0, 1, 1, True, 1, 1)
    slow = tuple(SlowKernel(number, f"k{number}", (), 0.3, 0.02) for number in (4, 7, 9))
    report = FootprintReport("m", "x86-64", Start(1, 1), size, Baseline.of(size), Measured(False, "not-run"), slow=slow)
    assert report.slow_summary == (
        "slow kernels, predicted: k04 k4 (30% of the time, 0.020 of the roofline), "
        "k07 k7 (30% of the time, 0.020 of the roofline) and 1 more"
    )
    assert (
        FootprintReport("m", "x86-64", Start(1, 1), size, Baseline.of(size), Measured(False, "not-run")).slow_summary
        == ""
    )
