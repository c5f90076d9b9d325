"""Poolings that round up have no window that starts in padding: sizes and values are ONNX Runtime's, also of later poolings."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model

from ....models import run, save


def pooling(op, size, attributes, opset=13, twice=False):
    nodes = [helper.make_node(op, ["x"], ["y"], ceil_mode=1, **attributes)]
    nodes += [helper.make_node(op, ["y"], ["z"], ceil_mode=1, **attributes)] if twice else []
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 2, *size))
    graph = helper.make_graph(
        nodes, "pooling", [x], [helper.make_tensor_value_info("z" if twice else "y", TensorProto.FLOAT, None)]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


FORMS = {
    "gaps": ((6,), {"kernel_shape": [1], "strides": [3]}),
    "padded": ((5,), {"kernel_shape": [2], "strides": [3], "pads": [1, 1]}),
    "wide strides": ((6,), {"kernel_shape": [2], "strides": [4], "pads": [1, 1]}),
    "a window past the end": ((7,), {"kernel_shape": [2], "strides": [3]}),
    "one axis of two": ((6, 7), {"kernel_shape": [1, 2], "strides": [3, 3]}),
    "exact": ((4,), {"kernel_shape": [2], "strides": [2], "pads": [0, 1]}),
    "valid": ((6,), {"kernel_shape": [1], "strides": [3], "auto_pad": "VALID"}),
}


@pytest.mark.parametrize("opset", [13, 22])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("form", FORMS)
def test_sizes_and_values_are_those_of_onnx_runtime(op, form, opset, tmp_path):
    size, attributes = FORMS[form]
    model = pooling(op, size, attributes, opset)
    imported = import_model(save(model, tmp_path))
    x = {"x": np.random.default_rng(1).standard_normal((1, 2, *size)).astype(np.float32)}
    (wanted,), (found,) = run(model, x), run(imported, x)
    shape = [dim.dim_value for dim in imported.graph.output[0].type.tensor_type.shape.dim]
    assert shape == list(wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_older_inference_agrees_from_then_on(tmp_path):
    imported = import_model(
        save(pooling("MaxPool", (27,), {"kernel_shape": [1], "strides": [3]}, twice=True), tmp_path)
    )
    assert [dim.dim_value for dim in imported.graph.output[0].type.tensor_type.shape.dim] == [1, 2, 3]
    assert not any(each.name == "ceil_mode" for node in imported.graph.node for each in node.attribute)


def test_padding_that_counts_rounds_up_or_down_along_all_axes(tmp_path):
    attributes = {"kernel_shape": [1, 2], "strides": [3, 3], "count_include_pad": 1}
    with pytest.raises(ModelError, match="rounds up along one axis"):
        import_model(save(pooling("AveragePool", (6, 7), attributes), tmp_path))
    onnx.checker.check_model(
        import_model(save(pooling("AveragePool", (6, 6), {**attributes, "kernel_shape": [1, 1]}), tmp_path))
    )
