"""Read an ONNX file, or say in one sentence why it cannot be read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...errors import ModelError
from ..source.import_options import ImportOptions
from ..source.keep_outputs import keep_outputs
from ..source.model_file import parse_file
from ..source.side_files import load_side_files, messages_of, tensors_of
from .node_builder import inner_graphs
from .zip_maps import unzip_maps

if TYPE_CHECKING:
    import onnx

#: the newest operator set ONNX Runtime runs the reference with, and reads an undeclared one in
NEWEST = 26
#: names of ONNX's own domain
ONNX_DOMAINS = frozenset({"", "ai.onnx"})
#: ONNX's domain of classical machine learning
CLASSICAL = "ai.onnx.ml"
#: ONNX Runtime's own domain, whose operators it reads without a declaration
CONTRIB = "com.microsoft"
#: bytes of a constant at most that nodes compute: import folds it, or a library would store it; elements of a sparse one
CONSTANT_LIMIT = 1 << 30
_AGAIN = "Export or download the model again."

#: first bytes of files that other frameworks keep models in
_FORMATS = (
    (0, b"PK\x03\x04", "a zip file, as PyTorch and Keras save models"),
    (0, b"\x89HDF", "an HDF5 file, as Keras saves models"),
    (4, b"TFL3", "a model of TensorFlow Lite"),
    (0, b"\x80", "a pickle, as scikit-learn and PyTorch save models"),
)


def read_model(path: Path, options: ImportOptions = ImportOptions()) -> onnx.ModelProto:
    """Read the model in the file `path`, with its side files, and maps as tables.

    Of the results that `options` name as outputs, if any, it keeps these alone, and what they need. Raises ModelError for a missing, empty,
    truncated or foreign file, a directory, a missing side file, or a name that is not of a result.
    """
    import google.protobuf.message

    if path.is_dir():
        raise ModelError(f"The model '{path}' is a directory.", "Name an .onnx file.")
    try:
        if path.stat().st_size == 0:
            raise ModelError(f"The model file '{path}' is empty.", _AGAIN)
        model = parse_file(path)
    except OSError as error:
        raise ModelError(f"The model '{path}' cannot be read: {error.strerror}.", "Check the path.") from error
    except google.protobuf.message.DecodeError as error:
        raise _no_model(path, ", or is cut short") from error
    if not model.graph.output or not model.ir_version:
        raise _no_model(path, ": it holds no graph with outputs")
    load_side_files(model, path)
    _write_dense(model)
    _write_raw(model, path)
    for body in (model.graph, *model.functions):
        _refuse_bytes(all_nodes(body))
    for function in model.functions:
        _refuse_twice(function.node, function.input)
    _refuse_dangling(model.graph, frozenset(), set())
    unzip_maps(model, CLASSICAL)
    keep_outputs(model, options.outputs)
    return model


def _no_model(path: Path, why: str) -> ModelError:
    """Return the error of a file that is not ONNX; one of another framework is called by its name."""
    with path.open("rb") as opened:
        content = opened.read(max(at + len(magic) for at, magic, _ in _FORMATS))
    for at, magic, words in _FORMATS:
        if content.startswith(magic, at):
            return ModelError(
                f"The file '{path}' is not an ONNX model, but {words}.", "Export it: see docs/exporting.md."
            )
    return ModelError(f"The file '{path}' is not an ONNX model{why}.", _AGAIN)


def _write_dense(message: Any) -> None:
    """Write, in place, sparse constants of graphs and of Constant nodes as dense ones. Raises ModelError."""
    from onnx import AttributeProto

    for graph in messages_of(message, "GraphProto"):
        graph.initializer.extend(_dense(each, each.values.name) for each in graph.sparse_initializer)
        del graph.sparse_initializer[:]
    for attribute in messages_of(message, "AttributeProto"):
        if attribute.HasField("sparse_tensor"):
            attribute.CopyFrom(
                AttributeProto(name="value", type=AttributeProto.TENSOR, t=_dense(attribute.sparse_tensor, ""))
            )


def _dense(sparse: onnx.SparseTensorProto, name: str) -> onnx.TensorProto:
    """Return a sparse constant as a dense one; places are numbers of elements, or an index for each axis."""
    from onnx import numpy_helper

    if math.prod(sparse.dims) > CONSTANT_LIMIT:
        raise ModelError(
            f"The sparse constant '{name}' has {math.prod(sparse.dims)} elements.", "Export it with dense weights."
        )
    try:
        numbers, places = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
        dense = np.zeros(tuple(sparse.dims), numbers.dtype)
        if len(places) != len(numbers):
            raise ValueError("other numbers than places")
        dense[np.unravel_index(places, dense.shape) if places.ndim == 1 else tuple(places.T)] = numbers
    except (LookupError, TypeError, ValueError) as error:
        raise ModelError(
            f"The numbers and places of the sparse constant '{name}' do not belong together.", _AGAIN
        ) from error
    return numpy_helper.from_array(dense, name)


def _write_raw(model: onnx.ModelProto, path: Path) -> None:
    """Write, in place, the numbers of every tensor as bytes: libraries differ in how they read the other fields.

    Numbers of less than a byte are packed there, and narrow floats are written as integers.
    """
    from onnx import TensorProto, numpy_helper

    numeric = {*TensorProto.DataType.values()} - {TensorProto.UNDEFINED, TensorProto.STRING}
    whole = {getattr(TensorProto, name.upper()): np.iinfo(name) for name in ("int8", "uint8", "int16", "uint16")}
    for tensor in tensors_of(model):
        if tensor.data_type not in TensorProto.DataType.values():
            raise ModelError(
                f"The model '{path}' holds a constant '{tensor.name}' of dtype number {tensor.data_type}, which ONNX does not define.",
                _AGAIN,
            )
        if tensor.data_type not in numeric:
            continue
        limits = whole.get(tensor.data_type)
        outside = [each for each in tensor.int32_data if limits and not limits.min <= each <= limits.max]
        if outside and limits:
            raise ModelError(
                f"The constant '{tensor.name}' of the model '{path}' holds {outside[0]}, outside of {limits.min} to {limits.max}.",
                _AGAIN,
            )
        try:
            numbers = numpy_helper.to_array(tensor)
            if numbers.shape != (*tensor.dims,):  # numpy takes -1 for the rest
                raise ValueError("a negative size")
            if not tensor.HasField("raw_data"):
                tensor.CopyFrom(numpy_helper.from_array(numbers, tensor.name))
        except (TypeError, ValueError) as error:
            shape = "x".join(map(str, tensor.dims)) or "scalar"
            raise ModelError(
                f"The model '{path}' holds a constant '{tensor.name}' whose numbers are not those of its shape {shape}.",
                _AGAIN,
            ) from error


def _refuse_bytes(nodes: Iterable[onnx.NodeProto]) -> None:
    """Refuse texts of attributes that are not UTF-8. Raises ModelError for the first."""
    for node in nodes:
        for attribute in node.attribute:
            try:
                for text in (attribute.s, *attribute.strings):
                    text.decode()
            except UnicodeDecodeError:
                refuse(node, f"has the attribute '{attribute.name}', whose text is not UTF-8", _AGAIN)


def _refuse_twice(nodes: Iterable[onnx.NodeProto], made: Iterable[str]) -> None:
    """Refuse a second value of one name: raise ModelError for the node that makes it."""
    known = set(made)
    for node in nodes:
        for name in filter(None, node.output):
            if name in known:
                refuse(node, f"makes '{name}', and another value has that name already", _AGAIN)
            known.add(name)


def _refuse_constants(constants: Iterable[onnx.TensorProto], outer: Iterable[str]) -> None:
    """Refuse constants of one name that differ, or of a name from outside: raise ModelError for the first.

    ONNX forbids both; ONNX Runtime takes either of two, by their size, and the outer value.
    """
    known: dict[str, onnx.TensorProto | None] = dict.fromkeys(outer)
    for tensor in constants:
        if known.setdefault(tensor.name, tensor) != tensor:
            raise ModelError(f"The constant '{tensor.name}' has the name of another value.", _AGAIN)


def _refuse_dtypes(values: Iterable[onnx.ValueInfoProto]) -> None:
    """Refuse values of dtypes that ONNX does not define. Raises ModelError for the first."""
    from onnx import TensorProto

    for value in values:
        if (number := value.type.tensor_type.elem_type) not in TensorProto.DataType.values():
            raise ModelError(
                f"The value '{value.name}' has the dtype number {number}, which ONNX does not define.", _AGAIN
            )


def _refuse_dangling(graph: onnx.GraphProto, outer: frozenset[str], before: Set[str]) -> None:
    """Refuse reads of values nothing makes, and values of one name: raise ModelError for the first node or output.

    `outer` are the values visible from outside of a subgraph, `before` those of nodes before it.
    """
    _refuse_twice(graph.node, {*before, *(each.name for each in (*graph.input, *graph.initializer))})
    _refuse_dtypes((*graph.input, *graph.output, *graph.value_info))
    _refuse_constants(graph.initializer, outer)
    made = outer.union(
        (value.name for value in graph.input),
        (tensor.name for tensor in graph.initializer),
        (name for node in graph.node for name in node.output),
    )
    earlier = set(before)
    for node in graph.node:
        for name in node.input:
            if name and name not in made:
                refuse(node, f"reads '{name}', which nothing makes", _AGAIN)
        for inner in inner_graphs(node):
            _refuse_dangling(inner, made, earlier)
        earlier.update(filter(None, node.output))
    for value in graph.output:
        if value.name not in made:
            raise ModelError(f"The output '{value.name}' is made by no node.", _AGAIN)


def all_nodes(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """Yield every node of a graph or function, nodes of subgraphs (`If`, `Loop` …) after their owner."""
    for node in graph.node:
        yield node
        for inner in inner_graphs(node):
            yield from all_nodes(inner)


def operator_set(imports: Iterable[onnx.OperatorSetIdProto], undeclared: int = NEWEST, *, domain: str = "") -> int:
    """Return the version of a domain, by default ONNX's own, that `opset_import` declares: as for ONNX Runtime, its last one."""
    names = ONNX_DOMAINS if domain in ONNX_DOMAINS else {domain}
    return next((each.version for each in reversed([*imports]) if each.domain in names), undeclared)


