"""Sums of products of bytes in pairs are exact for any weights and values: least and largest ones together too."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import sym, te, tirx
from tvm.ir import IRModule
from tvm.s_tir.schedule import Schedule

from passfit.codegen.objects import build_module
from passfit.kernels.rules.integer.byte_pairs import sum_of_bytes
from passfit.targets import get_target

from ...programs import HOST

pytestmark = pytest.mark.tvm


def kernel(taps, count, zero, dtype):
    weights, values = te.placeholder((taps, count), "int8", "weights"), te.placeholder((taps, count), dtype, "values")

    def each(i):
        return sum_of_bytes([(weights[n, i].asobject(), values[n, i].asobject()) for n in range(taps)], zero)

    schedule = Schedule(
        IRModule({"main": te.create_prim_func([weights, values, te.compute((count,), each, "result")])})
    )
    schedule.vectorize(schedule.split(schedule.get_loops("result")[0], [None, 8])[1])
    return schedule.mod["main"]


@pytest.mark.parametrize("dtype, zero", [("int8", -128), ("int8", 127), ("uint8", 0), ("uint8", 255)])
@pytest.mark.parametrize("taps", [1, 2, 3])
def test_they_are_exact_at_the_ends(taps, dtype, zero):
    limits = np.iinfo(dtype)
    every = np.array(list(product((-128, -1, 127), (limits.min, 3, limits.max), repeat=taps))).T
    every = np.pad(every, ((0, 0), (0, -every.shape[1] % 8)))
    weights, values = every[::2].astype("int8"), every[1::2].astype(dtype)
    result = tvm.runtime.tensor(np.zeros(every.shape[1], "int32"))
    built = build_module({"f": kernel(taps, every.shape[1], zero, dtype)}, HOST)
    built["f"](*(tvm.runtime.tensor(np.ascontiguousarray(each)) for each in (weights, values)), result)
    np.testing.assert_array_equal(result.numpy(), (weights.astype(int) * (values.astype(int) - zero)).sum(0))


@pytest.mark.parametrize("zero", [3, 128, 255])
def test_padding_of_any_zero_point_remains_where_the_rest_is_known_to_be_outside(zero):
    """TVM refuses int8(131), which its simplifier would make of a choice that is known."""
    weight, value = te.placeholder((1,), "int8", "w"), te.placeholder((1,), "uint8", "x")
    outside = tirx.Var("i", "int32") * 0 > 1
    read = tirx.if_then_else(outside, value[0].asobject(), tirx.const(zero, "uint8"))
    total = sum_of_bytes([(weight[0].asobject(), read), (weight[0].asobject(), read)], zero)
    simple = str(sym.Analyzer().simplify(total))
    assert "tensor_load" in simple and "if_then_else" not in simple


@pytest.mark.parametrize(
    "target, names", [("rpi4", ("smull", "smlsl", "saddw")), ("beaglebone", ("vmull.s8", "vmlsl.s8", "vaddw.s16"))]
)
def test_neon_has_an_instruction_for_each_step(target, names):
    text = build_module({"f": kernel(9, 64, 3, "int8")}, get_target(target).llvm_config()).inspect_source("asm")
    assert all(name in text for name in names)
