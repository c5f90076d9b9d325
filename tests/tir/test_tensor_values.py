"""Digests of tensors are those of their bytes, whatever their dtype and shape."""

import hashlib

import numpy as np
import pytest

pytest.importorskip("tvm")

import ml_dtypes
import tvm

from passfit.tir.tensor_values import array_digest, array_of, tensor_digest

pytestmark = pytest.mark.tvm


@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16, "bool", "int8", "int64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 5)])
def test_a_digest_is_that_of_the_bytes(shape, dtype):
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    tensor = tvm.runtime.tensor(array)
    assert tensor_digest(tensor) == array_digest(array) == hashlib.sha256(array.tobytes()).hexdigest()
    assert array_of(tensor).shape == shape and array_of(tensor).dtype == array.dtype


def test_a_digest_follows_the_order_of_axes():
    array = np.arange(6).reshape(2, 3)
    assert array_digest(array.T) == array_digest(array.T.copy()) != array_digest(array)


def test_values_are_not_copied():
    tensor = tvm.runtime.tensor(np.zeros(3, "float32"))
    assert np.shares_memory(array_of(tensor), array_of(tensor))
