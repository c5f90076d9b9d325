"""Requantised vectors take saturating instructions of AArch64 and AVX2; other casts and targets stay as they are.

Their numbers are compared in tests/nodes/test_integer_nodes.py, on emulated targets.
"""

import pytest

pytest.importorskip("tvm")

import numpy as np
import tvm
from tvm import te, tirx
from tvm.ir import IRModule
from tvm.s_tir.schedule import Schedule

from passfit.codegen.expand.narrow_results import expand_narrow_results
from passfit.codegen.llvm_pipelines import PACKED
from passfit.codegen.objects import build_module
from passfit.frontend.relax.integer.requantize import to_integer
from passfit.targets import get_target, how_to_run

pytestmark = pytest.mark.tvm
INSTRUCTIONS = ("fcvtns", "sqxtn", "sqadd")


def kernel(value, zero=-5, dtype="int8", lanes=8, source="int32"):
    """Return a kernel that rounds `value` of each source number to integers."""
    given = te.placeholder((32,), source, "given")
    result = te.compute((32,), lambda i: to_integer(value(given[i].asobject()), zero, dtype), "result")
    schedule = Schedule(IRModule({"main": te.create_prim_func([given, result])}))
    schedule.vectorize(schedule.split(schedule.get_loops("result")[0], [None, lanes])[1])
    return schedule.mod["main"]


def scaled(number):
    return number.astype("float32") * tirx.const(0.003, "float32")


def assembly(function, target="rpi4"):
    return build_module({"f": function}, get_target(target).llvm_config()).inspect_source("asm")


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype, zero, last", [("int8", -5, "sqxtn"), ("int8", -128, "sqxtn"), ("uint8", 3, "sqxtun")])
def test_requantised_sums_saturate_by_instructions(dtype, zero, last, lanes):
    text = assembly(kernel(scaled, zero, dtype, lanes))
    assert all(name in text for name in (*INSTRUCTIONS, last)) and "fmin" not in text


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype, zero", [("int8", -5), ("uint8", 3)])
def test_helium_rounds_and_clamps_integers(dtype, zero, lanes):
    text = assembly(kernel(scaled, zero, dtype, lanes), "mps3-an547")
    assert all(name in text for name in ("vcvtn.s32.f32", "vmax.s32", "vmin.s32")) and "vpsel" not in text


@pytest.mark.parametrize("lanes", [8, 16, 32])
@pytest.mark.parametrize(
    "dtype, zero, last", [("int8", -5, "vpacksswb"), ("int8", -128, "vpacksswb"), ("uint8", 3, "vpackuswb")]
)
def test_avx2_saturates_too(dtype, zero, last, lanes):
    text = assembly(kernel(scaled, zero, dtype, lanes), "x86-64")
    assert all(name in text for name in ("vcvtps2dq", "vpackssdw", "vpaddsw", last)) and "vmaxps" not in text


@pytest.mark.skipif(not how_to_run(get_target("x86-64")).native, reason="the host cannot run x86-64-v3")
@pytest.mark.parametrize(
    "dtype, zero, lanes", [("int8", -128, 8), ("int8", 127, 16), ("int8", 0, 32), ("uint8", 3, 8), ("uint8", 255, 16)]
)
def test_numbers_are_those_of_other_vectors(dtype, zero, lanes):
    """Compare with NumPy on this machine: halves, both ends, and numbers beyond int32."""
    ends = [0, 1, -1, 2**31 - 1, -(2**31), 10**6, -(10**6)]
    for step in (0.5, 0.003, 1e6):
        near = [round(half / step) for half in (-130.5, -127.5, -0.5, 0.5, 1.5, 126.5, 127.5, 254.5)]
        given = (
            np.resize(np.asarray(ends + near + list(range(-8, 9)), np.int64), 32)
            .clip(-(2**31), 2**31 - 1)
            .astype(np.int32)
        )
        function = kernel(
            lambda number, step=step: number.astype("float32") * tirx.const(step, "float32"), zero, dtype, lanes
        )
        target = get_target("x86-64").llvm_config()
        result = tvm.runtime.tensor(np.zeros(32, dtype))
        build_module({"f": function}, target, PACKED)["f"](tvm.runtime.tensor(given), result)
        info = np.iinfo(dtype)
        expected = np.clip(
            np.rint(given.astype(np.float32) * np.float32(step)).astype(np.float64) + zero, info.min, info.max
        )
        np.testing.assert_array_equal(result.numpy(), expected.astype(dtype))


def test_no_zero_point_is_added_if_it_is_zero():
    assert "sqadd" not in assembly(kernel(scaled, 0))


@pytest.mark.parametrize(
    "function",
    [
        kernel(scaled, lanes=1),
        kernel(lambda number: number, source="float32"),
        kernel(lambda number: number / tirx.const(3.0, "float32"), source="float32"),
    ],
    ids=["single numbers", "floats", "quotients"],
)
def test_other_numbers_stay_as_they_are(function):
    assert not any(name in assembly(function) for name in INSTRUCTIONS[1:])


def test_other_targets_keep_the_same_kernel():
    function = kernel(scaled).with_attr("target", tvm.target.Target(get_target("visionfive2").llvm_config()))
    assert expand_narrow_results(function) is function
