"""Sequences of constant length become their elements; ONNX Runtime runs both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model

from ....models import model_of, run, save

CONSTANTS = {
    "first": np.int64(0),
    "last": np.int64(-1),
    "two": np.int64(2),
    "parts": np.array([1, 3]),
    "far": np.int64(9),
}


def _node(op: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], name=f"{op}_{output}", **attributes)


CHAINS = {
    "empty, then grown": [
        _node("SequenceEmpty", "", "s", dtype=TensorProto.FLOAT), _node("SequenceInsert", "s x", "t"), _node("Neg", "x", "n"),
        _node("SequenceInsert", "t n first", "u"), _node("ConcatFromSequence", "u", "y", axis=-1),
    ],
    "stacked": [
        _node("Neg", "x", "n"), _node("SequenceConstruct", "x n x", "s"), _node("SequenceErase", "s first", "t"),
        _node("ConcatFromSequence", "t", "y", axis=1, new_axis=1),
    ],
    "split by lengths": [_node("SplitToSequence", "x parts", "s", axis=0), _node("SequenceErase", "s", "t"), _node("SequenceAt", "t last", "y")],
    "split by a size": [_node("SplitToSequence", "x two", "s", axis=-1), _node("SequenceInsert", "s x last", "t"), _node("SequenceAt", "t last", "y")],
    "split into rows": [
        _node("SplitToSequence", "x", "s", keepdims=0), _node("SequenceErase", "s two", "u"),
        _node("ConcatFromSequence", "u", "y", axis=0, new_axis=1),
    ],
    "counted": [
        _node("SequenceConstruct", "x x", "s"), _node("SequenceInsert", "s x", "t"), _node("SequenceLength", "t", "n"),
        _node("Cast", "n", "f", to=TensorProto.FLOAT), _node("Mul", "x f", "y"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("name", CHAINS)
def test_a_sequence_of_constant_length_is_its_elements(tmp_path: Path, name: str, opset: int) -> None:
    read = {each for node in CHAINS[name] for each in node.input}
    model = model_of(
        CHAINS[name], {"x": [4, 6]}, ["y"], {key: value for key, value in CONSTANTS.items() if key in read}, opset=opset
    )
    x = {"x": np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)}
    (found,), (expected,) = run(import_model(save(model, tmp_path)), x), run(model, x)
    np.testing.assert_array_equal(found, expected)


def test_a_place_that_a_sequence_lacks_is_refused(tmp_path: Path) -> None:
    nodes = [
        _node("SequenceEmpty", "", "s"),
        _node("SequenceInsert", "s x", "t"),
        _node("SequenceErase", "t far", "u"),
        _node("SequenceAt", "u first", "y"),
    ]
    model = model_of(nodes, {"x": [4, 6]}, ["y"], {key: CONSTANTS[key] for key in ("far", "first")})
    with pytest.raises(ModelError, match="SequenceErase node 'SequenceErase_u' takes place 9 of a sequence of 1"):
        import_model(save(model, tmp_path))
