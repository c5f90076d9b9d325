"""Sums along runs of bytes: NEON's instructions for 16 products, the same numbers on other targets, at the ends too."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import te
from tvm.ir import IRModule
from tvm.s_tir.schedule import Schedule

from passfit.codegen.objects import build_module
from passfit.targets import get_target
from passfit.tir.operators.quads import neighbours
from passfit.tir.operators.runs import runs, totals

pytestmark = pytest.mark.tvm
FILTERS = 8


def kernel():
    """Return the totals of runs: a run of each filter, and one of values."""
    weights, values = te.placeholder((FILTERS * 16,), "int8", "weights"), te.placeholder((16,), "int8", "values")
    start = te.placeholder((4 * FILTERS,), "int32", "start")

    def run(i, lane):
        w = neighbours(*(weights[i * 16 + lane * 4 + n].asobject() for n in range(4)))
        x = neighbours(*(values[lane * 4 + n].asobject() for n in range(4)))
        return runs(start[i * 4 + lane], w, x)

    sums = te.compute((FILTERS, 4), run, "sums")
    flat = te.compute((4 * FILTERS,), lambda i: sums[i // 4, i % 4], "flat")
    total = te.compute((FILTERS,), lambda i: totals(*(flat[i * 4 + n].asobject() for n in range(4))), "total")
    schedule = Schedule(IRModule({"main": te.create_prim_func([weights, values, start, total])}))
    schedule.vectorize(schedule.get_loops("sums")[1])
    schedule.vectorize(schedule.get_loops("total")[0])
    return schedule.mod["main"]


def test_totals_are_of_the_first_half_less_the_second():
    random = np.random.default_rng(0)
    weights = random.integers(-128, 128, (FILTERS, 16), np.int8)
    weights[:3] = -128
    weights[0, 8:] = 127
    start = random.integers(-(2**20), 2**20, (FILTERS, 4), np.int32)
    for values in (np.full(16, -128), np.repeat([-128, 127], 8), random.integers(-128, 128, 16)):
        result = tvm.runtime.tensor(np.zeros(FILTERS, "int32"))
        given = (weights.reshape(-1), values.astype(np.int8), start.reshape(-1))
        build_module({"f": kernel()}, {"kind": "llvm"})["f"](*map(tvm.runtime.tensor, given), result)
        products = weights.astype(np.int32) * values.astype(np.int32)
        np.testing.assert_array_equal(result.numpy(), start.sum(1) + products[:, :8].sum(1) - products[:, 8:].sum(1))


@pytest.mark.parametrize(
    "target, names",
    [
        ("rpi4", ("smull", "smlsl2", "sadalp", "addp")),
        ("beaglebone", ("vmull.s8", "vmlsl.s8", "vpadal.s16", "vpadd.i32")),
    ],
)
def test_neon_has_an_instruction_for_each_step(target, names):
    text = build_module({"f": kernel()}, get_target(target).llvm_config()).inspect_source("asm")
    assert all(name in text for name in names)
