"""Dequantisations by blocks and of four bits keep their numbers in the forms TVM reads."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

from passfit.frontend.canonical.canonicalise import canonicalize
from passfit.frontend.relax.plain_dequantisation import plain_dequantisations

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


@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize(("blocks", "axis"), [(1, 0), (1, 1), (3, 0), (2, 1)])
@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, np.int8, np.uint8])
def test_the_numbers_stay_the_same(dtype: Any, blocks: int, axis: int, zeros: bool) -> None:
    model = _model(dtype, blocks, axis, zeros)
    plain = plain_dequantisations(model)
    x = {"x": RNG.standard_normal((3, 12)).astype(np.float32)}
    np.testing.assert_array_equal(run(plain, x)[0], run(model, x)[0])
    kept = [each for each in plain.graph.node if each.op_type == "DequantizeLinear"]
    assert len(kept) == (blocks == 1)
    assert not {each.data_type for each in plain.graph.initializer} & {onnx.TensorProto.INT4, onnx.TensorProto.UINT4}
    assert (plain is model) == (blocks == 1 and dtype in (np.int8, np.uint8))
