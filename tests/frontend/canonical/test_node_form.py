"""Check what is said of a node that inference refuses."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import canonicalize

from ...models import model_of


def convolution(opset: int) -> onnx.ModelProto:
    """Build a convolution in bfloat16, as PyTorch's exporters write it in any operator set."""
    weights = helper.make_tensor("w", TensorProto.BFLOAT16, [2, 1, 3, 3], np.ones(18, np.float32))
    nodes = [
        helper.make_node("Cast", ["x"], ["half"], to=TensorProto.BFLOAT16),
        helper.make_node("Constant", [], ["w"], value=weights),
        helper.make_node("Conv", ["half", "w"], ["z"], name="conv"),
        helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT),
    ]
    return model_of(nodes, {"x": (1, 1, 5, 5)}, ["y"], {}, opset=opset)


def test_a_dtype_of_a_newer_operator_set_names_that_set() -> None:
    with pytest.raises(ModelError, match="The Conv node 'conv' takes no bfloat16 in operator set 20") as error:
        canonicalize(convolution(20))
    (newer,) = re.findall(r"with operator set (\d+)", error.value.hint)
    assert canonicalize(convolution(int(newer)))


def test_a_dtype_of_no_operator_set_names_those_there_are() -> None:
    places = {"i": np.zeros((2, 1), np.int32), "v": np.ones((2, 3), np.float32)}
    model = model_of(
        [helper.make_node("ScatterND", ["x", "i", "v"], ["y"], name="put")], {"x": (4, 3)}, ["y"], places, opset=20
    )
    with pytest.raises(ModelError, match="The ScatterND node 'put' takes no int32 in operator set 20") as error:
        canonicalize(model)
    assert error.value.hint == "Cast it to int64 before."
