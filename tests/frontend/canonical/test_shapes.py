"""Check that operands whose ranks ONNX's inference passes are refused by their node."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, save

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model

from ...models import model_of

#: operands of a layer with four states, as they should be
_WEIGHTS = {"w": (1, 4, 3), "r": (1, 4, 4), "b": (1, 8), "h": (1, 2, 4)}


@pytest.mark.parametrize("wrong", [None, *_WEIGHTS])
@pytest.mark.parametrize(("operator", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_weights_of_recurrent_layers_have_the_ranks_of_onnx(tmp_path, operator, gates, wrong):
    shapes = {name: (1, size[1] * (gates if name != "h" else 1), *size[2:]) for name, size in _WEIGHTS.items()}
    shapes["h"] = _WEIGHTS["h"]
    arrays = {name: np.ones(shape[1:] if name == wrong else shape, np.float32) for name, shape in shapes.items()}
    node = helper.make_node(operator, ["x", "w", "r", "b", "", "h"], ["", "y"], name="cell", hidden_size=4)
    save(model_of([node], {"x": [5, 2, 3]}, {"y": [1, 2, 4]}, arrays), tmp_path / "m.onnx")
    if wrong is None:
        import_model(tmp_path / "m.onnx")
        return
    with pytest.raises(ModelError, match=f"{operator} node 'cell' does not take"):
        import_model(tmp_path / "m.onnx")


def test_flags_of_a_choice_are_a_row(tmp_path):
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "zero"], ["flag"]),
        helper.make_node("Compress", ["x", "flag"], ["y"], name="choice", axis=0),
    ]
    save(model_of(nodes, {"x": [3, 4]}, ["y"], {"zero": np.float32(0)}), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="Compress node 'choice' does not take float32 3x4 and bool scalar"):
        import_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("before", ["Relu", "NonZero"])
@pytest.mark.parametrize("order", [[0], [1, 0, 2]])
def test_an_order_of_axes_has_each_of_them(tmp_path, before, order):
    nodes = [
        helper.make_node(before, ["x"], ["v"]),
        helper.make_node("Transpose", ["v"], ["t"], name="turn", perm=order),
        helper.make_node("Cast", ["t"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["f"], ["y"], keepdims=0),
    ]
    save(model_of(nodes, {"x": [3, 4]}, ["y"]), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="Transpose node 'turn' does not take"):
        import_model(tmp_path / "m.onnx")


@pytest.mark.parametrize(("groups", "filters"), [(1, 24), (2, 24), (2, 23), (3, 24), (8, 24), ((1 << 63) - 1, 24)])
def test_groups_of_a_convolution_have_the_channels_of_its_weights(tmp_path, groups, filters):
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="layer", group=groups)]
    save(
        model_of(nodes, {"x": [1, 8, 5, 5]}, ["y"], {"w": np.ones((filters, 4, 1, 1), np.float32)}), tmp_path / "m.onnx"
    )
    if (groups, filters) == (2, 24):
        import_model(tmp_path / "m.onnx")
        return
    with pytest.raises(ModelError, match="Conv node 'layer' does not take"):
        import_model(tmp_path / "m.onnx")
