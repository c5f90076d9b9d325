"""Unroll Loop and Scan: copy their body for each iteration, unless these are many (long_loops.py).

    Loop(n, true, h){h' = f(h); y = g(h)}  ──►  f(f(… h)), Concat(g(h), g(f(h)), …)

A compiled library runs the same kernels in the same order every time, so the number of iterations has to be known, or a limit of
it (bounded_loops.py).
Formulas: the ONNX operator specifications of Loop and Scan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ..node_builder import Names, NodeBuilder, attributes_of, spliced, stem_of
from ..read_onnx import all_nodes, operator_set, refuse
from ..shapes import infer_shapes, static_shape, value_types
from .bounded_loops import running_body
from .if_branches import rename
from .long_loops import LOOPS, MOST_TRIPS, CanonicalBody, LoopKeeper, is_long
from .trip_count import implied_limit, trip_count

if TYPE_CHECKING:
    import onnx

#: nodes that the copies of all bodies may have: the compiler's time grows with them
MOST_NODES = 20_000
_DIRECTIONS = ("scan_input_directions", "scan_output_directions")
_FREEZE = f"Freeze the input it depends on (--fix), or export the model with a limit of at most {MOST_TRIPS} iterations, and states that keep their shapes."
_CHECK = "Check the model with onnx.checker, and export it again."
_EXPORT = "Export the model with the loop unrolled for a fixed number of steps."


def has_loops(model: onnx.ModelProto, kept: Set[str] = frozenset()) -> bool:
    """Return whether the main graph has a Loop or a Scan whose first result is not among `kept`."""
    return any(node.op_type in LOOPS and node.output[0] not in kept for node in model.graph.node)


def unroll_loops(
    model: onnx.ModelProto, canonical: CanonicalBody, kept: set[str], postpone: bool = False
) -> onnx.ModelProto:
    """Unroll the Loop and Scan nodes of the main graph of `model`, whose constants are folded.

    Bodies may hold others, which come to the main graph. Long ones become a Scan with a body in the form of `canonical`;
    its first result is added to `kept`. So is that of a Loop whose number of iterations is not constant, to `postpone` it. Raises ModelError, naming the node, if the iterations depend on data, or the
    copies have too many nodes.
    """
    from onnx import numpy_helper

    model = infer_shapes(model)
    read = {name for node in all_nodes(model.graph) for name in node.input}
    tensors = {t.name: t for t in model.graph.initializer if t.name in read}
    constants = {name: numpy_helper.to_array(t) for name, t in tensors.items()}
    types = value_types(model.graph)
    opset = operator_set(model.opset_import)
    left = MOST_NODES - len(model.graph.node)
    made, names = dict[int, NodeBuilder](), Names(model.graph)
    for index, node in enumerate(model.graph.node):
        if node.op_type in LOOPS and node.output[0] not in kept:
            build = NodeBuilder(stem_of(node, index), names)
            body = next(each.g for each in node.attribute if each.name == "body")
            if postpone and node.op_type == "Loop" and node.input[0] and node.input[0] not in constants:
                kept.add(node.output[0])
                continue
            keeper = LoopKeeper(body, build, tensors, types, opset)
            if made and not keeper.knows(node.input):
                continue  # its types are known once the loops before it are others
            unroller = _Unroller(node, build, opset, max(left, 0), keeper, canonical)
            unroller.loop(constants) if node.op_type == "Loop" else unroller.scan(types)
            made[index] = build
            kept |= {
                each.output[0] for each in build.nodes if each.op_type == "Scan" and each.name == f"{build.stem}/scan"
            }
            left -= len(build.nodes)
    return spliced(model, made)


@dataclass
class _Unroller:
    """Unroll one node, or keep it by `keeper`; `left` bounds the nodes of its copies."""

    node: onnx.NodeProto
    build: NodeBuilder
    opset: int
    left: int
    keeper: LoopKeeper
    canonical: CanonicalBody

    def __post_init__(self) -> None:
        self.attributes = attributes_of(self.node)
        self.body: onnx.GraphProto = self.attributes["body"]

    @cached_property
    def _shared(self) -> dict[str, str]:
        return {tensor.name: self._constant(tensor) for tensor in self.body.initializer}

    def loop(self, constants: Mapping[str, np.ndarray]) -> None:
        states, rows = list(self.node.input[2:]), []
        if len(self.body.input) != len(states) + 2 or len(self.body.output) <= len(states):
            self._refuse("its body has other inputs or outputs than it", _CHECK)
        trips = trip_count(self.node, self.body, constants, MOST_TRIPS, self.opset)
        if trips is None:
            if not self._keep_to_limit(states, constants):
                limit = constants.get(self.node.input[0])
                said = f", and its limit is {limit.item()}" if limit is not None else ""
                self._refuse(f"its number of iterations depends on the data{said}", _FREEZE)
            return
        if is_long(self.body, trips) and self.keeper.loop(states, trips, self.node.output, self.canonical):
            return
        self._refuse_many(trips)
        going = self.build.constant(np.asarray(True))
        for iteration in range(trips):
            number = self.build.number(iteration, np.int64)
            _, *results = self._copy(iteration, [number, going, *states])
            states, row = results[: len(states)], results[len(states) :]
            rows.append(row)
        self._finish(states, rows, [0] * (len(self.body.output) - 1 - len(states)))

    def _keep_to_limit(self, states: Sequence[str], constants: Mapping[str, np.ndarray]) -> bool:
        """Keep a loop whose condition the data decide, to its limit; False if it has none, or its states change their shapes."""
        limit, names = constants.get(self.node.input[0]), self.build.names
        implied = implied_limit(self.node, self.body, constants, MOST_TRIPS, self.opset)
        limits = ([] if limit is None else [int(limit.item())]) + ([] if implied is None else [implied])
        trips = min(limits, default=MOST_TRIPS + 1)
        if not 0 < trips <= MOST_TRIPS or not self.keeper.knows(self.node.input[1:]):
            return False
        if not self.keeper.again(self.body, NodeBuilder("", names)).loop(states, trips, (), self.canonical):
            return False
        going = self.node.input[1]
        named = [*self.node.output, *[""] * (len(self.body.output) - 1 - len(self.node.output))]
        rows = {name: names.new(f"{name}/by_iteration") for name in named[len(states) :] if name}
        flags = names.new(f"{self.build.stem}/ran")
        outputs = ["", *named[: len(states)], flags, *(rows.get(name, "") for name in named[len(states) :])]
        keeper = self.keeper.again(running_body(self.body, states, self.keeper.types(states), self.build), self.build)
        if not keeper.loop([going, *states], trips, outputs, self.canonical):
            return False
        for name, row in rows.items():
            self.build.node("Compress", row, flags, result=name, axis=0)
        return True

    def scan(self, types: Mapping[str, onnx.TypeProto]) -> None:
        count = int(self.attributes["num_scan_inputs"])
        states, sequences = list(self.node.input[:-count]), self.node.input[-count:]
        if len(self.body.input) != len(self.node.input) or len(self.body.output) < len(states):
            self._refuse("its body has other inputs or outputs than it", _CHECK)
        given = [static_shape(types[name]) if name in types else None for name in sequences]
        shapes = [shape for shape in given if shape is not None]
        if len(shapes) < len(given):
            self._refuse("its number of iterations is not static", "Give the inputs static shapes (--shape).")
        axes = [int(axis) % len(shape) for axis, shape in zip(self._each("scan_input_axes", count), shapes)]
        trips = shapes[0][axes[0]]
        outputs = len(self.body.output) - len(states)
        result_axes = self._each("scan_output_axes", outputs)
        if is_long(self.body, trips) and all(axis >= 0 for axis in result_axes):
            directions = {name: self.attributes[name] for name in _DIRECTIONS if name in self.attributes}
            if self.keeper.scan(states, sequences, axes, self.node.output, result_axes, directions, self.canonical):
                return
        self._refuse_many(trips)
        backwards = self._each("scan_input_directions", count)
        slices = [self._slices(name, axis, trips) for name, axis in zip(sequences, axes)]
        rows = []
        for iteration in range(trips):
            here = [parts[trips - 1 - iteration if back else iteration] for parts, back in zip(slices, backwards)]
            results = self._copy(iteration, [*states, *here])
            states, row = results[: len(states)], results[len(states) :]
            rows.append(row)
        reverse = self._each("scan_output_directions", outputs)
        rows = [[row[place] for place in range(outputs)] for row in rows]
        ordered = [
            [rows[trips - 1 - iteration if reverse[place] else iteration][place] for place in range(outputs)]
            for iteration in range(trips)
        ]
        self._finish(states, ordered, result_axes)

    def _copy(self, iteration: int, inputs: Sequence[str]) -> list[str]:
        """Copy the body with these inputs; return its results."""
        prefix = f"{self.build.stem}/{iteration}/"
        names = dict(self._shared) | {value.name: name for value, name in zip(self.body.input, inputs)}
        new = self.build.names.new
        names |= {name: new(prefix + name) for node in self.body.node for name in node.output if name}
        for node in self.body.node:
            self.build.nodes.append(rename(node, names))
            self.build.nodes[-1].name = new(prefix + (node.name or node.output[0]))
        return [names.get(value.name, value.name) for value in self.body.output]

    def _finish(self, states: Sequence[str], rows: Sequence[Sequence[str]], axes: Sequence[int]) -> None:
        """Name the results: last states, and the rows of each iteration along a new axis."""
        outputs = [*self.node.output, *[""] * (len(states) + len(axes) - len(self.node.output))]
        for name, state in zip(outputs, states):
            if name:
                self.build.node("Identity", state, result=name)
        for place, (name, axis) in enumerate(zip(outputs[len(states) :], axes)):
            if not name:
                continue
            if not rows:
                self.build.node("Identity", self.build.constant(self._nothing(len(states) + place)), result=name)
                continue
            parts = [self.build.node("Unsqueeze", row[place], self.build.integers(axis)) for row in rows]
            self.build.many("Concat", parts, 1, axis=axis)
            self.build.nodes[-1].output[0] = name

    def _nothing(self, place: int) -> np.ndarray:
        """Return the rows of no iteration of a Loop, whose condition is the first output of its body."""
        from onnx import helper

        kind = self.body.output[1 + place].type
        shape = static_shape(kind)
        if shape is None:
            self._refuse("it runs no iteration, and the shape of its rows is not known", _EXPORT)
        return np.zeros((0, *shape), helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))

    def _slices(self, name: str, axis: int, trips: int) -> list[str]:
        if trips == 1:
            parts = [name]
        else:
            parts = self.build.many("Split", [name, self.build.integers(*[1] * trips)], trips, axis=axis)
        return [self.build.node("Squeeze", part, self.build.integers(axis)) for part in parts]

    def _each(self, attribute: str, count: int) -> list[int]:
        return list(self.attributes.get(attribute, [0] * count))

    def _constant(self, tensor: onnx.TensorProto) -> str:
        from onnx import numpy_helper

        return self.build.constant(numpy_helper.to_array(tensor))

    def _refuse_many(self, trips: int) -> None:
        size = len(list(all_nodes(self.body)))
        if trips * size > self.left:
            self._refuse(
                f"its iterations would become more than {MOST_NODES} nodes, {size} each",
                "Give the inputs a shorter shape (--shape), or export it as LSTM, GRU or RNN.",
            )

    def _refuse(self, why: str, hint: str) -> NoReturn:
        refuse(self.node, f"cannot be unrolled: {why}", hint)
