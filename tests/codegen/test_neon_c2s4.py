"""Test sums of four products: NEON's three instructions for 16 products, the same numbers on other targets."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import te
from tvm.ir import IRModule
from tvm.s_tir.schedule import Schedule

from passfit.codegen.objects import build_module
from passfit.targets import get_target
from passfit.tir.operators.quads import byte, couple, neighbours, quads

pytestmark = pytest.mark.tvm
COUNT = 32


def kernel(lanes):
    """Return sums of quads for COUNT lanes, of one couple of values for all."""
    total = te.placeholder((COUNT,), "int32", "total")
    weights = te.placeholder((2, 2 * COUNT), "int8", "weights")
    values = te.placeholder((4,), "int8", "values")

    def each(i):
        halves = [neighbours(*(weights[half, 2 * i + n].asobject() for n in (0, 1))) for half in (0, 1)]
        x = [couple(*(values[2 * half + n].asobject() for n in (0, 1))) for half in (0, 1)]
        return quads(total[i], (halves[0], halves[1]), (x[0], x[1]))

    schedule = Schedule(
        IRModule({"main": te.create_prim_func([total, weights, values, te.compute((COUNT,), each, "result")])})
    )
    if lanes > 1:
        _, inner = schedule.split(schedule.get_loops("result")[0], [None, lanes])
        schedule.vectorize(inner)
    return schedule.mod["main"]


@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_it_adds_up_four_products(lanes):
    random = np.random.default_rng(0)
    total = random.integers(-(2**30), 2**30, COUNT, np.int32)
    weights = random.integers(-128, 128, (2, 2 * COUNT), np.int8)
    weights[:, :4] = -128
    for values in ([-128, -128, 127, 127], [-128, 127, -128, 127], [3, -5, 7, 100]):
        x, result = np.array(values, np.int8), tvm.runtime.tensor(np.zeros(COUNT, "int32"))
        build_module({"f": kernel(lanes)}, {"kind": "llvm"})["f"](*map(tvm.runtime.tensor, (total, weights, x)), result)
        products = weights.astype(np.int32).reshape(2, COUNT, 2) * x.astype(np.int32).reshape(2, 1, 2)
        np.testing.assert_array_equal(result.numpy(), total + products[0].sum(1) - products[1].sum(1))


@pytest.mark.parametrize(
    "target, names", [("rpi4", ("smull", "smlsl", "sadalp")), ("beaglebone", ("vmull.s8", "vmlsl.s8", "vpadal.s16"))]
)
def test_neon_has_an_instruction_for_each_step(target, names):
    text = build_module({"f": kernel(8)}, get_target(target).llvm_config()).inspect_source("asm")
    assert all(name in text for name in names)


@pytest.mark.parametrize("lanes", [1, 4])
def test_bytes_of_couples_are_the_bytes(lanes):
    source = te.placeholder((4,), "int8", "source")
    pair = [source[n].asobject() for n in range(4)]
    word = te.compute((1,), lambda i: couple(couple(*pair[:2]), couple(*pair[2:])), "word")
    result = te.compute((4,), lambda i: byte(word[0].asobject(), i.astype("int32"), "int8"), "result")
    schedule = Schedule(IRModule({"main": te.create_prim_func([source, result])}))
    if lanes > 1:
        schedule.vectorize(schedule.get_loops("result")[0])
    given, out = np.array([-128, 127, -1, 5], np.int8), tvm.runtime.tensor(np.zeros(4, np.int8))
    build_module({"f": schedule.mod["main"]}, {"kind": "llvm"})["f"](tvm.runtime.tensor(given), out)
    np.testing.assert_array_equal(out.numpy(), given)
