"""Operators of com.microsoft compute the same in ONNX's own; ONNX Runtime runs both."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model

from ...models import model_of, run, save

VENDOR = "com.microsoft"
RNG = np.random.default_rng(3)
U8, S8, F32 = TensorProto.UINT8, TensorProto.INT8, TensorProto.FLOAT
#: scales and zero points that every case may read
COMMON: dict[str, Any] = {
    "xs": np.float32(0.03), "xz": np.uint8(120), "ys": np.float32(0.05), "yz": np.uint8(100), "zs": np.float32(0.004),
    "zz": np.uint8(0), "big": np.float32(0.2),
}  # fmt: skip
X, Y, Z = ["xs", "xz"], ["ys", "yz"], ["zs", "zz"]


def _node(op: str, inputs: list[str], outputs: tuple[str, ...] = ("y",), **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, list(outputs), name=op.lower(), domain=VENDOR, **attributes)


def _bytes(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype, endpoint=True)


def _floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


#: node, constants, inputs, dtype of y
CASES: dict[str, tuple[onnx.NodeProto, dict[str, Any], dict[str, np.ndarray], int]] = {
    "QLinearAdd": (_node("QLinearAdd", ["x", *X, "b", *Y, *Z]), {}, {"x": _bytes(2, 3, 4), "b": _bytes(3, 1)}, U8),
    "QLinearMul": (_node("QLinearMul", ["x", *X, "b", *Y, "big", "xz"]), {}, {"x": _bytes(2, 3, 4), "b": _bytes(3, 1)}, U8),
    "QLinearConcat": (_node("QLinearConcat", [*Y, "x", *X, "b", *Y], axis=1), {}, {"x": _bytes(2, 3), "b": _bytes(2, 4)}, U8),
    "QLinearSigmoid": (_node("QLinearSigmoid", ["x", *X, *Z]), {}, {"x": _bytes(2, 50)}, U8),
    "QLinearLeakyRelu": (_node("QLinearLeakyRelu", ["x", *X, *Y], alpha=0.2), {}, {"x": _bytes(2, 50)}, U8),
    "QLinearSoftmax": (_node("QLinearSoftmax", ["x", *X, *Z], axis=-1, opset=13), {}, {"x": _bytes(2, 10)}, U8),
    "QLinearSoftmax of old": (_node("QLinearSoftmax", ["x", *X, *Z], axis=1, opset=11), {}, {"x": _bytes(2, 3, 5)}, U8),
    "QLinearAveragePool": (
        _node("QLinearAveragePool", ["x", *X, *Y], kernel_shape=[2, 3], pads=[1, 1, 0, 1], strides=[1, 2]), {}, {"x": _bytes(1, 3, 7, 8)}, U8),
    "QLinearAveragePool, channels last": (
        _node("QLinearAveragePool", ["x", *X, *Y], kernel_shape=[2, 2], channels_last=1), {}, {"x": _bytes(1, 5, 6, 3)}, U8),
    "QLinearGlobalAveragePool": (_node("QLinearGlobalAveragePool", ["x", *X, *Y]), {}, {"x": _bytes(1, 3, 7, 8)}, U8),
    "QLinearGlobalAveragePool, channels last": (
        _node("QLinearGlobalAveragePool", ["x", *X, *Y], channels_last=1), {}, {"x": _bytes(1, 7, 8, 3)}, U8),
    "QLinearWhere": (_node("QLinearWhere", ["c", "x", *X, "b", *Y, "big", "xz"]), {"c": RNG.random((2, 5)) < 0.5}, {"x": _bytes(2, 5), "b": _bytes(2, 5)}, U8),
    "QGemm": (
        _node("QGemm", ["x", *X, "w", "ws", "wz", "c", *Y]),
        {"w": _bytes(8, 5), "ws": np.float32(0.01), "wz": np.uint8(128), "c": np.arange(5, dtype=np.int32) * 700}, {"x": _bytes(3, 8)}, U8),
    "QGemm per channel, transposed": (
        _node("QGemm", ["x", "xs", "sz", "w", "ws", "wz", "c", "ys", "sz"], transB=1),
        {"w": _bytes(5, 8, dtype=np.int8), "ws": np.float32([1, 2, 3, 4, 5]) / 300, "wz": np.zeros(5, np.int8), "c": np.arange(5, dtype=np.int32), "sz": np.int8(4)},
        {"x": _bytes(3, 8, dtype=np.int8)}, S8),
    "QGemm to floats": (
        _node("QGemm", ["x", *X, "w", "ws", "wz"], alpha=0.5), {"w": _bytes(8, 5), "ws": np.float32(0.01), "wz": np.uint8(128)}, {"x": _bytes(3, 8)}, F32),
    "DynamicQuantizeMatMul": (
        _node("DynamicQuantizeMatMul", ["x", "w", "ws", "wz", "b"]),
        {"w": _bytes(8, 5), "ws": np.float32(0.01), "wz": np.uint8(128), "b": _floats(5)}, {"x": _floats(3, 8)}, F32),
    "DynamicQuantizeMatMul per channel": (
        _node("DynamicQuantizeMatMul", ["x", "w", "ws"]), {"w": _bytes(8, 5), "ws": np.float32([1, 2, 3, 4, 5]) / 300}, {"x": _floats(2, 3, 8)}, F32),
    "MatMulIntegerToFloat": (
        _node("MatMulIntegerToFloat", ["x", "w", "xs", "ws", "xz", "wz", "b"]),
        {"w": _bytes(8, 5), "ws": np.float32(0.01), "wz": np.uint8(128), "b": _floats(5)}, {"x": _bytes(3, 8)}, F32),
    "FusedConv": (
        _node("FusedConv", ["x", "w", "b"], activation="Relu", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        {"w": _floats(4, 3, 3, 3), "b": _floats(4)}, {"x": _floats(1, 3, 6, 6)}, F32),
    "FusedConv with a sum": (
        _node("FusedConv", ["x", "w", "b", "z"], activation="LeakyRelu", activation_params=[0.3], kernel_shape=[1, 1]),
        {"w": _floats(4, 3, 1, 1), "b": _floats(4)}, {"x": _floats(1, 3, 6, 6), "z": _floats(1, 4, 6, 6)}, F32),
    "FusedConv with Clip": (
        _node("FusedConv", ["x", "w"], activation="Clip", activation_params=[-0.5, 0.7], kernel_shape=[1, 1]), {"w": _floats(4, 3, 1, 1)}, {"x": _floats(1, 3, 6, 6)}, F32),
    "FusedGemm": (
        _node("FusedGemm", ["x", "w", "b"], activation="LeakyRelu", activation_alpha=0.2, alpha=0.5, transB=1), {"w": _floats(5, 8), "b": _floats(5)}, {"x": _floats(3, 8)}, F32),
    "FusedMatMul": (_node("FusedMatMul", ["x", "b"], alpha=0.25, transA=1, transB=1), {}, {"x": _floats(2, 8, 3), "b": _floats(2, 5, 8)}, F32),
    "FusedMatMul, batches inside": (_node("FusedMatMul", ["x", "b"], transBatchA=1, transBatchB=1), {}, {"x": _floats(3, 2, 8), "b": _floats(8, 2, 5)}, F32),
    "QGemm with a matrix": (
        _node("QGemm", ["x", *X, "w", "ws", "wz", "c", *Y]),
        {"w": _bytes(8, 5), "ws": np.float32([1, 2, 3, 4, 5]) / 300, "wz": np.full(5, 128, np.uint8), "c": np.arange(15, dtype=np.int32).reshape(3, 5) * 90},
        {"x": _bytes(3, 8)}, U8),
    "QGemm with scales from outside": (
        _node("QGemm", ["x", *X, "w", "ws", "wz", "c", *Y]), {"w": _bytes(8, 5), "wz": np.full(5, 128, np.uint8), "c": np.int32(900)},
        {"x": _bytes(3, 8), "ws": np.float32([1, 2, 3, 4, 5]) / 300}, U8),
    **{
        f"FusedGemm with {activation}": (_node("FusedGemm", ["x", "w"], activation=activation, **options), {"w": _floats(8, 5)}, {"x": _floats(3, 8)}, F32)
        for activation, options in {
            "Elu": {"activation_alpha": 0.4}, "Softplus": {}, "Softsign": {}, "ThresholdedRelu": {"activation_alpha": 0.4},
            "HardSigmoid": {"activation_alpha": 0.4, "activation_beta": 0.3},
        }.items()
    },
    "FusedConv with HardSwish": (_node("FusedConv", ["x", "w"], activation="HardSwish", kernel_shape=[1, 1]), {"w": _floats(4, 3, 1, 1)}, {"x": _floats(1, 3, 6, 6)}, F32),
    "FusedMatMul of doubles": (_node("FusedMatMul", ["x", "b"], alpha=0.25), {}, {"x": RNG.random((2, 3)), "b": RNG.random((3, 4))}, TensorProto.DOUBLE),
    "QuantizeLinear": (_node("QuantizeLinear", ["x", *X]), {}, {"x": _floats(3, 8)}, U8),
    "DequantizeLinear": (_node("DequantizeLinear", ["x", *X]), {}, {"x": _bytes(3, 8)}, F32),
}  # fmt: skip


def _few_bits(length: int, channels: int, block: int, bits: int, zeros: bool) -> tuple:
    blocks = -(-length // block)
    # ONNX Runtime's own quantiser writes negative scales, and 0 for a block of zeros
    scales = ((RNG.random((channels, blocks)) - 0.5) / 15).astype(np.float32)
    scales[0, -1] = 0
    constants = {"w": _bytes(channels, blocks, block * bits // 8), "ws": scales}
    inputs = ["x", "w", "ws"]
    if zeros:
        constants["wz"] = _bytes(channels, -(-blocks * bits // 8))
        inputs.append("wz")
    node = _node("MatMulNBits", inputs, K=length, N=channels, bits=bits, block_size=block)
    return node, constants, {"x": _floats(2, 3, length)}, F32


for form in [(64, 5, 32, 4, False), (96, 6, 32, 4, True), (70, 3, 16, 4, True), (64, 5, 32, 8, True)]:
    CASES["MatMulNBits " + " ".join(map(str, form))] = _few_bits(*form)


def _model(name: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    node, constants, inputs, kind = CASES[name]
    given = {key: value for key, value in (COMMON | constants).items() if key in node.input}
    shapes = {key: value.shape for key, value in inputs.items()}
    dtypes = {key: helper.np_dtype_to_tensor_dtype(value.dtype) for key, value in inputs.items()} | {"y": kind}
    return model_of([node], shapes, ["y"], given, dtypes=dtypes, domain=VENDOR, opset=17), inputs


@pytest.mark.parametrize("name", CASES)
def test_an_operator_of_the_vendor_computes_the_same_in_onnx(tmp_path: Path, name: str) -> None:
    model, inputs = _model(name)
    imported = import_model(save(model, tmp_path))
    assert {each.domain for each in imported.graph.node} == {""}
    (found,), (expected,) = run(imported, inputs), run(model, inputs)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    else:  # its kernels multiply where ONNX divides, and look up tables
        assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1
        assert len(np.unique(expected)) > 2


def test_a_quantised_product_of_the_vendor_becomes_an_integer_layer(tmp_path: Path) -> None:
    for name in ("QGemm", "QGemm per channel, transposed"):
        imported = import_model(save(_model(name)[0], tmp_path))
        assert Counter(each.op_type for each in imported.graph.node) == {"QLinearConv": 1, "Reshape": 2}


def test_weights_of_four_bits_stay_so(tmp_path: Path) -> None:
    imported = import_model(save(_model("MatMulNBits 64 5 32 4 False")[0], tmp_path))
    assert {each.data_type for each in imported.graph.initializer} == {TensorProto.FLOAT, TensorProto.UINT4}
    assert max(len(each.raw_data) for each in imported.graph.initializer) == 64 * 5 // 2


def test_an_operator_of_the_vendor_inside_a_branch_is_expanded_too(tmp_path: Path) -> None:
    node = _node("QLinearSigmoid", ["x", *X, *Z], ("inside",))
    other = helper.make_node("Identity", ["x"], ["outside"], name="identity")
    branches = {
        f"{word}_branch": helper.make_graph([each], word, [], [helper.make_tensor_value_info(each.output[0], U8, [4])])
        for word, each in (("then", node), ("else", other))
    }
    constants = {key: COMMON[key] for key in (*X, *Z)} | {"yes": np.asarray(True)}
    model = model_of(
        [helper.make_node("If", ["yes"], ["y"], name="if", **branches)],
        {"x": [4]},
        ["y"],
        constants,
        dtypes={"x": U8, "y": U8},
        domain=VENDOR,
    )
    x = np.asarray([0, 99, 121, 255], np.uint8)
    found, expected = (run(each, {"x": x})[0] for each in (import_model(save(model, tmp_path)), model))
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1


def test_a_form_without_an_equal_is_refused_by_name(tmp_path: Path) -> None:
    node, constants, _, _ = _few_bits(64, 5, 32, 4, False)
    node.input.extend(["", "order"])
    constants = constants | {"order": np.arange(64, dtype=np.int32)}
    tensors = [numpy_helper.from_array(value, key) for key, value in constants.items()]
    model = model_of([node], {"x": [2, 3, 64]}, ["y"], tensors, domain=VENDOR)
    with pytest.raises(
        ModelError, match="MatMulNBits node 'matmulnbits' cannot be compiled: its input 'g_idx' is not supported"
    ):
        import_model(save(model, tmp_path))


@pytest.mark.parametrize("sets", [{VENDOR: 1}, {"": 17}, {"ai.onnx": 17}, {"ai.onnx.ml": 3}])
def test_sets_that_a_file_does_not_declare_are_the_newest(tmp_path: Path, sets: dict[str, int]) -> None:
    """ONNX Runtime reads such files; of functions it asks for their own domain only."""
    inner = helper.make_node("Gelu", ["a"], ["b"], domain=VENDOR)
    function = helper.make_function("my", "Twice", ["a"], ["b"], [inner], [helper.make_opsetid(VENDOR, 1)])
    plain = model_of([_node("Gelu", ["x"], ("t",)), helper.make_node("Relu", ["t"], ["y"])], {"x": [2, 3]}, ["y"])
    called = model_of([helper.make_node("Twice", ["x"], ["y"], domain="my")], {"x": [2, 3]}, ["y"])
    called.functions.append(function)
    x = {"x": _floats(2, 3)}
    for model, more in ((plain, {}), (called, {"my": 1})):
        del model.opset_import[:]
        model.opset_import.extend(helper.make_opsetid(*each) for each in (sets | more).items())
        found, expected = (run(each, x)[0] for each in (import_model(save(model, tmp_path)), model))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sets", [{}, {"": 0}, {"": -1, VENDOR: 1}])
def test_a_file_of_no_set_is_refused(tmp_path: Path, sets: dict[str, int]) -> None:
    model = model_of([_node("Gelu", ["x"])], {"x": [2, 3]}, ["y"])
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*each) for each in sets.items())
    with pytest.raises(ModelError, match="ONNX( operator set|'s operator set -?[01], which does not exist)"):
        import_model(save(model, tmp_path))
