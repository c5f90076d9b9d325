"""Write LSTM, GRU and RNN as a Scan whose body is one step of all directions; of one step, as plain operators.

    Scan(h, c, W, R, biases, x){h' = cell(x·W + h·R + biases, h, c); y = h'}        recurrent_step.py

The reverse direction runs through x and y from their ends. Lengths are states, counted in steps: a sequence is in it
while they are above 0; else its states stay, and y is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .control_flow.build_scan import Value, build_scan
from .folding.fold_constants import refold
from .graph_context import NodeView, apply_rules
from .last_steps import read_last_steps
from .node_builder import NodeBuilder, splice
from .operators.recurrent_activations import fault_of_activations
from .read_onnx import all_nodes, refuse
from .recurrent_step import RECURRENT, Cell, Layer, layer_of, parameters

if TYPE_CHECKING:
    import onnx

#: operands with (batch, directions, hidden) where the batch comes first: starting h and c
_STATES = (5, 6)
#: operand with the lengths of sequences, which are integers
_LENGTHS = 4
T = TypeVar("T")


def canonical_recurrent(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace the recurrent nodes of `model` (with inferred shapes), and fold and infer it again.

    It is changed in place: its weights are transposed, and would be held twice more. Raises ModelError for forms that are not
    covered.
    """
    if not any(node.op_type in RECURRENT for node in model.graph.node):
        return model
    model = refold(read_last_steps(model), model)
    read = {name for node in all_nodes(model.graph) for name in node.input} | {each.name for each in model.graph.output}
    splice(model.graph, apply_rules(model, dict.fromkeys(RECURRENT, partial(_replace, read=read))))
    return refold(model, None)


def _replace(node: NodeView, build: NodeBuilder, read: set[str]) -> None:
    inputs, attributes, dtype = node.inputs(8), node.attributes, node.dtype(1)
    outputs = [name if name in read else "" for name in node.output]
    shape, weights = node.shape(0), node.shape(2)
    if shape is None or weights is None:
        what = "cannot be compiled: its number of steps is not static"
        refuse(node.proto, what, "Give the inputs static shapes (--shape).")
    why = fault_of_activations(attributes)
    if why:
        refuse(node.proto, f"cannot be compiled: {why}", "Give it activations of ONNX's list, each with its numbers.")
    batch_first = bool(attributes.get("layout", 0))
    half = dtype == np.float16
    if half:  # states too stay in float32 over all steps, as in ONNX Runtime
        dtype = np.dtype(np.float32)
        wide = [name and place != _LENGTHS for place, name in enumerate(inputs)]
        inputs = [build.cast(name, np.float32) if each else name for name, each in zip(inputs, wide)]
    if batch_first:
        for place in (0, *_STATES):
            if inputs[place]:
                inputs[place] = build.node("Transpose", inputs[place], perm=[1, 0, 2])
        shape = (shape[1], shape[0], shape[2])
    layer = layer_of(node.op_type, attributes, shape, weights[2], dtype)
    made = _Writer(build, layer, inputs).results(every=bool(outputs and outputs[0]))
    for place, (name, value) in enumerate(zip(outputs, made)):
        perm = [2, 0, 1, 3] if place == 0 else [1, 0, 2]
        if name:
            value = build.node("Transpose", value, perm=perm) if batch_first else value
            build.cast(value, np.float16, name) if half else build.node("Identity", value, result=name)


