"""Read an ONNX file, or say in one sentence why it cannot be read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ModelError
from ..source.keep_outputs import keep_outputs
from ..source.side_files import load_side_files, tensors_of
from .zip_maps import unzip_maps

if TYPE_CHECKING:
    import onnx

#: the newest operator set ONNX Runtime runs the reference with, and reads an undeclared one in
NEWEST = 26
#: names of ONNX's own domain
ONNX_DOMAINS = frozenset({"", "ai.onnx"})
#: ONNX's domain of classical machine learning
CLASSICAL = "ai.onnx.ml"
_AGAIN = "Export or download the model again."


def read_model(path: Path, outputs: Collection[str] = ()) -> onnx.ModelProto:
    """Read the model in the file `path`, with its side files, and maps as tables.

    Of `outputs`, if any are named, it keeps these alone, and what they need. Raises ModelError for a missing, empty,
    truncated or foreign file, a directory, a missing side file, or a name that is not an output.
    """
    import google.protobuf.message
    import onnx

    if path.is_dir():
        raise ModelError(f"The model '{path}' is a directory.", "Name an .onnx file.")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"The model '{path}' cannot be read: {error.strerror}.", "Check the path.") from error
    if not content:
        raise ModelError(f"The model file '{path}' is empty.", _AGAIN)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except google.protobuf.message.DecodeError as error:
        raise ModelError(f"The file '{path}' is not an ONNX model, or is cut short.", _AGAIN) from error
    if not model.graph.output or not model.ir_version:
        raise ModelError(f"The file '{path}' is not an ONNX model: it holds no graph with outputs.", _AGAIN)
    load_side_files(model, path)
    _write_raw(model, path)
    # Names that are not UTF-8 come as bytes.
    if not all(
        isinstance(text, str) for node in all_nodes(model.graph) for text in (node.name, node.op_type, node.domain)
    ):
        raise ModelError(f"The model '{path}' holds names that are not text.", _AGAIN)
    if model.graph.sparse_initializer:
        name = model.graph.sparse_initializer[0].values.name
        raise ModelError(f"The model '{path}' holds sparse weights '{name}'.", "Export it with dense weights.")
    _refuse_dangling(model.graph, frozenset())
    unzip_maps(model, CLASSICAL)
    keep_outputs(model, outputs)
    return model


def _write_raw(model: onnx.ModelProto, path: Path) -> None:
    """Write, in place, the numbers of every tensor as bytes: libraries differ in how they read the other fields.

    Numbers of less than a byte are packed there, and narrow floats are written as integers.
    """
    from onnx import numpy_helper

    for tensor in tensors_of(model):
        if tensor.HasField("raw_data") or tensor.data_type in (tensor.UNDEFINED, tensor.STRING):
            continue
        try:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
        except (TypeError, ValueError) as error:
            shape = "x".join(map(str, tensor.dims)) or "scalar"
            raise ModelError(
                f"The model '{path}' holds a constant '{tensor.name}' whose numbers are not those of its shape {shape}.",
                _AGAIN,
            ) from error


def _refuse_dangling(graph: onnx.GraphProto, outer: frozenset[str]) -> None:
    """Refuse reads of values nothing makes: raise ModelError for the first node or output.

    `outer` are the values visible from outside of a subgraph.
    """
    made = outer.union(
        (value.name for value in graph.input),
        (tensor.name for tensor in graph.initializer),
        (tensor.values.name for tensor in graph.sparse_initializer),
        (name for node in graph.node for name in node.output),
    )
    for node in graph.node:
        for name in node.input:
            if name and name not in made:
                raise ModelError(f"The {node_title(node)} reads '{name}', which nothing makes.", _AGAIN)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _refuse_dangling(attribute.g, made)
    for value in graph.output:
        if value.name not in made:
            raise ModelError(f"The output '{value.name}' is made by no node.", _AGAIN)


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield every node of a graph, nodes of subgraphs (`If`, `Loop` …) after their owner."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g)
            for inner in attribute.graphs:
                yield from all_nodes(inner)


def operator_set(imports: Iterable[onnx.OperatorSetIdProto], undeclared: int = NEWEST) -> int:
    """Return the version of ONNX's own operators that `opset_import` declares: as for ONNX Runtime, its last one."""
    return next((each.version for each in reversed([*imports]) if each.domain in ONNX_DOMAINS), undeclared)


def declare_set(imports: Iterable[onnx.OperatorSetIdProto], version: int) -> None:
    """Write, in place, the version of ONNX's own operators wherever `opset_import` declares one."""
    for each in imports:
        if each.domain in ONNX_DOMAINS:
            each.version = version


def advice_on(domain: str) -> str:
    """Return the next step for a node of a foreign domain that cannot be compiled."""
    if domain == CLASSICAL:
        return (
            "Choose an estimator of another kind: scalers, linear models, support vectors, neural networks, trees and forests, "
            "boosted or not, with numbers as categories and classes, or keep the probabilities alone by --output."
        )
    return "Export the model with ONNX's own operators only."


def node_title(node: onnx.NodeProto, index: int | None = None) -> str:
    """Return a node's name for messages: operator and name, else first output."""
    return f"{node.op_type} node '{node.name or next(iter(node.output), index)}'"
