"""Test the sums of two and of four products: one instruction for vectors, the same numbers for single elements."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import te
from tvm.ir import IRModule
from tvm.s_tir.schedule import Schedule

from passfit.codegen.objects import build_module
from passfit.targets import get_target, how_to_run
from passfit.tir.operators.pairs import fours, pairs
from passfit.tir.operators.quads import couple, neighbours

TARGET = get_target("x86-64")
pytestmark = [
    pytest.mark.tvm,
    pytest.mark.skipif(not how_to_run(TARGET).native, reason="the host cannot run x86-64-v3"),
]
COUNT = 64


def kernel(lanes):
    one, other = (te.placeholder((COUNT,), "int8", name) for name in ("one", "other"))
    halves = te.placeholder((COUNT,), "int32", "halves")
    start = te.placeholder((COUNT,), "int32", "start")
    result = te.compute((COUNT,), lambda i: start[i] + pairs(couple(one(i), other(i)), halves[i]), "result")
    schedule = Schedule(IRModule({"main": te.create_prim_func([one, other, halves, start, result])}))
    if lanes > 1:
        schedule.vectorize(schedule.split(schedule.get_loops("result")[0], [None, lanes])[1])
    return schedule.mod["main"]


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize(
    "machine",
    [TARGET, get_target("x86-64-v4"), get_target("x86-64-vnni"), None],
    ids=["AVX2", "AVX-512", "VNNI", "neither"],
)
def test_it_adds_up_two_products(lanes, machine):
    if machine is not None and not how_to_run(machine).native:
        pytest.skip(how_to_run(machine).how)
    random = np.random.default_rng(0)
    one, other = (random.integers(-128, 128, COUNT, np.int8) for _ in range(2))
    low, high = (random.integers(-255, 256, COUNT).astype(np.int16) for _ in range(2))
    one[:2], low[:2], high[:2] = -128, [-255, 255], [255, -255]
    halves = (low.astype(np.int32) & 0xFFFF) | (high.astype(np.int32) << 16)
    result = tvm.runtime.tensor(np.zeros(COUNT, "int32"))
    compiled = build_module({"f": kernel(lanes)}, {"kind": "llvm"} if machine is None else machine.llvm_config())
    start = random.integers(-1000, 1000, COUNT, np.int32)
    compiled["f"](*map(tvm.runtime.tensor, (one, other, halves, start)), result)
    expected = start + one.astype(np.int32) * low + other.astype(np.int32) * high
    np.testing.assert_array_equal(result.numpy(), expected)
    if machine is not None and lanes == machine.machine.lanes:
        assert ("vpdpwssd" if "+avx512vnni" in machine.features else "vpmaddwd") in compiled.inspect_source("asm")


def kernel_of_fours(lanes):
    weights, values = te.placeholder((4 * COUNT,), "int8", "weights"), te.placeholder((4 * COUNT,), "uint8", "values")
    start = te.placeholder((COUNT,), "int32", "start")

    def summed(i):
        return fours(start[i], *(neighbours(*(each(4 * i + n) for n in range(4))) for each in (weights, values)))

    result = te.compute((COUNT,), summed, "result")
    schedule = Schedule(IRModule({"main": te.create_prim_func([weights, values, start, result])}))
    if lanes > 1:
        schedule.vectorize(schedule.split(schedule.get_loops("result")[0], [None, lanes])[1])
    return schedule.mod["main"]


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("machine", [TARGET, get_target("x86-64-vnni"), None], ids=["AVX2", "VNNI", "neither"])
def test_it_adds_four_products_to_a_sum(lanes, machine):
    if machine is not None and not how_to_run(machine).native:
        pytest.skip(how_to_run(machine).how)
    random = np.random.default_rng(0)
    weights, values = random.integers(-128, 128, 4 * COUNT, np.int8), random.integers(0, 256, 4 * COUNT, np.uint8)
    weights[:8], values[:8] = [-128] * 4 + [127] * 4, 255  # sums of two products that no int16 holds
    start = random.integers(-1000, 1000, COUNT, np.int32)
    result = tvm.runtime.tensor(np.zeros(COUNT, "int32"))
    compiled = build_module(
        {"f": kernel_of_fours(lanes)}, {"kind": "llvm"} if machine is None else machine.llvm_config()
    )
    compiled["f"](*map(tvm.runtime.tensor, (weights, values, start)), result)
    np.testing.assert_array_equal(result.numpy(), start + (weights.astype(np.int32) * values).reshape(COUNT, 4).sum(1))
    if machine is not None and lanes > 1:
        assert ("vpdpbusd" in compiled.inspect_source("asm")) == ("+avx512vnni" in machine.features)


@pytest.mark.parametrize("features", [("+avxvnni",), ("+avx512vnni", "+avx512vl")])
def test_vectors_of_eight_take_either_feature(features):
    found = replace(TARGET, features=features)
    assert found.machine.dots == ("vpdpbusd",)
    assert "vpdpbusd" in build_module({"f": kernel_of_fours(8)}, found.llvm_config()).inspect_source("asm")