def declare_set(imports: Iterable[onnx.OperatorSetIdProto], version: int) -> None:
    """Write, in place, the version of ONNX's own operators wherever `opset_import` declares one."""
    for each in imports:
        if each.domain in ONNX_DOMAINS:
            each.version = version


def metadata_of(model: onnx.ModelProto) -> dict[str, str]:
    """Return the metadata of a model by key."""
    return {entry.key: entry.value for entry in model.metadata_props}


def add_metadata(model: onnx.ModelProto, entries: Mapping[str, str]) -> None:
    """Write entries into the metadata of a model, in place; others stay."""
    from onnx import helper

    helper.set_model_props(model, metadata_of(model) | dict(entries))


def advice_on(domain: str, others: Iterable[str] = ()) -> str:
    """Return the next step for a node of a foreign domain that cannot be compiled; `others` are outputs without it."""
    names = " --output ".join(others) or "NAME"
    if domain == CLASSICAL:
        return (
            "Choose an estimator of another kind: scalers, linear models, support vectors, neural networks, trees and forests, "
            f"boosted or not, with numbers as categories and classes, or keep the probabilities alone: --output {names}."
        )
    return "Export the model with ONNX's own operators only."


def node_title(node: onnx.NodeProto) -> str:
    """Return a node's name for messages: operator and name, else first output."""
    return f"{node.op_type} node '{node.name or next(iter(node.output), None)}'"


def refuse(node: onnx.NodeProto, what: str, step: str = "Export the model again.") -> NoReturn:
    """Raise the ModelError of a node; `what` is wrong with it is said as the end of a sentence."""
    raise ModelError(f"The {node_title(node)} {what}.", step)
