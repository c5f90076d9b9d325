"""Elements of a row are shuffled from its vectors, and zeros stand outside it."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import te
from tvm.ir import IRModule
from tvm.s_tir.schedule import Schedule

from passfit.codegen.objects import build_module
from passfit.tir.operators.row_element import nearest, row_element

from ..kernels.programs import HOST

pytestmark = pytest.mark.tvm


@pytest.mark.parametrize(
    "width, lanes", [(5, 8), (7, 8), (8, 8), (14, 8), (16, 8), (9, 16), (14, 16), (27, 16), (21, 8)]
)
@pytest.mark.parametrize("stride, before", [(1, 0), (1, 2), (1, -3), (2, 1), (2, 0), (3, 2)])
def test_zeros_stand_outside_a_row(width, lanes, stride, before):
    given = te.placeholder((width,), "float32", "given")

    def element(lane):
        place = lane * stride - before
        return row_element(given[0].asobject(), given[nearest(place, width)].asobject(), place, width)

    schedule = Schedule(IRModule({"main": te.create_prim_func([given, te.compute((lanes,), element, "result")])}))
    schedule.vectorize(schedule.get_loops("result")[0])
    values, result = np.arange(1, width + 1, dtype="float32"), tvm.runtime.tensor(np.full(lanes, 77, "float32"))
    build_module({"f": schedule.mod["main"]}, HOST)["f"](tvm.runtime.tensor(values), result)
    places = [lane * stride - before for lane in range(lanes)]
    np.testing.assert_array_equal(result.numpy(), [values[at] if 0 <= at < width else 0 for at in places])
