"""Bound results of data-dependent length, and pass the length to the nodes that read them.

    boxes ─► NonMaxSuppression ─► Gather ─► y          y: [100, 4] with zeros behind; y_length: [1]

Nodes are walked in order. One that chooses is replaced by operators with static results (choose.py, suppress.py); one that reads
such a value works on its bound, and its rule (readers.py) says along which axis the result is open, or refuses it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from ....errors import ModelError, did_you_mean
from ..clean_names import restore_ports
from ..graph_context import context_of
from ..node_builder import NodeBuilder, inner_graphs, replace_nodes, stem_of
from ..ports.apply import Forms
from ..ports.values import rename_result
from ..read_onnx import all_nodes, node_title, refuse
from ..shapes import inference_failures, static_shape
from .choices import CHOICES
from .extent import Extent
from .needed_rows import needed_rows
from .open_graph import OpenGraph, Reader, mask, opened
from .readers import READERS

if TYPE_CHECKING:
    import onnx

#: operators whose data decide the length of their result; TopK is one if its number is an input
CHOOSES = frozenset({"Compress", "NonMaxSuppression", "NonZero", "Unique"})
_LENGTH = "_length"
#: bound at most of a number: rows are numbered, 128 MiB of them
_MOST = 1 << 24
#: elements at most of a constant that is compared with others
_SMALL = 64


def bound_lengths(
    model: onnx.ModelProto, bounds: Mapping[str, int], forms: dict[str, Forms], ports: tuple[list[str], list[str]]
) -> onnx.ModelProto:
    """Bound data-dependent lengths in `model` (with inferred shapes); return `model` itself without any.

    `bounds` lowers the bound of results by name, and gives one to numbers that decide lengths; `ports` are the names of inputs
    and outputs in the file. Outputs of such a length get another output beside them, int64 [1], called NAME_length, and `forms`
    of the ports say so. Raises ModelError for a node that cannot work on a bound.
    """
    graph = OpenGraph(**vars(context_of(model)))
    if not any(_chooses(node, graph) or not bounds.keys().isdisjoint(node.output) for node in model.graph.node):
        _refuse_unknown(bounds, [])
        return model
    result = deepcopy(model)
    restore_ports(result, *ports)
    walk = _Walk(result, bounds)
    for index, node in enumerate(result.graph.node):
        walk.add(node, index)
    _refuse_unknown(bounds, walk.chosen)
    replace_nodes(result.graph, walk.nodes)
    _write_outputs(result, walk, forms)
    return result


def _refuse_unknown(bounds: Mapping[str, int], known: list[str]) -> None:
    for name in bounds:
        if name not in known:
            has = f"those of {', '.join(known)}" if known else "none"
            raise ModelError(f"The data decide no length '{name}'; they decide {has}.", did_you_mean(name, known))


def _chooses(node: onnx.NodeProto, graph: OpenGraph) -> bool:
    if node.op_type == "TopK":
        return len(node.input) > 1 and graph.sizes_of(node.input[1]) is None
    return node.op_type in CHOOSES


class _Walk:
    """Collect the new nodes, with types, sizes and open extents of their values."""

    def __init__(self, model: onnx.ModelProto, bounds: Mapping[str, int]):
        self.model, self.bounds = model, bounds
        self.graph = OpenGraph(**vars(context_of(model)))
        self.nodes: list[onnx.NodeProto] = []
        self.chosen: list[str] = []
        #: results of nodes that choose, by what they choose: exporters write x[mask], y[mask] with one NonZero each
        self._made: dict[tuple[object, ...], list[str]] = {}
        #: results of nodes, by operator and operands; the first of equal values: exporters write x[mask] with a mask each
        self._results: dict[tuple[object, ...], Sequence[str]] = {}
        self._first: dict[str, str] = {}

    def add(self, node: onnx.NodeProto, index: int) -> None:
        """Add a node, or its replacements, and the types of its results."""
        build = NodeBuilder(stem_of(node, index), self.graph.names)
        reader = Reader(node, self.graph, build)
        if _chooses(node, self.graph):
            self._choose(reader)
            return
        attributes = sorted(each.SerializeToString(deterministic=True) for each in node.attribute)
        key = (node.op_type, tuple(map(bool, node.output)), *map(self._value_of, node.input), *attributes)
        self._first.update(zip(node.output, self._results.setdefault(key, node.output)))
        if any(reader.opens) or reader.has_open_shape:
            if node.op_type not in READERS:
                reader.refuse("no rule says how it works on a bound")
            found = READERS[node.op_type](reader)
            if any(node.output[len(found) :]):
                reader.refuse(f"no rule says how long '{node.output[len(found)]}' is")
            self.graph.extents.update((name, each) for name, each in zip(node.output, found) if name and each)
        else:
            self._refuse_inside(reader)
            build.copy(node)
            if any(name in self.graph.held or name in self.graph.settled for name in node.input):
                self.graph.add_size_of(node, build)
            elif node.op_type == "ReduceSum":
                self.graph.add_count(node)
        self._emit(build, again=any(reader.opens))
        for name in node.output:
            self._bound_number(name)

    def _bound_number(self, name: str) -> None:
        """Take a number that the data compute for a length, if it has a bound. Raises ModelError for one of no use."""
        shape = self.graph.shape(name)
        if name not in self.bounds or name in self.graph.held or shape is None or math.prod(shape) != 1:
            return
        if self.graph.dtype(name) != np.int64:
            return
        build, bound = NodeBuilder(f"{name}{_LENGTH}", self.graph.names), self.bounds[name]
        if bound > _MOST:
            raise ModelError(f"The bound of '{name}' is {bound}; {_MOST} is the most.", "Give a smaller one (--bound).")
        number = build.node("Min", build.node("Reshape", name, build.integers(1)), build.integers(bound))
        length = build.node("Max", number, build.integers(0))
        self.graph.held[name] = np.full(shape, Extent(length, bound, number=number), dtype=object)
        self.chosen.append(name)
        self._emit(build)

    def _value_of(self, name: str) -> object:
        """Return the numbers of a small constant, else the first value that is equal."""
        tensor = self.graph.constants.get(name)
        if tensor is not None and math.prod(tensor.dims) <= _SMALL and tensor.HasField("raw_data"):
            return tensor.data_type, tuple(tensor.dims), tensor.raw_data
        return self._first.get(name, name)

    def _emit(self, build: NodeBuilder, typed: bool = False, again: bool = False) -> None:
        """Add the nodes built, and the types of their results, unless they are `typed`; `again` even if they were known."""
        from onnx import helper

        self.model.graph.initializer.extend(build.initializers)
        context = self.graph
        for tensor in build.initializers:
            context.constants[tensor.name] = tensor
            context.types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        self.nodes.extend(build.nodes)
        for made in [] if typed else build.nodes:
            if (again and made.op_type != "Loop") or not all(
                name in context.types and static_shape(context.types[name]) is not None for name in made.output if name
            ):
                try:
                    self.graph.types.update(self.graph.infer(made))
                except inference_failures() as error:
                    raise ModelError(
                        f"The shapes of the model do not agree: {node_title(made)} on the bound of its operands.",
                        "Cut the model before it (--output).",
                    ) from error

    def _refuse_inside(self, reader: Reader) -> None:
        """Refuse a subgraph that reads an open value of the graph around it."""
        for inner in inner_graphs(reader.proto):
            for node in all_nodes(inner):
                if any(name in self.graph.extents for name in node.input):
                    Reader(node, self.graph, reader.build).refuse("it is in a subgraph")

    def _choose(self, reader: Reader) -> None:
        """Replace a node that chooses."""
        from onnx import helper

        node, result = reader.proto, reader.result
        for name in node.input:
            if name and self.graph.shape(name) is None:
                reader.refuse(f"the shape of '{name}' is not known")
        key = (
            node.op_type,
            *map(self._value_of, node.input),
            *sorted(reader.attributes.items()),
            tuple(map(bool, node.output)),
            self.bounds.get(result),
        )
        if key in self._made:
            self.chosen.append(result)
            self._first.update(zip(node.output, self._made[key]))
            for name, twin in zip(node.output, self._made[key]):
                if name and twin:
                    reader.build.node("Identity", twin, result=name)
                    if twin in self.graph.extents:
                        self.graph.extents[name] = self.graph.extents[twin]
            self._emit(reader.build, again=True)
            return
        made = CHOICES[node.op_type](reader, self._bound)
        if not made:
            self._emit(reader.build)
            return
        self.chosen.append(result)
        self._made[key] = list(node.output)
        types, whole = self.graph.types, np.dtype(np.int64)
        for name, each in zip(node.output, made):
            if not name:
                continue
            reader.build.node("Identity", each.name, result=name)
            shapes = {name: (each.dtype, each.shape)}
            if each.length:
                self.graph.extents[name] = opened(each)
                shapes[each.length] = (whole, (1,))
            for value, (dtype, shape) in shapes.items():
                types[value] = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(dtype), shape)
        self._emit(reader.build, typed=True)

    def _bound(self, reader: Reader, most: int) -> int:
        """Return the bound of a result that has at most so many rows. Raises ModelError for none."""
        name = reader.result
        bound = min(self.bounds.get(name, most), most)
        if reader.op_type == "NonMaxSuppression":
            bound = min(needed_rows(self.model.graph, self.graph, name) or bound, bound)
        if bound < 1:
            hint = "Leave it out of the model."
            if reader.op_type == "NonMaxSuppression":
                hint = "Give it max_output_boxes_per_class: without one, or with a negative one, ONNX selects no box."
            refuse(reader.proto, f"selects nothing: its bound is {max(bound, 0)}", hint)
        return bound


def _write_outputs(model: onnx.ModelProto, walk: _Walk, forms: dict[str, Forms]) -> None:
    """Fill outputs with zeros behind their length, and add the lengths as outputs and port forms."""
    from onnx import TensorProto, helper

    graph, names = model.graph, walk.graph.names
    for value in list(graph.output):
        extent = walk.graph.extents.get(value.name)
        if extent is None:
            continue
        build = NodeBuilder(value.name, names)
        context = walk.graph
        shape, dtype = context.shape(value.name) or (), context.dtype(value.name)
        if not extent.zero:
            made = names.new(f"{value.name}/open")
            rename_result(graph, value.name, made)
            build.node("Identity", mask(build, made, extent, len(shape), dtype), result=value.name)
        length = names.new(f"{value.name}{_LENGTH}")
        build.node("Identity", extent.length, result=length)
        value.type.CopyFrom(context.types[value.name])
        graph.output.append(helper.make_tensor_value_info(length, TensorProto.INT64, [1]))
        graph.node.extend(build.nodes)
        graph.initializer.extend(build.initializers)
        forms["outputs"].setdefault(value.name, {})["length"] = {"output": length, "axis": extent.axis}
