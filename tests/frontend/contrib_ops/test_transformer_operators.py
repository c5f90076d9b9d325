"""Operators of ONNX Runtime's transformer optimiser compute the same in ONNX's own; ONNX Runtime runs both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model
from passfit.frontend.imported_model import import_onnx

from ...models import model_of, run, save
from .transformer_operators import CASES, VENDOR

#: outputs of integers
_INTEGERS = {"EmbedLayerNormalization": ["z"], "EmbedLayerNormalization without segments": ["z"]}


def _model(name: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    node, constants, inputs = CASES[name]
    shapes = {key: value.shape for key, value in inputs.items()}
    dtypes = {key: helper.np_dtype_to_tensor_dtype(value.dtype) for key, value in inputs.items()}
    outputs = [each for each in node.output if each]
    dtypes |= {each: TensorProto.INT32 if each in _INTEGERS.get(name, []) else TensorProto.FLOAT for each in outputs}
    return model_of([node], shapes, outputs, constants, dtypes=dtypes, domain=VENDOR, opset=16), inputs


@pytest.mark.parametrize("name", CASES)
def test_an_operator_of_transformers_computes_the_same_in_onnx(tmp_path: Path, name: str) -> None:
    model, inputs = _model(name)
    imported = import_model(save(model, tmp_path))
    assert {each.domain for each in imported.graph.node} == {""}
    for found, expected in zip(run(imported, inputs), run(model, inputs), strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_a_file_need_not_import_the_domain(tmp_path: Path, name: str) -> None:
    """ONNX Runtime reads it in its newest version; the figures of the file are the same, too."""
    model, inputs = _model(name)
    declared = import_onnx(save(model, tmp_path, "declared.onnx"))
    del model.opset_import[1:]
    found, start = import_onnx(save(model, tmp_path))
    run(model, inputs)
    assert (found.graph, start) == (declared[0].graph, declared[1])


def test_an_old_operator_may_read_what_a_vendors_makes(tmp_path: Path) -> None:
    """Softmax of set 11 needs the rank of its operand; ONNX knows no type that an operator of a vendor makes."""
    nodes = [
        helper.make_node("FastGelu", ["x"], ["g"], domain=VENDOR),
        helper.make_node("Softmax", ["g"], ["s"], axis=-1),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    model = model_of(nodes, {"x": [2, 3, 4]}, {"y": [2, 3, 4]}, domain=VENDOR, opset=11)
    x = {"x": np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)}
    np.testing.assert_allclose(run(import_model(save(model, tmp_path)), x)[0], run(model, x)[0], rtol=1e-5)


def test_attention_with_a_cache_is_refused_by_name(tmp_path: Path) -> None:
    node, constants, inputs = CASES["Attention"]
    cached = type(node).FromString(node.SerializeToString())
    cached.input.extend(["", "past"])
    cached.output.append("present")
    shapes = {"x": inputs["x"].shape, "past": (2, 2, 2, 3, 4)}
    model = model_of([cached], shapes, ["y", "present"], constants, domain=VENDOR)
    with pytest.raises(
        ModelError, match="Attention node 'attention' cannot be compiled: its input 'past' is not supported"
    ):
        import_model(save(model, tmp_path))
