"""Quantised layers become integer layers with the exact arithmetic."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from onnx import helper, numpy_helper

from passfit.frontend.canonicalise import canonicalize
from passfit.verify.equal_signs import equalise_signs

from ...models import run
from .layers import LayerModel, layers

node = helper.make_node


@settings(deadline=None, max_examples=120)
@given(layer=layers())
def test_a_layer_computes_the_exact_arithmetic(layer: LayerModel) -> None:
    imported = canonicalize(layer.model())
    operators = Counter(each.op_type for each in imported.graph.node)
    assert operators["QLinearConv"] + operators["QLinearMatMul"] == 1, operators
    assert not operators.keys() & {"Conv", "MatMul", "Gemm", "Relu", "QuantizeLinear", "DequantizeLinear"}, operators
    (result,) = run(equalise_signs(imported), {"x": layer.x})
    np.testing.assert_array_equal(result, layer.expected, str(layer.about))


@settings(deadline=None, max_examples=40)
@given(layer=layers(("uint8", "uint8", "uint8")) | layers(("int8", "int8", "int8")))
def test_equal_signs_need_no_change_for_the_reference(layer: LayerModel) -> None:
    imported = canonicalize(layer.model())
    assert equalise_signs(imported) is imported
    np.testing.assert_array_equal(run(imported, {"x": layer.x})[0], layer.expected)


@settings(deadline=None, max_examples=20)
@given(layer=layers())
def test_weights_stay_as_small_as_they_were(layer: LayerModel) -> None:
    imported = canonicalize(layer.model())
    floats = [each for each in imported.graph.initializer if each.data_type == 1]
    assert max(numpy_helper.to_array(each).size for each in floats) <= max(1, layer.constants["ws"].size) * layer.phases


@settings(deadline=None, max_examples=20)
@given(layer=layers())
def test_an_imported_layer_is_imported_again_as_it_is(layer: LayerModel) -> None:
    imported = canonicalize(layer.model())
    once = imported.SerializeToString(deterministic=True)
    assert canonicalize(imported).SerializeToString(deterministic=True) == once
