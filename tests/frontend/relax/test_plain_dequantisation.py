"""Dequantisations by blocks and of four bits keep their numbers in the forms TVM reads."""

from __future__ import annotations

from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.relax import plain_dequantisation
from passfit.frontend.relax.plain_dequantisation import _pack_pairs, plain_dequantisations

from ...models import model_of, run

RNG = np.random.default_rng(4)


def _model(dtype: Any, blocks: int, axis: int, zeros: bool) -> onnx.ModelProto:
    info = ml_dtypes.iinfo(dtype)
    of_scale = [12, 10]
    of_scale[axis] = blocks
    shape = tuple(of_scale) if blocks > 1 else (of_scale[1 - axis],)
    constants = {
        "w": RNG.integers(int(info.min), int(info.max) + 1, (12, 10)).astype(dtype), "s": (RNG.random(shape) / 9).astype(np.float32),
        **({"z": RNG.integers(int(info.min), int(info.max) + 1, shape).astype(dtype)} if zeros else {}),
    }  # fmt: skip
    attributes = {"axis": axis, "block_size": (12, 10)[axis] // blocks} if blocks > 1 else {"axis": 1 - axis}
    nodes = [
        helper.make_node("DequantizeLinear", [*constants], ["f"], name="d", **attributes),
        helper.make_node("MatMul", ["x", "f"], ["y"], name="m"),
    ]
    model = model_of(nodes, {"x": [3, 12]}, ["y"], constants, opset=21)
    model.ir_version = 10
    return canonicalize(model)


def _evaluated(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace the nodes that are not operators of ONNX by their results: constants."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    values = {each.name: numpy_helper.to_array(each) for each in result.graph.initializer}
    for node in list(result.graph.node):
        options = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        if node.op_type == "UnpackNibbles":
            lines = np.moveaxis(values[node.input[0]], options["axis"], 0)
            both = np.stack([lines & 15, lines >> 4], axis=1).reshape(-1, *lines.shape[1:])[: options["extent"]]
            value = np.moveaxis(both, 0, options["axis"])
            value = value.astype(np.int8) - np.int8(8) if options["signed"] else value
        elif node.op_type == "DequantizeBlocks":
            numbers, *others = (values[name] for name in node.input)
            extent = numbers.shape[options["axis"]]
            scale, *zero = (
                np.repeat(each, options["size"], options["axis"]).take(range(extent), options["axis"])
                for each in others
            )
            value = (numbers.astype(np.float32) - (zero[0].astype(np.float32) if zero else 0)) * scale
        else:
            continue
        values[node.output[0]] = value
        result.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(value), node.output[0]))
        result.graph.node.remove(node)
    return result


@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize(("blocks", "axis"), [(1, 0), (1, 1), (3, 0), (2, 1)])
@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, np.int8, np.uint8])
@pytest.mark.parametrize("small", [0, 1000])
def test_the_numbers_stay_the_same(monkeypatch, dtype: Any, blocks: int, axis: int, zeros: bool, small: int) -> None:
    monkeypatch.setattr(plain_dequantisation, "_SMALL", small)
    model = _model(dtype, blocks, axis, zeros)
    plain = plain_dequantisations(model)
    x = {"x": RNG.standard_normal((3, 12)).astype(np.float32)}
    np.testing.assert_array_equal(run(_evaluated(plain), x)[0], run(model, x)[0])
    kinds = Counter(each.op_type for each in plain.graph.node)
    assert kinds["DequantizeLinear"] == (blocks == 1) and kinds["DequantizeBlocks"] == (blocks > 1)
    assert not {each.data_type for each in plain.graph.initializer} & {onnx.TensorProto.INT4, onnx.TensorProto.UINT4}
    assert (plain is model) == (blocks == 1 and dtype in (np.int8, np.uint8))
    pairs = dtype in (ml_dtypes.int4, ml_dtypes.uint4) and not small
    assert kinds["UnpackNibbles"] == pairs * (1 + zeros)
    assert max(
        len(numpy_helper.to_array(each).tobytes()) for each in plain.graph.initializer if each.data_type in (2, 3)
    ) == 120 // (1 + pairs)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_two_numbers_of_four_bits_share_a_byte(shape: list[int]) -> None:
    numbers = RNG.integers(0, 16, shape).astype(np.uint8)
    for axis in range(len(shape)):
        pairs = np.moveaxis(_pack_pairs(numbers, axis), axis, 0)
        assert len(pairs) == -(-shape[axis] // 2)
        both = np.stack([pairs & 15, pairs >> 4], axis=1).reshape(-1, *pairs.shape[1:])[: shape[axis]]
        np.testing.assert_array_equal(np.moveaxis(both, 0, axis), numbers)