class _Writer:
    """Write the replacement of one node with time first with `build`."""

    def __init__(self, build: NodeBuilder, layer: Layer, inputs: list[str]):
        from onnx import helper

        self.build, self.layer = build, layer
        self.x, w, r, bias, self.lengths, self.h, self.c, peephole = inputs
        self.element = helper.np_dtype_to_tensor_dtype(layer.dtype)
        if self.lengths:
            self._check_lengths()
        self.directions = range(len(layer.reverse))
        self.operands = [parameters(build, layer, n, w, r, bias, peephole) for n in self.directions]
        self.starts = [self._start(number) for number in self.directions]

    def results(self, every: bool) -> list[str]:
        """Return Y (steps, directions, batch, hidden), Y_h and, of an LSTM, Y_c (directions, batch, hidden).

        Y is the empty name unless `every` state is wanted.
        """
        if self.layer.steps == 1:
            ends, y = self._one_step()
        elif len(self.directions) == 1:
            end, rows = self._steps(self.build, 0, self._operands(0), self.x, every)
            ends, y = [end], rows[0].name if every else ""
        else:
            ends, y = self._both_directions(every)
        return [y, *(self._concat([end[state] for end in ends], 0) for state in self.layer.states)]

    def _one_step(self) -> tuple[list[dict[str, str]], str]:
        build, ends, rows = self.build, [], []
        x = build.node("Squeeze", self.x, build.integers(0))
        for number in self.directions:
            given = self._operands(number)
            cell = self._cell(build, number, given)
            end, y = self._step(cell, number, x, given)
            ends.append(end)
            rows.append(build.node("Unsqueeze", y, build.integers(0)))
        return ends, self._concat(rows, 1)

    def _both_directions(self, every: bool) -> tuple[list[dict[str, str]], str]:
        """Build a loop of one trip around a loop over the steps of each direction; return last states and Y.

        The directions do not take turns, as each has weights of its own; in one loop, both write parts of Y.
        """
        layer, build = self.layer, self.build
        shape = 1, layer.steps, layer.batch, layer.inputs
        x = build.node("Reshape", self.x, build.integers(*shape))

        def write(body: NodeBuilder, given: dict[str, str]) -> tuple[dict[str, str], list[Value]]:
            after: dict[str, str] = {}
            rows = []
            for n in self.directions:
                own = _strip_number(n, given)
                end, made = self._steps(body, n, own, own["x"], every)
                after |= _add_number(n, end)
                rows += made
            return after, rows

        states, held = (
            {name: each for n in self.directions for name, each in _add_number(n, group[n]).items()}
            for group in (self.starts, self.operands)
        )
        sequences = {f"x_{n}": Value(x, shape, self.element, backwards) for n, backwards in enumerate(layer.reverse)}
        last, rows = build_scan(build, states, held, sequences, write)
        whole = layer.steps, -1, *self._row[1:]
        y = build.node("Reshape", self._concat(rows, 2), build.integers(*whole)) if every else ""
        return [_strip_number(n, last) for n in self.directions], y

    def _steps(
        self, build: NodeBuilder, number: int, given: dict[str, str], x: str, every: bool
    ) -> tuple[dict[str, str], list[Value]]:
        """Build a loop over the steps of a direction; return its last states, and the states of `every` step if wanted.

        `given` are states and operands by name.
        """
        layer, backwards = self.layer, self.layer.reverse[number]
        states, held = (
            {name: each._replace(name=given[name]) for name, each in known[number].items()}
            for known in (self.starts, self.operands)
        )
        read = Value(x, (layer.steps, layer.batch, layer.inputs), self.element, backwards)

        def write(body: NodeBuilder, values: dict[str, str]) -> tuple[dict[str, str], list[Value]]:
            cell = self._cell(body, number, values)
            end, y = self._step(cell, number, values["read"], values)
            return end, [Value(body.node("Identity", y), self._row, self.element, backwards)] if every else []

        end, made = build_scan(build, states, held, {"read": read}, write)
        return end, [Value(each, (layer.steps, *self._row), self.element, backwards) for each in made]

    @property
    def _row(self) -> tuple[int, ...]:
        return 1, self.layer.batch, self.layer.hidden

    def _operands(self, number: int) -> dict[str, str]:
        """Return the names of the states and operands of a direction."""
        return {name: each.name for name, each in (self.starts[number] | self.operands[number]).items()}

    def _cell(self, build: NodeBuilder, number: int, operands: dict[str, str]) -> Cell:
        return Cell(build, self.layer, self.layer.activations[number], operands)

    def _step(self, cell: Cell, number: int, x: str, states: dict[str, str]) -> tuple[dict[str, str], str]:
        """Build a step of a direction; return its next states, and y."""
        layer, build = self.layer, cell.build
        made = cell.next(x, {name: states[name] for name in layer.states})
        if not self.lengths:
            return made, made["h"]
        left, zero = states["left"], build.constant(np.zeros((), np.int32))
        inside = build.node("Greater", left, zero)
        y = build.node("Where", inside, made["h"], build.constant(np.zeros((), layer.dtype)))
        held = {name: build.node("Where", inside, made[name], states[name]) for name in made}
        further = build.node("Add", left, build.number(1 if layer.reverse[number] else -1, np.int32))
        return held | {"left": further}, y

    def _start(self, number: int) -> dict[str, Value]:
        """Return the states of a direction before its first step: given, else zeros; ONNX Runtime has zeros after no step."""
        from onnx import TensorProto

        layer, build = self.layer, self.build
        found = {}
        for name, given in zip(layer.states, (self.h, self.c)):
            if given:
                value = build.node("Slice", given, *map(build.integers, (number, number + 1, 0)))
                if self.lengths:
                    some = build.node("Greater", self.lengths, build.constant(np.zeros((), np.int32)))
                    value = build.node("Where", some, value, build.constant(np.zeros((), layer.dtype)))
            else:
                value = build.constant(np.zeros(self._row, layer.dtype))
            found[name] = Value(value, self._row, self.element)
        if self.lengths:
            before = build.number(layer.steps - 1 if layer.reverse[number] else 0, np.int32)
            found["left"] = Value(build.node("Sub", self.lengths, before), (layer.batch, 1), TensorProto.INT32)
        return found

    def _check_lengths(self) -> None:
        """Read lengths from a table of all there are, whose reader finds others out; they become (batch, 1)."""
        build = self.build
        table = build.constant(np.arange(self.layer.steps + 1, dtype=np.int32))
        found = build.node("Gather", table, build.from_zero(self.lengths, np.int32), axis=0)
        self.lengths = build.node("Unsqueeze", found, build.integers(1))

    def _concat(self, parts: list[str], axis: int) -> str:
        return self.build.node("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


def _add_number(number: int, values: Mapping[str, T]) -> dict[str, T]:
    return {f"{name}_{number}": each for name, each in values.items()}


def _strip_number(number: int, values: Mapping[str, T]) -> dict[str, T]:
    """Return the values of a direction, without its number."""
    return {name.removesuffix(f"_{number}"): each for name, each in values.items() if name.endswith(f"_{number}")}
