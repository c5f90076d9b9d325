"""Rows of channels are stored in blocks of four or two; the numbers are those of single elements."""

import pytest

pytest.importorskip("tvm")

import numpy as np
import tvm
from tvm import te
from tvm.ir import IRModule
from tvm.s_tir.schedule import Schedule

from passfit.codegen.expand.transposed_stores import transpose_stores
from passfit.codegen.objects import build_module
from passfit.targets import get_target

pytestmark = pytest.mark.tvm
CHANNELS = 32


def kernel(pixels, lanes, operand=False):
    """Return a kernel that turns `pixels` of 32 channels each into planes, one vector of channels after the other."""
    given = te.placeholder((pixels, CHANNELS), "float32", "given")
    other = te.placeholder((CHANNELS, 40), "float32", "other")
    result = te.compute(
        (CHANNELS, pixels), lambda c, x: given[x, c] * 2.0 + (other[c, x] if operand else 1.0), "result"
    )
    schedule = Schedule(IRModule({"main": te.create_prim_func([given, *([other] if operand else []), result])}))
    channel, pixel = schedule.get_loops("result")
    outer, inner = schedule.split(channel, [None, lanes])
    schedule.reorder(outer, pixel, inner)
    schedule.unroll(pixel)
    schedule.vectorize(inner)
    return schedule.mod["main"]


def assembly(function, target):
    return build_module({"f": function}, get_target(target).llvm_config()).inspect_source("asm")


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("pixels", [4, 5, 6, 7, 8, 9, 11, 13])
@pytest.mark.parametrize("operand", [False, True])
def test_each_element_is_stored_where_it_belongs(pixels, lanes, operand):
    generator = np.random.default_rng(pixels)
    given = generator.standard_normal((pixels, CHANNELS)).astype("float32")
    other = generator.standard_normal((CHANNELS, 40)).astype("float32")
    function = build_module({"f": kernel(pixels, lanes, operand)}, get_target("x86-64").llvm_config())["f"]
    result = tvm.runtime.tensor(np.full((CHANNELS, pixels), np.nan, "float32"))
    function(*(tvm.runtime.tensor(each) for each in ([given, other] if operand else [given])), result)
    expected = given.T * np.float32(2) + (other[:, :pixels] if operand else np.float32(1))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("target", "whole", "single"),
    [("x86-64-v4", "vextractf32x4", "vscatter"), ("x86-64", "vextractf128", "vextractps")],
)
def test_four_rows_are_transposed_instead_of_stored_element_by_element(target, whole, single):
    text = assembly(kernel(8, get_target(target).machine.lanes), target)
    assert whole in text and single not in text


@pytest.mark.parametrize("target", ["rpi4", "bpi-f3"])
def test_kernels_of_other_processors_stay_as_they_are(target):
    function = kernel(8, 8).with_attr("target", tvm.target.Target(get_target(target).tvm_config()))
    assert transpose_stores(function).same_as(function)
