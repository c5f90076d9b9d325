"""Operators that move elements move integers; the results stay the same numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from onnx import TensorProto, helper

from passfit.frontend.canonicalise import canonicalize

from ...models import model_of, run
from .layers import ONNX_TYPES

node = helper.make_node
SCALE, OTHER = np.float32(0.037), np.float32(0.05)
INTEGERS = {
    "shape": [2, 12, -1], "axes": [0], "starts": [1], "ends": [4], "pads": [0, 0, 1, 1, 0, 0, 1, 0], "rows": [[0, 2], [3, 1]],
    "split": [1, 3], "wide": [2, 4, 6, 5], "repeats": [1, 2, 1, 1],
}  # fmt: skip
#: operator: its inputs after x, and its attributes; x is 2 × 4 × 6 × 5
MOVES = {
    "Transpose": ([], {"perm": [0, 2, 3, 1]}),
    "Reshape": (["shape"], {}),
    "Flatten": ([], {"axis": 2}),
    "Unsqueeze": (["axes"], {}),
    "Slice": (["starts", "ends", "starts"], {}),
    "Gather": (["rows"], {"axis": 1}),
    "Expand": (["wide"], {}),
    "Tile": (["repeats"], {}),
    "DepthToSpace": ([], {"blocksize": 2}),
    "MaxPool": ([], {"kernel_shape": [2, 3], "pads": [1, 1, 0, 1], "strides": [2, 1]}),
    "Pad": (["pads"], {}),
    "Pad with a value": (["pads", "value"], {}),
    "Pad by reflection": (["pads"], {"mode": "reflect"}),
    "Resize": (["", "scales"], {"mode": "nearest"}),
    "Relu": ([], {}),
    "Clip": (["", "value"], {}),
}
FLOATS = {"scales": np.float32([1, 1, 2, 2]), "s": SCALE, "o": OTHER}


def _model(move: str, dtype: str, zero: int, scale_after: str = "s"):
    inputs, attributes = MOVES[move]
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["xf"], name="dequantise"),
        node(move.split()[0], ["xf", *inputs], ["t"], name="move", **attributes),
        node("QuantizeLinear", ["t", scale_after, "z"], ["y"], name="quantise"),
    ]
    read = {name for each in nodes for name in each.input}
    constants = {name: np.asarray(value, np.int64) for name, value in INTEGERS.items() if name in read}
    constants |= {name: value for name, value in FLOATS.items() if name in read} | {"z": np.asarray(zero, dtype)}
    if "value" in read:
        constants["value"] = np.asarray(np.float32(11) * SCALE, np.float32)
    kinds = {"x": ONNX_TYPES[dtype], "y": ONNX_TYPES[dtype]}
    return model_of(nodes, {"x": [2, 4, 6, 5]}, ["y"], constants, dtypes=kinds)


def _numbers(dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(5).integers(info.min, info.max, (2, 4, 6, 5), dtype, endpoint=True)


@pytest.mark.parametrize(("dtype", "zero"), [("int8", 0), ("int8", -128), ("uint8", 3), ("uint8", 255)])
@pytest.mark.parametrize("move", MOVES)
def test_a_move_between_equal_scales_is_one_of_integers(move: str, dtype: str, zero: int) -> None:
    if move == "Pad with a value" and zero == 255:
        zero = 200  # so that the value has a number
    model = _model(move, dtype, zero)
    imported = canonicalize(model)
    x = _numbers(dtype)
    np.testing.assert_array_equal(run(imported, {"x": x})[0], run(model, {"x": x})[0])
    operators = {each.op_type for each in imported.graph.node}
    assert not operators & {"QuantizeLinear", "DequantizeLinear"}, operators


@pytest.mark.parametrize("move", MOVES)
def test_another_scale_behind_a_move_quantises_again(move: str) -> None:
    model = _model(move, "int8", 3, scale_after="o")
    imported = canonicalize(model)
    x = _numbers("int8")
    np.testing.assert_array_equal(run(imported, {"x": x})[0], run(model, {"x": x})[0])
    operators = [each.op_type for each in imported.graph.node]
    assert operators.count("QuantizeLinear") == operators.count("DequantizeLinear") == 1
    # the elements move as bytes, and are floats in one place only
    assert operators.index("DequantizeLinear") + 1 == operators.index("QuantizeLinear")


@pytest.mark.parametrize("same", [True, False])
def test_a_concatenation_is_one_of_integers_if_its_parts_have_one_scale(same: bool) -> None:
    scales = ["s", "s" if same else "o"]
    nodes = [node("DequantizeLinear", [f"x{i}", scales[i], "z"], [f"f{i}"], name=f"d{i}") for i in (0, 1)]
    nodes += [
        node("Concat", ["f0", "f1"], ["t"], name="c", axis=1),
        node("QuantizeLinear", ["t", "s", "z"], ["y"], name="q"),
    ]
    constants = {"s": SCALE, "o": OTHER, "z": np.int8(-7)}
    kinds = dict.fromkeys(("x0", "x1", "y"), TensorProto.INT8)
    model = model_of(nodes, {"x0": [1, 2, 3], "x1": [1, 4, 3]}, ["y"], constants, dtypes=kinds)
    imported = canonicalize(model)
    random = np.random.default_rng(1)
    inputs = {f"x{i}": random.integers(-128, 128, (1, size, 3)).astype(np.int8) for i, size in enumerate((2, 4))}
    np.testing.assert_array_equal(run(imported, inputs)[0], run(model, inputs)[0])
    assert ("DequantizeLinear" not in {each.op_type for each in imported.graph.node}) == same


def test_a_split_and_a_float_reader_of_one_dequantisation() -> None:
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["f"], name="d"),
        node("Split", ["f", "split"], ["a", "b"], name="split", axis=1),
        node("QuantizeLinear", ["a", "s", "z"], ["y"], name="q"),
        node("Softmax", ["b"], ["p"], name="softmax"),
    ]
    constants = {"s": SCALE, "z": np.int8(4), "split": np.asarray([1, 3])}
    kinds = {"x": TensorProto.INT8, "y": TensorProto.INT8}
    model = model_of(nodes, {"x": [2, 4, 6, 5]}, ["y", "p"], constants, dtypes=kinds)
    imported = canonicalize(model)
    x = _numbers("int8")
    for one, other in zip(run(imported, {"x": x}), run(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(one, other)
    assert Counter(each.op_type for each in imported.graph.node) == {"Split": 1, "DequantizeLinear": 1, "Softmax": 1}


def test_the_places_of_maxima_keep_a_pool_in_floats() -> None:
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["f"], name="d"),
        node("MaxPool", ["f"], ["t", "places"], name="pool", kernel_shape=[2, 2]),
        node("QuantizeLinear", ["t", "s", "z"], ["y"], name="q"),
    ]
    kinds = {"x": TensorProto.INT8, "y": TensorProto.INT8, "places": TensorProto.INT64}
    model = model_of(nodes, {"x": [2, 4, 6, 5]}, ["y", "places"], {"s": SCALE, "z": np.int8(4)}, dtypes=kinds)
    assert "DequantizeLinear" in {each.op_type for each in canonicalize(model).graph.node}


@pytest.mark.parametrize("scale", [1e-42, 1e37])
def test_a_scale_too_small_or_large_for_its_numbers_keeps_both_quantisations(scale: float) -> None:
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["f"], name="d"),
        node("QuantizeLinear", ["f", "s", "z"], ["y"], name="q"),
    ]
    kinds = {"x": TensorProto.INT8, "y": TensorProto.INT8}
    model = model_of(nodes, {"x": [4]}, ["y"], {"s": np.float32(scale), "z": np.int8(0)}, dtypes=kinds)
    assert len(canonicalize(model).graph.node) == 2
