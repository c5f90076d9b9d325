"""Lanes of vectors move along it, and zeros come in."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import te
from tvm.ir import IRModule
from tvm.s_tir.schedule import Schedule

from passfit.codegen.objects import build_module
from passfit.tir.operators.moved import moved

from ..kernels.programs import HOST

pytestmark = pytest.mark.tvm


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("by", [-5, -1, 0, 2, 3])
def test_zeros_come_in_where_a_vector_has_no_lane(lanes, by):
    given = te.placeholder((lanes,), "float32", "given")
    schedule = Schedule(
        IRModule(
            {
                "main": te.create_prim_func(
                    [given, te.compute((lanes,), lambda i: moved(given[i].asobject(), by), "result")]
                )
            }
        )
    )
    schedule.vectorize(schedule.get_loops("result")[0])
    values, result = np.arange(1, lanes + 1, dtype="float32"), tvm.runtime.tensor(np.zeros(lanes, "float32"))
    build_module({"f": schedule.mod["main"]}, HOST)["f"](tvm.runtime.tensor(values), result)
    expected = [values[lane - by] if 0 <= lane - by < lanes else 0 for lane in range(lanes)]
    np.testing.assert_array_equal(result.numpy(), expected)
