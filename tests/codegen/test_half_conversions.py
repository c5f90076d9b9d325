"""Compare conversions of float16 by arithmetic with NumPy's: every float16, and floats of all sizes."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import te, tirx
from tvm.ir import Call, Op

from passfit.codegen.expand.half_conversions import NARROW, WIDEN, expand_half_conversions
from passfit.codegen.objects import build_module
from passfit.targets import get_target

from ..kernels.programs import HOST

pytestmark = pytest.mark.tvm


def convert(name, values, dtype):
    """Return `values` converted by one of the calls."""
    data = te.placeholder((len(values),), str(values.dtype), "data")
    made = te.compute((len(values),), lambda i: Call(Op.get(name), [data[i]], ret_ty=tirx.const(0, dtype).ty), "result")
    result = tvm.runtime.tensor(np.zeros(len(values), dtype))
    build_module({"f": te.create_prim_func([data, made])}, HOST)["f"](tvm.runtime.tensor(values), result)
    return result.numpy()


def test_every_half_widens_to_the_same_number():
    halves = np.arange(1 << 16, dtype="uint16").view("float16")
    np.testing.assert_array_equal(convert(WIDEN, halves, "float32"), halves.astype("float32"))


def test_floats_round_to_the_nearest_even_half():
    halves = np.arange(0x7C00, dtype="uint16").view("float16").astype("float32")
    between = (halves[1:] + halves[:-1]) / 2  # ties
    spread = np.random.default_rng(0).integers(0, 1 << 32, 20000, dtype="uint32").view("float32")
    values = np.concatenate(
        [halves, between, np.nextafter(between, np.float32(9e9)), np.nextafter(between, np.float32(-9)), spread]
    )
    values = np.concatenate([values, -values, np.array([65519, 65520, 1e9, np.inf, np.nan], "float32")])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(convert(NARROW, values, "float16"), values.astype("float16"))


@pytest.mark.parametrize(
    ("target", "by_arithmetic"),
    [("visionfive2", True), ("bpi-f3", True), ("beaglebone", True), ("rpi4", False), ("x86-64", False)],
)
def test_processors_with_instructions_keep_them(target, by_arithmetic):
    data = te.placeholder((8,), "float16", "data")
    kernel = te.create_prim_func([data, te.compute((8,), lambda i: data[i] + data[i], "result")])
    kernel = kernel.with_attr("target", tvm.target.Target(get_target(target).llvm_config()))
    converted = expand_half_conversions(kernel)
    assert (WIDEN in str(converted)) is by_arithmetic
    assert by_arithmetic or converted.same_as(kernel)
