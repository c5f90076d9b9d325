"""Whole quantised models: those of MLPerf Tiny, and small networks through ONNX Runtime's own quantiser."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from passfit.frontend.canonical.canonicalise import import_model
from passfit.verify.integers.equal_signs import with_equal_signs

from ...models import NodeBuilder, run, save, shape_of

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
    imported = import_model(file, {port.name: SHAPES[name]})
    operators = _operators(imported)
    layers = sum(node.op_type in FLOAT_LAYERS for node in given.graph.node)
    assert operators["QLinearConv"] + operators["QLinearMatMul"] == layers
    assert not operators.keys() & FLOAT_LAYERS
    assert _weights(imported) == _weights(given)
    random = np.random.default_rng(0)
    reference = with_equal_signs(imported)
    for _ in range(3):
        x = {port.name: random.integers(-128, 128, SHAPES[name]).astype(np.int8)}
        found, expected = run(reference, x)[0], run(given, x)[0]
        assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1


def _network() -> onnx.ModelProto:
    """Build a small residual network with every form the quantiser knows: convolutions, an addition, pools, products."""
    build = NodeBuilder()
    first = build.node("Relu", build.node("Conv", "x", build.weight(8, 3, 3, 3), build.weight(8), pads=[1, 1, 1, 1]))
    deep = build.node("Conv", first, build.weight(8, 1, 3, 3), build.weight(8), pads=[1, 1, 1, 1], group=8)
    clipped = build.node("Clip", deep, build.constant(np.float32(0)), build.constant(np.float32(6)))
    wide = build.node("Conv", clipped, build.weight(8, 8, 1, 1), build.weight(8))
    total = build.node("Relu", build.node("Add", wide, first))
    pooled = build.node("MaxPool", total, kernel_shape=[2, 2], strides=[2, 2])
    both = build.node("Concat", pooled, build.node("AveragePool", total, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    mean = build.node("GlobalAveragePool", build.node("Sigmoid", both))
    flat = build.node("Flatten", mean)
    hidden = build.node("Gemm", flat, build.weight(10, 16), build.weight(10), transB=1)
    out = build.node("Softmax", build.node("MatMul", hidden, build.weight(10, 5)), axis=-1)
    return build.model([1, 3, 8, 8], out)


class _Data:
    """Calibration data: four seeded draws."""

    def __init__(self) -> None:
        random = np.random.default_rng(1)
        self.left = [{"x": random.standard_normal((1, 3, 8, 8)).astype(np.float32)} for _ in range(4)]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self.left.pop() if self.left else None


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("signs", ["s8s8", "u8u8", "u8s8"])
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_a_network_through_the_quantiser_has_no_float_layer_left(
    tmp_path: Path, form: str, signs: str, per_channel: bool
) -> None:
    from onnxruntime import quantization as q

    kinds = {"s8": q.QuantType.QInt8, "u8": q.QuantType.QUInt8}
    source, target = save(_network(), tmp_path), tmp_path / "quantised.onnx"
    q.quantize_static(
        source, target, _Data(), quant_format=q.QuantFormat[form], activation_type=kinds[signs[:2]], weight_type=kinds[signs[2:]],
        per_channel=per_channel,
    )  # fmt: skip
    given, imported = onnx.load(target), import_model(target)
    operators = _operators(imported)
    assert not operators.keys() & FLOAT_LAYERS, operators
    assert operators["QLinearConv"] + operators["QLinearMatMul"] == 5
    assert not any(each.data_type == TensorProto.FLOAT and len(each.dims) > 1 for each in imported.graph.initializer)
    reference = with_equal_signs(imported)
    random = np.random.default_rng(7)
    for _ in range(4):
        x = {"x": random.standard_normal(shape_of(imported.graph.input[0])).astype(np.float32)}
        found = run(reference, x)[0]
        # u8 × s8 saturates in ONNX Runtime on x86: the float network is the other witness there
        witness = given if signs != "u8s8" or form == "QDQ" else onnx.load(source)
        np.testing.assert_allclose(found, run(witness, x)[0], atol=0.02 if witness is given else 0.08)
