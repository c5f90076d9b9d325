"""A model read and written in parts is the one read and written whole."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import helper
from onnx.helper import make_node as node

from passfit.errors import ModelError
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


def test_a_file_of_zeros_is_refused_at_its_first_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, numbers = model_file._read_number, list[int]()

    def note(opened: IO[bytes]) -> int:
        numbers.append(read(opened))
        return numbers[-1]

    monkeypatch.setattr(model_file, "_read_number", note)
    (file := tmp_path / "m.onnx").write_bytes(bytes(1 << 12))
    with pytest.raises(DecodeError):
        parse_file(file)
    assert numbers == [0, 0]


@pytest.mark.parametrize("large", [1, 1 << 20])
def test_bytes_that_are_not_utf8_become_escapes_in_every_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(model_file, "_LARGE", large)
    model = _model()
    model.graph.node.append(helper.make_node("Relu", ["s"], ["tail@@"], name="n@@", doc_string="d@@", k=["a", "b"]))
    model.graph.initializer[0].name = model.graph.node[-2].input[1] = "w@@"
    model.doc_string, model.producer_version, model.domain, model.graph.name = "m@@", "v@@", "o@@", "g@@"
    model.graph.input[0].doc_string = model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "i@@"
    model.metadata_props.add(key="k@@", value="v@@")
    content = model.SerializeToString(deterministic=True)
    (file := tmp_path / "m.onnx").write_bytes(content.replace(b"@@", b"\xe9\xe8"))
    assert str(parse_file(file)) == str(model).replace("@@", r"\\xe9\\xe8")
    assert b"".join(serialise(parse_file(file))) == parse_file(file).SerializeToString(deterministic=True)


@pytest.mark.parametrize("port", ["x", "y"])
def test_a_port_whose_name_is_not_utf8_is_refused(tmp_path: Path, port: str) -> None:
    model = model_of([node("Relu", ["x"], ["y"])], {"x": [2]}, ["y"])
    for value in (*model.graph.input, *model.graph.output):
        value.name = "por@@" if value.name == port else value.name
    (file := tmp_path / "m.onnx").write_bytes(model.SerializeToString().replace(b"por@@", b"por\xe9\xe8"))
    with pytest.raises(ModelError, match=r"'por\\xe9\\xe8' of the model .* is not UTF-8"):
        parse_file(file)
