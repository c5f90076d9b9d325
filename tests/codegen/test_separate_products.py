"""Test that products of quantising kernels are rounded on their own, and that other kernels are left alone."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
import tvm_ffi
from tvm import te, tirx

from passfit.codegen.expand.separate_products import separate_products
from passfit.codegen.objects import build_module
from passfit.targets import get_target, how_to_run

TARGET = get_target("x86-64")
pytestmark = [
    pytest.mark.tvm,
    pytest.mark.skipif(not how_to_run(TARGET).native, reason="the host cannot run x86-64-v3"),
]
COUNT = 4096


def kernel(dtype):
    a, b = (te.placeholder((COUNT,), "float32", name) for name in "ab")

    def element(i):
        value = (a[i] * tirx.const(0.1, "float32") + b[i]) * tirx.const(1e7, "float32")
        return tirx.max(tirx.min(value, 100.0), -100.0).astype(dtype)

    return te.create_prim_func([a, b, te.compute((COUNT,), element, "result")])


def test_a_product_is_rounded_before_it_is_added():
    a = np.random.default_rng(0).uniform(-1, 1, COUNT).astype(np.float32)
    b = -(a * np.float32(0.1))
    result = tvm.runtime.tensor(np.zeros(COUNT, "int8"))
    build_module({"f": kernel("int8")}, TARGET.llvm_config())["f"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), result)
    assert not result.numpy().any()
    # a target with an instruction for both finds what the product lost
    floats = tvm.runtime.tensor(np.zeros(COUNT, "float32"))
    build_module({"f": kernel("float32")}, TARGET.llvm_config())["f"](
        tvm.runtime.tensor(a), tvm.runtime.tensor(b), floats
    )
    assert floats.numpy().any()


def test_a_kernel_of_floats_stays_the_same_object():
    function = kernel("float32")
    assert separate_products(function).same_as(function)


def dequantised(made):
    """Build a kernel that adds products of bytes as floats."""
    data, weight = te.placeholder((4, 8), "float32", "data"), te.placeholder((8, 16), "int8", "weight")
    return te.create_prim_func([data, weight, made(data, lambda k, n: weight[k, n].astype("float32"))])


def test_products_of_dequantised_weights_join_their_sum_alone():
    k = te.reduce_axis((0, 8), "k")
    total = dequantised(
        lambda data, weight: te.compute((4, 16), lambda m, n: te.sum(data[m, k] * weight(k, n), axis=k))
    )
    assert tvm_ffi.structural_equal(separate_products(total), total)
    single = dequantised(lambda data, weight: te.compute((4, 8), lambda m, n: data[m, n] + weight(m, n) * data[m, 0]))
    assert not tvm_ffi.structural_equal(separate_products(single), single)
