"""Bytes of quantised models are split by kind: each counts once, and the parts add up."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper


@pytest.fixture
def mlperf_tiny(scripts):
    import mlperf_tiny

    return mlperf_tiny


def test_the_parts_of_weights_add_up_to_all_bytes(mlperf_tiny):
    program = {
        "weights": [{"nbytes": 544}, {"nbytes": 256}, {"nbytes": 24}, {"nbytes": 36}, {"nbytes": 12}],
        "tensors": [
            {"shape": [1, 544], "dtype": "int8", "weight": 0},
            {"shape": [64, 1, 1], "dtype": "float32", "weight": 1},
            {"shape": [64, 1, 1], "dtype": "float32", "weight": 1},
            {"shape": [12, 1, 1], "dtype": "int16", "weight": 2},
            {"shape": [3, 6], "dtype": "int16", "weight": 3},
            {"shape": [3], "dtype": "int32", "weight": 4},
            {"shape": [1, 10], "dtype": "int8", "weight": None},
        ],
    }
    parts = mlperf_tiny.stored(program, 1024)
    assert parts == {"packed": 544 + 36, "scales": 256, "biases": 24 + 12, "alignment": 152}
    assert sum(parts.values()) == 1024


def test_zero_points_are_no_weights(mlperf_tiny):
    arrays = {"weight": np.ones((4, 3), np.int8), "zero": np.zeros(4, np.int8), "scale": np.ones(4, np.float32)}
    node = helper.make_node("DequantizeLinear", ["weight", "scale", "zero"], ["result"], axis=0)
    result = helper.make_tensor_value_info("result", onnx.TensorProto.FLOAT, [4, 3])
    graph = helper.make_graph(
        [node], "graph", [], [result], [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    )
    assert mlperf_tiny.int8_weights(graph) == 12


def test_constants_of_layers_are_weights_their_scales_and_biases(mlperf_tiny):
    """A bias's scale is that of its operands' product: it says nothing new."""
    weights = [
        numpy_helper.from_array(np.ones((4, 3), np.int8), "w"), numpy_helper.from_array(np.ones(4, np.float32), "w_scale"),
        numpy_helper.from_array(np.ones(4, np.int32), "b"), numpy_helper.from_array(np.ones(4, np.float32), "b_scale"),
        numpy_helper.from_array(np.float32(1), "x_scale"),
    ]  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", [name, f"{name}_scale"], [f"{name}_float"]) for name in ("w", "b", "x")
    ]
    graph = helper.make_graph(nodes, "g", [], [], weights)
    assert mlperf_tiny.layer_constants(graph) == 12 + 4 * 4 + 4 * 4
