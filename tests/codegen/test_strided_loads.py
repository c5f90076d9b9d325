"""Vectors of small strides are shuffled from vectors of neighbours."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import te
from tvm.ir import IRModule
from tvm.s_tir.schedule import Schedule

from passfit.codegen.objects import build_module
from passfit.targets import get_target

pytestmark = pytest.mark.tvm
COUNT = 32


def kernel(stride, lanes):
    """Return a kernel that takes every `stride`-th of elements up to the last one, one vector at a time."""
    given = te.placeholder((stride * (COUNT - 1) + 1,), "float32", "given")
    result = te.compute((COUNT,), lambda i: given[i * stride] + 1.0, "result")
    schedule = Schedule(IRModule({"main": te.create_prim_func([given, result])}))
    schedule.vectorize(schedule.split(schedule.get_loops("result")[0], [None, lanes])[1])
    return schedule.mod["main"]


def assembly(function, target):
    return build_module({"f": function}, get_target(target).llvm_config()).inspect_source("asm")


@pytest.mark.parametrize("stride", [2, 3, 4, 5])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_each_lane_is_the_element_of_its_place(stride, lanes):
    given = np.arange(stride * (COUNT - 1) + 1, dtype="float32")
    function = build_module({"f": kernel(stride, lanes)}, get_target("x86-64").llvm_config())["f"]
    result = tvm.runtime.tensor(np.zeros(COUNT, "float32"))
    function(tvm.runtime.tensor(given), result)
    np.testing.assert_array_equal(result.numpy(), given[::stride] + np.float32(1))


@pytest.mark.parametrize("stride", [2, 3, 4])
def test_no_element_is_loaded_alone(stride):
    assert "gather" not in assembly(kernel(stride, 16), "x86-64-v4")
    assert "vinsertps" not in assembly(kernel(stride, 8), "x86-64")
