"""Whole quantised models: those of MLPerf Tiny, and small networks through ONNX Runtime's own quantiser."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from passfit.frontend.canonicalise import import_model
from passfit.frontend.source.import_options import ImportOptions
from passfit.verify.equal_signs import equalise_signs

from ...models import run, shape_of
from .networks import SIGNS, network, quantised

SHARED = next((found for each in Path(__file__).parents if (found := each / "shared" / "mlperf_tiny").is_dir()), None)
FLOAT_LAYERS = {"Conv", "Gemm", "MatMul"}
SHAPES = {
    "ad-int8": [1, 640], "ic-int8": [1, 32, 32, 3], "kws-int8": [1, 49, 10, 1], "vww-int8": [1, 96, 96, 3],
}  # fmt: skip


def _operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def _weights(model: onnx.ModelProto) -> int:
    return sum(numpy_helper.to_array(each).nbytes for each in model.graph.initializer if len(each.dims) > 1)


@pytest.mark.parametrize("name", SHAPES)
def test_a_model_of_mlperf_tiny_is_one_of_integer_layers(name: str) -> None:
    if SHARED is None:
        pytest.skip("shared/mlperf_tiny is not there")
    file = SHARED / f"{name}.onnx"
    given = onnx.load(file)
    (port,) = given.graph.input
    imported = import_model(file, ImportOptions({port.name: SHAPES[name]}))
    operators = _operators(imported)
    layers = sum(node.op_type in FLOAT_LAYERS for node in given.graph.node)
    assert operators["QLinearConv"] + operators["QLinearMatMul"] == layers
    assert not operators.keys() & FLOAT_LAYERS
    assert _weights(imported) <= _weights(given)  # constant channels go
    random = np.random.default_rng(0)
    reference = equalise_signs(imported)
    for _ in range(3):
        x = {port.name: random.integers(-128, 128, SHAPES[name]).astype(np.int8)}
        found, expected = run(reference, x)[0], run(given, x)[0]
        assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("signs", SIGNS)
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_a_network_through_the_quantiser_has_no_float_layer_left(
    tmp_path: Path, form: str, signs: str, per_channel: bool
) -> None:
    target = quantised(tmp_path, form, signs, per_channel)
    given, imported = onnx.load(target), import_model(target)
    operators = _operators(imported)
    assert not operators.keys() & FLOAT_LAYERS, operators
    assert operators["QLinearConv"] + operators["QLinearMatMul"] == 5
    assert not any(each.data_type == TensorProto.FLOAT and len(each.dims) > 1 for each in imported.graph.initializer)
    reference = equalise_signs(imported)
    random = np.random.default_rng(7)
    for _ in range(4):
        x = {"x": random.standard_normal(shape_of(imported.graph.input[0])).astype(np.float32)}
        found = run(reference, x)[0]
        # u8 × s8 saturates in ONNX Runtime on x86: the float network is the other witness there
        witness = given if signs != "u8s8" or form == "QDQ" else network()
        np.testing.assert_allclose(found, run(witness, x)[0], atol=0.02 if witness is given else 0.08)
