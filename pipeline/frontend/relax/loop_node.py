"""Convert a canonical Scan into a call of its kernel.

Sequences that are only joined, as the two directions of a recurrent layer are, are written in their rows of the whole:

    Scan ─┬─ forwards (T, 1, n) ──┬─ Concat(axis 1) ──► (T, 2, n)          Scan ──► (T, 2, n)
          └─ backwards (T, 1, n) ─┘                                 ──►
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import onnx
from tvm import relax
from tvm.ir import IRModule, Var
from tvm.tirx import PrimFunc

from ..canonical.control_flow.build_scan import STOPS
from ..canonical.node_builder import attributes_of
from .loop_body import LoopBody, lower_body
from .loop_kernel import LoopKernel, Place

#: import the graph of a body
ImportBody = Callable[[onnx.GraphProto], IRModule]


class Join(NamedTuple):
    """Place of a sequence in the result of a Concat: it is `row` of `rows` along an axis."""

    whole: str
    axis: int
    rows: int
    row: int


def joins_of(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]) -> dict[str, Join]:
    """Find sequences of a Scan that only a Concat of sequences of that Scan reads."""
    makers = {
        name: number for number, node in enumerate(graph.node) if node.op_type == "Scan" for name in _sequences(node)
    }
    readers = Counter(name for node in graph.node for name in node.input)
    readers.update(each.name for each in graph.output)
    found: dict[str, Join] = {}
    for node in graph.node:
        axis = int(attributes_of(node)["axis"]) if node.op_type == "Concat" else 0
        alone = all(
            name in makers and readers[name] == 1 and len(shapes.get(name, ())) > axis > 0 and shapes[name][axis] == 1
            for name in node.input
        )
        if alone and len({makers[name] for name in node.input}) == 1:
            found |= {
                name: Join(node.output[0], axis, len(node.input), number) for number, name in enumerate(node.input)
            }
    return found


def _sequences(node: onnx.NodeProto) -> Sequence[str]:
    """Return the results of a Scan behind its states."""
    return node.output[len(node.input) - int(attributes_of(node)["num_scan_inputs"]) :]


def convert_loop(
    builder: relax.BlockBuilder,
    inputs: Sequence[relax.Expr],
    node: onnx.NodeProto,
    import_body: ImportBody,
    joins: Mapping[str, Join],
) -> relax.Expr:
    """Emit the kernel of a Scan along leading axes; return its results in the node's order, or the only one.

    A sequence among `joins` is the whole it is part of.
    """
    attributes = attributes_of(node)
    states = len(inputs) - int(attributes["num_scan_inputs"])
    loop = _Loop(
        lower_body(import_body(attributes["body"])),
        states,
        inputs,
        attributes,
        [joins.get(name) for name in _sequences(node)],
    )
    kernel = builder.add_func(loop.kernel(), "loop")
    shapes = [relax.TensorType([int(extent) for extent in each.ty.shape], str(each.ty.dtype)) for each in loop.results]
    operands = [builder.normalize(each) for each in loop.operands]
    made = builder.emit(relax.call_tir(kernel, relax.Tuple(operands), shapes if len(shapes) > 1 else shapes[0]))
    got = (
        [builder.emit(relax.TupleGetItem(made, number)) for number in range(len(shapes))] if len(shapes) > 1 else [made]
    )
    found = [inputs[place] if result is None else got[result] for place, result in enumerate(loop.order)]
    return relax.Tuple(found) if len(found) > 1 else found[0]


class _Loop:
    """Place the values of a body.

    `operands` are those of the kernel, `results` its last parameters once it is made. `order` has the number of the
    kernel's result for each of the node's, None for a state that no iteration changes.
    """

    def __init__(
        self, body: LoopBody, states: int, inputs: Sequence[relax.Expr], attributes: Mapping[str, Any], joins: Sequence[Join | None]
    ):  # fmt: skip
        self.body, self.states, self.inputs = body, states, inputs
        self.sequences = range(states, len(inputs))
        self.backwards = list(attributes.get("scan_input_directions", [0] * len(self.sequences)))
        outputs = len(body.outputs) - states
        self.written_backwards = list(attributes.get("scan_output_directions", [0] * outputs))
        self.changed = [place for place in range(states) if body.outputs[place] != place]
        self.operands = [*inputs, *body.constants.values()]
        self.order: list[int | None] = [None] * states
        for number, place in enumerate(self.changed):
            self.order[place] = number
        self.joins = joins
        flags = self.body.dtypes[body.outputs[states]] if outputs else ""
        self.stops = attributes["body"].doc_string == STOPS and flags == "bool"
        #: by result behind the states: the outputs it holds
        self.wholes: dict[str | int, list[int]] = {}
        for number, join in enumerate(joins):
            self.wholes.setdefault(number if join is None else join.whole, []).append(number)
        held = {
            number: place for place, group in enumerate(self.wholes.values(), len(self.changed)) for number in group
        }
        self.order += [held[number] for number in range(outputs)]
        self.results: list[Var] = []

    def kernel(self) -> PrimFunc:
        """Build the kernel."""
        body = self.body
        trips = int(self.inputs[self.states].ty.shape[0])
        loop = LoopKernel(trips, self.stops)
        given = [
            loop.param(f"operand{n}", [int(e) for e in each.ty.shape], str(each.ty.dtype))
            for n, each in enumerate(self.inputs)
        ]
        places: dict[int, Place] = dict(enumerate(given))
        for value in body.constants:
            places[value] = loop.param(f"weight{value}", body.shapes[value], body.dtypes[value])
        for place in self.sequences:
            places[place] = loop.sliced(given[place], bool(self.backwards[place - self.states]))
        first_result = len(loop.params)
        for place in self.changed:
            places[place] = loop.param(f"state{place}", body.shapes[place], body.dtypes[place])
            loop.copy(given[place], places[place], first=True)
        for place in self.changed:
            if self._ends_before_the_next(place) and body.outputs[place] not in places:
                places[body.outputs[place]] = places[place]
        slices = self._slices(loop)
        copies: list[tuple[int, Place]] = []
        for number, value in enumerate(body.outputs[self.states :]):
            to = slices[number]
            if value in body.made and value not in places:
                places[value] = to
            else:
                copies.append((value, to))
        self.results = loop.params[first_result:]
        makers = {value: step.name for step in reversed(body.steps) for value in step.values}
        for value in body.made:
            if value not in places:
                places[value] = loop.buffer(makers.get(value, "value"), body.shapes[value], body.dtypes[value])
        for step in body.steps:
            loop.stage(step.name, step.kernel, [places[value] for value in step.values])
        for value, to in copies:
            loop.copy(places[value], to)
        self._next_states(loop, places)
        return loop.made()

    def _slices(self, loop: LoopKernel) -> dict[int, Place]:
        """Add the results behind the states; return where an iteration writes each output."""
        found: dict[int, Place] = {}
        for place, group in enumerate(self.wholes.values()):
            value, join = self.body.outputs[self.states + group[0]], self.joins[group[0]]
            shape = list(self.body.shapes[value])
            if join is not None:
                shape[join.axis - 1] = join.rows
            whole = loop.param(f"slices{place}", [loop.trips, *shape], self.body.dtypes[value])
            for number in group:
                own = self.joins[number]
                row = None if own is None else (own.axis - 1, own.row)
                found[number] = loop.sliced(whole, bool(self.written_backwards[number]), row)
        return found

    def _ends_before_the_next(self, state: int) -> bool:
        """Return whether a state dies before its successor, which may then take its place."""
        following = self.body.outputs[state]
        if following not in self.body.made or self.body.outputs.count(state):
            return False
        makers = [number for number, step in enumerate(self.body.steps) if following in step.values]
        return all(state not in step.values for step in self.body.steps[min(makers, default=0) :])

    def _next_states(self, loop: LoopKernel, places: Mapping[int, Place]) -> None:
        """Copy the new states to their places; those that lie in the place of another state wait."""
        body = self.body
        sources = {}
        for place in self.changed:
            value = body.outputs[place]
            sources[place] = places[value]
            if value in self.changed:
                sources[place] = loop.buffer(f"next_state{place}", body.shapes[value], body.dtypes[value])
                loop.copy(places[value], sources[place])
        for place, source in sources.items():
            if source is not places[place]:
                loop.copy(source, places[place])
