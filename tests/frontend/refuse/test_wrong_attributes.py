"""Check that attributes which ONNX does not define, or no tensor has, are refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, save

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model

from ...models import model_of


def test_an_attribute_that_onnx_does_not_define_is_refused_as_in_onnx_runtime(tmp_path):
    for name in ("axsi", "__note"):
        model = model_of([helper.make_node("Softmax", ["x"], ["y"], **{name: 1})], {"x": [2, 3]}, {"y": [2, 3]})
        save(model, tmp_path / f"{name}.onnx")
    with pytest.raises(
        ModelError, match="Softmax node 'y' has an attribute 'axsi', which operator set 17 does not define"
    ):
        import_model(tmp_path / "axsi.onnx")
    assert [each.op_type for each in import_model(tmp_path / "__note.onnx").graph.node] == ["Softmax"]


@pytest.mark.parametrize("axis", [-(1 << 63), 1 << 32, (1 << 63) - 1])
@pytest.mark.parametrize("operator", ["Compress", "Gather", "GatherElements", "Softmax", "Squeeze"])
def test_an_axis_beyond_every_rank_is_refused(tmp_path, operator, axis):
    """ONNX's inference and ONNX Runtime take the low bits of it: axis 0."""
    second = {
        "Compress": np.array([True, False]),
        "Gather": np.int64([0]),
        "GatherElements": np.zeros((1, 3), np.int64),
    }
    operands = ["x", "s"] if operator in second else ["x"]
    axes = {"axes": [axis]} if operator == "Squeeze" else {"axis": axis}
    node = helper.make_node(operator, operands, ["y"], name="far", **axes)
    weights = {"s": second[operator]} if operator in second else {}
    save(model_of([node], {"x": [1, 3]}, ["y"], weights, opset=11), tmp_path / "m.onnx")
    with pytest.raises(
        ModelError, match=f"{operator} node 'far' has {next(iter(axes))}=.*{axis}.*, which no tensor has"
    ):
        import_model(tmp_path / "m.onnx")
