"""Hold what is known of a graph with open lengths while its nodes are made static, one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...traits import PASSES
from ..graph_context import Context, NodeView
from ..node_builder import NodeBuilder, attributes_of
from ..read_onnx import refuse
from ..shapes import inference_failures
from .choose import Chosen, choose_places
from .extent import SHAPED, Extent, Sizes, at_bound, compute_sizes, deciding_numbers, is_open

if TYPE_CHECKING:
    import onnx


#: stands for a length while shapes are inferred: a size that no other has, and does not agree with
_OPEN = 1_000_003


@dataclass(frozen=True)
class Open:
    """Open extent of a value along `axis`: a `length`, int64 [1], of at most `bound`.

    With `zero` the elements behind it are 0, and none is negative.
    """

    axis: int
    length: str
    bound: int
    zero: bool = False

    def along(self, axis: int, zero: bool = False) -> Open:
        """Return the same extent along another axis."""
        return Open(axis, self.length, self.bound, zero)


@dataclass(frozen=True)
class OpenGraph(Context):
    """Types, open extents and sizes of the values of a graph, as far as it is static.

    `held` are the sizes that values hold, `settled` those of a value of open length on which no length is left, `chosen` places and
    length of what flags choose, by these, how many are read, and the bound. `lengths` are those made of others, by how they are
    made: equal ones share a name.
    """

    extents: dict[str, Open] = field(default_factory=dict)
    held: dict[str, Sizes] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    chosen: dict[tuple[str, int, int], tuple[str, str]] = field(default_factory=dict)
    lengths: dict[tuple[str, Any, Any], str] = field(default_factory=dict)

    def length(self, build: NodeBuilder, kind: str, length: str, number: int) -> str:
        """Build a length: `min` or `minus` of one and a number, at least 0, or `times` and `plus` with a size; once each."""
        key = (kind, length, number)
        if key not in self.lengths:
            operator = {"min": "Min", "minus": "Sub", "plus": "Add", "times": "Mul"}[kind]
            made = build.node(operator, length, build.integers(number))
            self.lengths[key] = build.node("Max", made, build.integers(0)) if kind in ("minus", "plus") else made
        return self.lengths[key]

    def choose(
        self, build: NodeBuilder, name: str, count: int, bound: int, flags: Callable[[], str]
    ) -> tuple[str, str]:
        """Build the places of the true ones among `count` flags of `name`, which `flags` builds flat, and their number, once."""
        key = (name, count, bound)
        if key not in self.chosen:
            self.chosen[key] = choose_places(build, flags(), count, bound)
        return self.chosen[key]

    def add_count(self, node: onnx.NodeProto) -> None:
        """Follow the sum of flags, which is the number that they choose."""
        name, shape = node.input[0], self.shape(node.output[0])
        while (made := self.producers.get(name)) is not None and made.op_type in PASSES:
            name = made.input[0]
        count = math.prod(self.shape(name) or ())
        places = self.chosen.get((name, count, count))
        if places is not None and shape is not None and math.prod(shape) == 1:
            self.held[node.output[0]] = np.full(shape, Extent(places[1], count), dtype=object)

    def sum_of(self, build: NodeBuilder, one: str, other: str) -> str:
        """Build the sum of two lengths, once."""
        key = ("sum", min(one, other), max(one, other))
        if key not in self.lengths:
            self.lengths[key] = build.node("Add", one, other)
        return self.lengths[key]

    def number_of(self, extent: Extent, length: str) -> Extent | int:
        """Return the number of a size that is the less of it and `length`; another size as it is."""
        for (kind, of, number), name in self.lengths.items():
            if (kind, of, name) == ("min", length, extent.length) and extent.is_length:
                return number
        return extent

    def length_of(self, build: NodeBuilder, extent: Extent) -> str:
        """Build the length that an extent is, at least 0."""
        length = extent.length if not extent.offset else extent.number or extent.length
        if extent.scale != 1:
            length = self.length(build, "times", length, extent.scale)
        return self.length(build, "plus", length, extent.offset) if extent.offset else length

    def rows_before(self, build: NodeBuilder, end: Extent, size: int) -> tuple[str, int]:
        """Build the number of rows in front of `end` on an axis of `size`; return it and its bound.

        As in ONNX, an end below 0 counts from the back.
        """
        last = min(end.bound, (-end.offset - 1) // end.scale)  # of those that count from the back
        bound = max(0, min(end.largest, size), size + end.scale * last + end.offset if last >= 0 else 0)
        if end.offset >= 0 and not end.number:
            length = self.length_of(build, end)
            return (self.length(build, "min", length, size) if end.largest > size else length), bound
        key = ("before", end, size)
        if key not in self.lengths:
            length = end.number or end.length
            length = self.length(build, "times", length, end.scale) if end.scale != 1 else length
            place, extent = build.node("Add", length, build.integers(end.offset)), build.integers(size)
            zero = build.integers(0)
            counted = build.node("Where", build.node("Less", place, zero), build.node("Add", place, extent), place)
            self.lengths[key] = build.node("Max", build.node("Min", counted, extent), zero)
        return self.lengths[key], size if end.number else bound

    def extent_of(self, extent: Open) -> Extent:
        """Return the size of an open axis: a multiple of the length that it was made of."""
        for (kind, length, number), name in self.lengths.items():
            if name == extent.length and kind == "times":
                return Extent(length, extent.bound // number, number)
        return Extent(extent.length, extent.bound)

    def add_size_of(self, node: onnx.NodeProto, build: NodeBuilder) -> None:
        """Follow the sizes that a node computes of sizes and constants."""
        operands = [self.sizes_of(name) for name in node.input if name]
        if node.output[0] and all(each is not None for each in operands):
            known = [each for each in operands if each is not None]
            made = self._least(node, known, build)
            if made is None:
                made = compute_sizes(node.op_type, known, attributes_of(node))
            if made is None:
                return
            if is_open(made):
                self.held[node.output[0]] = made
            else:
                self._settle(node.output[0], made, build)

    def _settle(self, name: str, made: Sizes, build: NodeBuilder) -> None:
        """Build sizes on which no length is left as a constant."""
        dtype = self.dtype(name)
        del build.nodes[:]
        constant = build.constant(made.astype(dtype))
        build.node("Identity", constant, result=name)
        self.constants[name] = build.initializers[-1]
        self.settled.add(name)

    def _least(self, node: onnx.NodeProto, operands: Sequence[Sizes], build: NodeBuilder) -> Sizes | None:
        """Return the less of a length and a number, as a length; None for other nodes."""
        if node.op_type not in ("Min", "ReduceMin"):
            return None
        given = operands[:1] if node.op_type == "ReduceMin" else operands
        sizes = [size for each in given for size in each.flat]
        numbers = [size for size in sizes if not isinstance(size, Extent)]
        lengths = [size for size in sizes if isinstance(size, Extent) and size.is_length]
        if (len(lengths), len(numbers)) != (1, len(sizes) - 1) or min(numbers, default=0) < 1:
            return None
        (length,), number = lengths, min(numbers)
        if number < length.bound:
            length = Extent(self.length(build, "min", length.length, number), number)
        shape = np.broadcast_shapes(*(each.shape for each in given)) if node.op_type == "Min" else ()
        if node.op_type == "ReduceMin" and attributes_of(node).get("keepdims", 1):
            shape = (1,) * operands[0].ndim
        return np.full(shape, length, dtype=object)

    def sizes_of(self, name: str) -> Sizes | None:
        """Return the sizes that a value holds; None for a value that is not constant otherwise."""
        constant = self.constant(name)
        if constant is not None and constant.dtype.kind in "iub":
            return constant.astype(object)
        return self.held.get(name)

    def infer(
        self, node: onnx.NodeProto, opens: Mapping[str, Open] = MappingProxyType({})
    ) -> dict[str, onnx.TypeProto]:
        """Infer the types of a node's results, in which sizes that follow those of open operands are `_OPEN`.

        Raises `inference_failures`.
        """
        from onnx import TypeProto, defs, helper, shape_inference

        known = {
            name: TypeProto.FromString(self.types[name].SerializeToString())
            for name in node.input
            if name in self.types
        }
        if len(known) < len({name for name in node.input if name}):
            return {}
        for name, each in opens.items():
            known[name].tensor_type.shape.dim[each.axis].dim_value = _OPEN
        schema = defs.get_schema(node.op_type, self.opset, node.domain)
        constants = {name: self.constants[name] for name in node.input if name in self.constants}
        sets = [helper.make_opsetid("", self.opset)]
        return shape_inference.infer_node_outputs(schema, node, known, constants, opset_imports=sets)


class Reader(NodeView):
    """Node that reads open values, its operands, and the builder of the nodes in its place."""

    graph: OpenGraph

    def __init__(self, node: onnx.NodeProto, graph: OpenGraph, build: NodeBuilder):
        super().__init__(node, graph)
        self.build = build
        self.opens = [graph.extents.get(name) for name in node.input]

    @property
    def only(self) -> Open:
        """Return the extent of the open operands, which is one. Refuses others."""
        found = {each.length for each in self.opens if each is not None}
        if len(found) != 1:
            self.refuse("its operands have lengths that differ" if found else "its shape does not follow a length")
        return next(each for each in self.opens if each is not None)

    @property
    def has_open_shape(self) -> bool:
        """Return whether a length is in an operand that is a shape."""
        places = SHAPED.get(self.op_type, ())
        return any(name in self.graph.held for place, name in enumerate(self.input) if place in places)

    def open(self, place: int) -> Open | None:
        """Return the open extent of an operand, if it is there and has one."""
        return self.opens[place] if place < len(self.opens) else None

    def has(self, place: int) -> bool:
        """Return whether an operand is given."""
        return bool(self.name(place))

    def shape(self, value: int | str) -> tuple[int, ...]:
        """Return the shape of a value, with the bounds of its lengths."""
        found = super().shape(value)
        if found is None:
            name = self.name(value)
            number = deciding_numbers(self.graph).get(name)
            hint = f"Give '{number}' a bound (--bound {number}=N)." if number and number not in self.graph.held else ""
            self.refuse(f"the shape of '{name}' is not known", hint)
        return found

    def held(self, place: int) -> Sizes:
        """Return the sizes that an operand holds. Refuses one that the data decide otherwise."""
        found = self.graph.sizes_of(self.name(place))
        if found is None:
            self.refuse(f"the data decide '{self.name(place)}'")
        return found

    def keep(self, **operands: str) -> onnx.NodeProto:
        """Build the node itself, with other operands by place (`_1`), and sizes as they are at their bounds."""
        copied = self.build.copy(self.proto)
        for place, name in enumerate(self.input):
            if name in self.graph.held and place in SHAPED.get(self.op_type, ()):
                constant = at_bound(self.graph.held[name]).astype(self.dtype(place))
                copied.input[place] = self.build.constant(constant)
        for place_name, name in operands.items():
            copied.input[int(place_name[1:])] = name
        return copied

    def follow(self, zero: bool = False, **operands: str) -> list[Open | None]:
        """Keep a node each row of which depends on the same one of its operands; return the extents of its results.

        Refuses one with a result of which not one axis is that of the length.
        """
        extent, opens = self.only, {name: each for name, each in zip(self.input, self.opens) if each is not None}
        self.keep(**operands)
        found: list[Open | None] = []
        try:
            types = self.graph.infer(self.proto, opens)
        except inference_failures():
            types = {}
        for name in self.output:
            dims = types[name].tensor_type.shape.dim if name in types else ()
            axes = [axis for axis, dim in enumerate(dims) if dim.dim_value == _OPEN]
            if name and len(axes) != 1:
                self.refuse("its result does not have one axis of that length")
            found.append(extent.along(axes[0], zero) if name else None)
        return found

    def masked(self, place: int, fill: float | np.ndarray, name: str = "") -> str:
        """Build an operand, or the value `name` in its place, with `fill` behind its length."""
        extent = self.opens[place]
        assert extent is not None
        value = name or self.input[place]
        return mask(self.build, value, extent, len(self.shape(place)), self.dtype(place), fill)

    def refuse(self, why: str, hint: str = "") -> NoReturn:
        """Raise the ModelError of a node that cannot read a value of open length."""
        read = [name for name in self.input if name in self.graph.extents or name in self.graph.held]
        what = f"reads '{', '.join(read)}'" if read else "makes a result"
        what = f"{what}, whose length the data decide: {why}"
        refuse(self.proto, what, hint or "Cut the model before it (--output), and compute the rest on the host.")


#: writes the nodes in the place of one; returns the open extents of its results
Rule = Callable[[Reader], Sequence["Open | None"]]


def mask(build: NodeBuilder, value: str, extent: Open, rank: int, dtype: np.dtype, fill: float | np.ndarray = 0) -> str:
    """Build a value with `fill` behind its length."""
    rows = np.arange(extent.bound, dtype=np.int64).reshape(-1, *[1] * (rank - 1 - extent.axis))
    valid = build.node("Less", build.constant(rows), extent.length)
    if dtype.kind == "b":  # ONNX Runtime has no Where of these
        return build.node("Or", build.node("Not", valid), value) if fill else build.node("And", valid, value)
    return build.node("Where", valid, value, build.constant(np.asarray(fill, dtype)))


def opened(chosen: Chosen) -> Open:
    """Return the open extent of a choice's result."""
    return Open(chosen.axis, chosen.length, chosen.shape[chosen.axis], chosen.zero)
