"""Keep a Loop or Scan of many iterations as one Scan along leading axes, its body canonical.

    Loop(n, true, h){h' = f(h, number, outer); y = g(h)}  ──►  Scan(h, outer, 0 … n - 1){h' = f(h, number, outer), outer; y = g(h)}

The body is closed: constants from outside are copied into it, other values are states that no iteration changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from ...source.keep_outputs import read_from_outside
from ..node_builder import NodeBuilder, replace_nodes
from ..read_onnx import all_nodes
from ..shapes import static_shape, value_types
from .build_scan import KEPT, STOPS
from .if_branches import rename
from .numbered_slices import gather_slices, is_read, numbered_slices

if TYPE_CHECKING:
    import onnx

#: nodes in the copies of a body from which on a loop is kept: of fewer, passes see through the copies
LONG = 256
#: nodes that a loop inside of a body counts as: its iterations are not known yet
INNER = 64
#: most iterations of a loop that is kept
MOST_TRIPS = 1 << 16
LOOPS = frozenset({"Loop", "Scan"})
#: bring the model of a body into canonical form, in its own operator set
CanonicalBody = Callable[["onnx.ModelProto"], "onnx.ModelProto"]


def is_long(body: onnx.GraphProto, trips: int) -> bool:
    """Return whether a loop of so many iterations is kept."""
    operators = [node.op_type for node in all_nodes(body)]
    size = len(operators) + INNER * sum(each in LOOPS for each in operators)
    return 1 < trips <= MOST_TRIPS and (body.doc_string == KEPT or trips * size >= LONG)


class LoopKeeper:
    """Write the Scan of one loop with `build`; `constants` and `types` are those of the graph around it."""

    def __init__(
        self, body: onnx.GraphProto, build: NodeBuilder, constants: Mapping[str, onnx.TensorProto],
        types: Mapping[str, onnx.TypeProto], opset: int,
    ):  # fmt: skip
        self.body, self.build, self._constants, self._types, self._opset = body, build, constants, types, opset
        self._note = body.doc_string if body.doc_string in (KEPT, STOPS) else ""

    def again(self, body: onnx.GraphProto, build: NodeBuilder) -> LoopKeeper:
        """Return the keeper of another body in the same graph."""
        return LoopKeeper(body, build, self._constants, self._types, self._opset)

    def types(self, names: Iterable[str]) -> list[onnx.TypeProto]:
        """Return the types of values of the graph around the loop."""
        return [self._types[name] for name in names]

    def knows(self, names: Iterable[str]) -> bool:
        """Return whether the shapes of these values, and of all the body reads from outside, are known."""
        read = (*filter(None, names), *read_from_outside(self.body))
        return all(name in self._types and static_shape(self._types[name]) is not None for name in read)

    def loop(self, states: Sequence[str], trips: int, outputs: Sequence[str], canonical: CanonicalBody) -> bool:
        """Keep a Loop that runs `trips` times; False if its body cannot be kept."""
        from onnx import TensorProto, helper

        gather_slices(self.body, self._constants)
        number, going, *carried = self.body.input
        self.body, taken = numbered_slices(self.body, number.name, read_from_outside(self.body), self._types, trips)
        slices = [self._slice(*each) for each in taken.values()]
        numbered = not taken or is_read(self.body, number.name)
        inner = [*(value.name for value in carried), *taken, *([number.name] if numbered else [])]
        if numbered:
            slices.append(helper.make_tensor_type_proto(TensorProto.INT64, []))
        true = helper.make_tensor(going.name, TensorProto.BOOL, [], [True])
        results = [value.name for value in self.body.output[1:]]

        def sequences() -> list[str]:
            return [
                *(self._move_axis(*each, 0) for each in taken.values()),
                *([self.build.constant(np.arange(trips))] if numbered else []),
            ]

        return self._keep(states, sequences, slices, inner, results, [true], outputs, canonical)

    def scan(
        self, states: Sequence[str], sequences: Sequence[str], axes: Sequence[int], outputs: Sequence[str],
        result_axes: Sequence[int], directions: Mapping[str, Sequence[int]], canonical: CanonicalBody,
    ) -> bool:  # fmt: skip
        """Keep a Scan; False if its body cannot be kept. `directions` are its attributes of that name."""
        slices = [self._slice(name, axis) for name, axis in zip(sequences, axes)]

        def leading() -> list[str]:
            return [self._move_axis(name, axis, 0) for name, axis in zip(sequences, axes)]

        moved = {name: axis for name, axis in zip(outputs[len(states) :], result_axes) if name and axis}
        rows = {name: self.build.names.new(f"{name}/by_iteration") for name in moved}
        made = [rows.get(name, name) for name in outputs]
        inner, results = ([value.name for value in values] for values in (self.body.input, self.body.output))
        if not self._keep(states, leading, slices, inner, results, [], made, canonical, directions):
            return False
        for name, axis in moved.items():
            self._move_axis(rows[name], 0, axis, name)
        return True

    def _keep(
        self, states: Sequence[str], sequences: Callable[[], list[str]], slices: Sequence[onnx.TypeProto], inner: Sequence[str],
        results: Sequence[str], initializers: Sequence[onnx.TensorProto], outputs: Sequence[str], canonical: CanonicalBody,
        directions: Mapping[str, Sequence[int]] = {},
    ) -> bool:  # fmt: skip
        """Write the Scan. `inner` are the body's inputs: states, then one of each sequence, whose types are `slices`."""
        from onnx import helper

        outer = sorted(read_from_outside(self.body))
        known = [self._constants[name] for name in outer if name in self._constants]
        carried = [name for name in outer if name not in self._constants]
        given = [*states, *carried]
        if not self.knows(given):
            return False
        count = len(states)
        names = [*inner[:count], *carried, *inner[count:]]
        types = [*(self._types[name] for name in given), *slices]
        made = [*results[:count], *carried, *results[count:]]
        graph = helper.make_graph(
            self.body.node, "body", [helper.make_value_info(*each) for each in zip(names, types, strict=True)],
            [type(self.body.output[0])(name=name) for name in made], [*self.body.initializer, *initializers, *known],
        )  # fmt: skip
        for value, kind in zip(graph.output, types):  # states keep their types; others are inferred
            value.type.CopyFrom(kind)
        for value in graph.output[len(given) :]:
            value.type.CopyFrom(_type_of(self.body, value.name))
        model = canonical(helper.make_model(graph, opset_imports=[helper.make_opsetid("", self._opset)], ir_version=10))
        inferred = value_types(model.graph)
        if any(
            static_shape(inferred[value.name]) != static_shape(kind)
            for value, kind in zip(model.graph.output, types[: len(given)])
        ):
            return False
        new = self.build.names.new
        numbered = [
            name or new(f"{self.build.stem}/unread_{place}")
            for place, name in enumerate([*outputs, *[""] * (len(results) - len(outputs))])
        ]
        unchanged = [new(f"{self.build.stem}/unchanged_{place}") for place in range(len(carried))]
        attributes: dict[str, Any] = {name: list(values) for name, values in directions.items() if any(values)}
        made = sequences()
        body = _prefix_names(model.graph, f"{self.build.stem}/", new)
        body.doc_string = self._note
        self.build.nodes.append(
            helper.make_node(
                "Scan", [*given, *made], [*numbered[:count], *unchanged, *numbered[count:]], name=f"{self.build.stem}/scan",
                body=body, num_scan_inputs=len(made), **attributes,
            )
        )  # fmt: skip
        return True

    def _slice(self, name: str, axis: int) -> onnx.TypeProto:
        """Return the type of a slice of a value along an axis."""
        from onnx import helper

        kind = self._types[name].tensor_type
        shape = static_shape(self._types[name])
        assert shape is not None
        return helper.make_tensor_type_proto(kind.elem_type, [*shape[:axis], *shape[axis + 1 :]])

    def _move_axis(self, name: str, old: int, new: int, result: str = "") -> str:
        """Move an axis of a value to another place."""
        if old == new:
            return name
        kind = self._types.get(name) or self._types[result]
        rank = len(kind.tensor_type.shape.dim)
        order = [axis for axis in range(rank) if axis != old]
        order.insert(new, old)
        return self.build.node("Transpose", name, result=result, perm=order)


def _type_of(graph: onnx.GraphProto, name: str) -> onnx.TypeProto:
    """Return the declared type of a value without its shape, which is inferred."""
    from onnx import TypeProto

    found = next((value.type for value in (*graph.output, *graph.value_info) if value.name == name), TypeProto())
    return TypeProto(tensor_type=TypeProto.Tensor(elem_type=found.tensor_type.elem_type))


def _prefix_names(graph: onnx.GraphProto, prefix: str, new: Callable[[str], str]) -> onnx.GraphProto:
    """Copy a closed graph with a prefix before all its names, which are `new`."""
    copy = deepcopy(graph)
    values = [*copy.input, *copy.output, *copy.value_info, *copy.initializer]
    inside = dict.fromkeys(
        [each.name for each in values] + [name for node in copy.node for name in node.output if name]
    )
    names = {name: new(prefix + name) for name in inside}
    for each in values:
        each.name = names[each.name]
    nodes = [rename(node, names) for node in copy.node]
    for node in nodes:
        node.name = new(prefix + node.name)
    replace_nodes(copy, nodes)
    copy.name = f"{prefix}body"
    return copy
