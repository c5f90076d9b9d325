"""A model read and written in parts is the one read and written whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import helper
from onnx.helper import make_node as node

from passfit.frontend.source import model_file
from passfit.frontend.source.model_file import parse_file, serialise

from ...models import model_of


def _model() -> onnx.ModelProto:
    values = helper.make_tensor("held", onnx.TensorProto.FLOAT, [2], [1.0, 2.0])
    nodes = [node("Constant", [], ["c"], value=values), node("Add", ["x", "c"], ["s"]), node("Mul", ["s", "w"], ["y"])]
    model = model_of(nodes, {"x": [3, 2]}, ["y"], {"w": np.ones((3, 2), np.float32), "unread": np.arange(300)})
    model.graph.initializer[1].float_data.extend([0.5] * 3)
    model.doc_string, model.producer_name = "words", "tests"
    model.metadata_props.add(key="licence", value="MIT")
    return model


@pytest.mark.parametrize("large", [1, 40, 1 << 20])
def test_parts_make_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    monkeypatch.setattr(model_file, "_LARGE", large)
    (file := tmp_path / "m.onnx").write_bytes(content := _model().SerializeToString(deterministic=True))
    assert parse_file(file) == _model()
    assert b"".join(serialise(_model())) == content


def test_a_graph_in_two_fields_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "_LARGE", 1)
    first, second = _model(), onnx.ModelProto(ir_version=9)
    second.graph.node.append(node("Relu", ["y"], ["z"]))
    (file := tmp_path / "m.onnx").write_bytes(content := first.SerializeToString() + second.SerializeToString())
    assert parse_file(file) == onnx.ModelProto.FromString(content)
    assert [each.op_type for each in parse_file(file).graph.node] == ["Constant", "Add", "Mul", "Relu"]


def test_what_is_no_message_is_refused_as_by_protobuf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "_LARGE", 1)
    whole, file = _model().SerializeToString(), tmp_path / "m.onnx"
    for content in (*(whole[:end] for end in range(0, len(whole), 7)), b"\x80" * 100, b"\x3b\x01" * 9, whole + b"\x07"):
        file.write_bytes(content)
        try:
            expected = onnx.ModelProto.FromString(content)
        except DecodeError:
            with pytest.raises(DecodeError):
                parse_file(file)
        else:
            assert parse_file(file) == expected
