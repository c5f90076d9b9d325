"""Convert a canonical Scan into a call of its kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
from tvm import relax
from tvm.ir import IRModule, Var
from tvm.tirx import PrimFunc

from .loop_body import LoopBody, lower_body
from .loop_kernel import LoopKernel, Place

#: import the graph of a body
ImportBody = Callable[[onnx.GraphProto], IRModule]


def convert_loop(
    builder: relax.BlockBuilder, inputs: Sequence[relax.Expr], attributes: Mapping[str, Any], body: onnx.GraphProto, import_body: ImportBody
) -> relax.Expr:
    """Emit the kernel of a Scan along leading axes; return its results in the node's order, or the only one."""
    count = int(attributes["num_scan_inputs"])
    states = len(inputs) - count
    loop = _Loop(lower_body(import_body(body)), states, inputs, attributes)
    kernel = builder.add_func(loop.kernel(), "loop")
    shapes = [relax.TensorType([int(extent) for extent in each.ty.shape], str(each.ty.dtype)) for each in loop.results]
    operands = [builder.normalize(each) for each in loop.operands]
    made = builder.emit(relax.call_tir(kernel, relax.Tuple(operands), shapes if len(shapes) > 1 else shapes[0]))
    got = [builder.emit(relax.TupleGetItem(made, number)) for number in range(len(shapes))] if len(shapes) > 1 else [made]
    found = [inputs[place] if result is None else got[result] for place, result in enumerate(loop.order)]
    return relax.Tuple(found) if len(found) > 1 else found[0]


class _Loop:
    """Place the values of a body.

    `operands` are those of the kernel, `results` its last parameters once it is made. `order` has the number of the
    kernel's result for each of the node's, None for a state that no iteration changes.
    """

    def __init__(self, body: LoopBody, states: int, inputs: Sequence[relax.Expr], attributes: Mapping[str, Any]):
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
        self.order += range(len(self.changed), len(self.changed) + outputs)
        self.results: list[Var] = []

    def kernel(self) -> PrimFunc:
        """Build the kernel."""
        body = self.body
        trips = int(self.inputs[self.states].ty.shape[0])
        loop = LoopKernel(trips)
        given = [loop.param(f"operand{n}", [int(e) for e in each.ty.shape], str(each.ty.dtype)) for n, each in enumerate(self.inputs)]
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
        copies: list[tuple[int, Place]] = []
        for number, value in enumerate(body.outputs[self.states :]):
            whole = loop.param(f"slices{number}", [trips, *body.shapes[value]], body.dtypes[value])
            to = loop.sliced(whole, bool(self.written_backwards[number]))
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

    def _ends_before_the_next(self, state: int) -> bool:
        """Tell whether a state dies before its successor, which may then take its place."""
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
