"""Weights of bytes that a Cast and a Mul make floats stay bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from passfit.frontend.canonicalise import canonicalize

from ...models import model_of, run

node = helper.make_node
RNG = np.random.default_rng(2)
WEIGHTS = {
    "int8": RNG.integers(-128, 128, (160, 200)).astype(np.int8),
    "uint8": RNG.integers(0, 256, (160, 200)).astype(np.uint8),
}
X = RNG.standard_normal((3, 160)).astype(np.float32)


def _model(dtype: str, scale: Any, zero: Any = None) -> onnx.ModelProto:
    constants = {"w": WEIGHTS[dtype], "s": np.asarray(scale, np.float32)}
    nodes = [node("Cast", ["w"], ["f"], to=TensorProto.FLOAT, name="cast")]
    if zero is not None:
        constants["z"] = np.asarray(zero, np.float32)
        nodes.append(node("Sub", ["f", "z"], ["c"], name="centre"))
    last = nodes[-1].output[0]
    nodes += [node("Mul", ["s", last], ["v"], name="scale"), node("MatMul", ["x", "v"], ["y"], name="product")]
    return model_of(nodes, {"x": X.shape}, ["y"], constants)


def _floats(model: onnx.ModelProto) -> int:
    """Return the most elements of a float constant."""
    return max(
        numpy_helper.to_array(each).size for each in model.graph.initializer if each.data_type == TensorProto.FLOAT
    )


QUANTISED = {
    "one scale": ("int8", 0.02),
    "a scale of each column": ("int8", RNG.random((1, 200)) + 0.01),
    "a scale of each row": ("int8", RNG.random((160, 1)) + 0.01),
    "a scale along the last axis": ("uint8", RNG.random(200) + 0.01),
    "a zero point": ("uint8", 0.02, 128),
    "a zero point of each column": ("uint8", RNG.random((1, 200)) + 0.01, RNG.integers(0, 255, (1, 200))),
}


@pytest.mark.parametrize("name", QUANTISED)
def test_weights_that_a_product_dequantises_stay_bytes(name: str) -> None:
    model = _model(*QUANTISED[name])
    imported = canonicalize(model)
    assert [each.op_type for each in imported.graph.node] == ["DequantizeLinear", "MatMul"]
    assert _floats(imported) <= 200
    np.testing.assert_array_equal(run(imported, {"x": X})[0], run(model, {"x": X})[0])


OTHERS = {
    "a negative scale": ("int8", -0.02),
    "a scale of each element": ("int8", RNG.random((160, 200))),
    "a zero point between numbers": ("uint8", 0.02, 127.5),
    "a zero point beyond the dtype": ("int8", 0.02, 300),
    "zero points along another axis": ("uint8", RNG.random((1, 200)) + 0.01, RNG.integers(0, 255, (160, 1))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_products_stay_as_they_are(name: str) -> None:
    model = _model(*OTHERS[name])
    imported = canonicalize(model)
    assert "DequantizeLinear" not in {each.op_type for each in imported.graph.node}
    np.testing.assert_allclose(run(imported, {"x": X})[0], run(model, {"x": X})[0], rtol=1e-4, atol=1e-3)
