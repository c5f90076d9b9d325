"""Find the scales of inputs and outputs: quantised and dequantised ones, by either format, behind moves."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.frontend.quantised.port_scales import port_scales

from ...models import model_of

CONSTANTS = {
    "s": np.array(0.5, np.float32), "z": np.array(-3, np.int8), "s2": np.array([0.25], np.float32), "z2": np.array([7], np.int8),
    "many": np.ones(3, np.float32), "zeros": np.zeros(3, np.int8),
}  # fmt: skip


def model(nodes: list[tuple], outputs: list[str]) -> onnx.ModelProto:
    made = [helper.make_node(op, inputs, [result]) for op, inputs, result in nodes]
    return model_of(made, {"x": (1, 3, 4, 4)}, outputs, CONSTANTS, dtype=TensorProto.INT8)


@pytest.mark.parametrize(
    "nodes, expected",
    [
        (
            [("DequantizeLinear", ["x", "s", "z"], "f"), ("QuantizeLinear", ["f", "s2", "z2"], "y")],
            {"x": (0.5, -3), "y": (0.25, 7)},
        ),
        ([("Transpose", ["x"], "t"), ("DequantizeLinear", ["t", "s", "z"], "y")], {"x": (0.5, -3)}),
        (
            [("QLinearConv", ["x", "s", "z", "w", "s2", "z2", "s2", "z2"], "a"), ("Reshape", ["a", "n"], "y")],
            {"x": (0.5, -3), "y": (0.25, 7)},
        ),
        ([("QLinearAdd", ["x", "s", "z", "x", "s", "z", "s2", "z2"], "y")], {"x": (0.5, -3), "y": (0.25, 7)}),
        ([("DequantizeLinear", ["x", "s"], "y")], {"x": (0.5, 0)}),
        ([("DequantizeLinear", ["x", "many", "zeros"], "y")], {}),  # one for each channel
        (
            [
                ("DequantizeLinear", ["x", "s", "z"], "a"),
                ("DequantizeLinear", ["x", "s2", "z2"], "b"),
                ("Add", ["a", "b"], "y"),
            ],
            {},
        ),
        ([("DequantizeLinear", ["x", "computed", "z"], "y")], {}),
        ([("Relu", ["x"], "y")], {}),
    ],
)
def test_ports_have_the_scales_of_the_operators_at_them(nodes, expected):
    assert port_scales(model(nodes, ["y"])) == expected
