"""Read the last state of an LSTM, GRU or RNN alone, if no other state is read.

    Y ──Squeeze──►──Transpose──►──Gather(last step)──►        as PyTorch exports `out[:, -1]`
    Y_h ──Unsqueeze──►──Squeeze──►──Transpose──►──Gather(0)──►

The states of all steps are then never kept. Of a reverse direction, the last state is that of the first step. Two directions
read at the last step are a whole forward one, and one step of a reverse one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..traits import VIEWS, follow_axis
from .graph_context import context_of
from .node_builder import NodeBuilder, attributes_of, spliced, stem_of
from .operators.recurrent_activations import direction_activations
from .read_onnx import all_nodes
from .recurrent_step import RECURRENT

if TYPE_CHECKING:
    import onnx


def read_last_steps(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return `model` (with inferred shapes) with its recurrent nodes read at their last step if possible."""
    graph = _Graph(model)
    made: dict[int, NodeBuilder] = {}
    for index, node in enumerate(model.graph.node):
        if node.op_type in RECURRENT:
            made |= graph.replacements(node, index)
    return spliced(model, made)


class _Reader(NamedTuple):
    """Node, by its place in the graph, that passes on states of all steps along `axis`."""

    place: int
    axis: int


class _Graph:
    """Readers and values of a model."""

    def __init__(self, model: onnx.ModelProto):
        self.nodes, self.context = list(model.graph.node), context_of(model)
        self.readers: dict[str, list[int]] = {}
        for index, node in enumerate(self.nodes):
            for name in {*node.input}:
                self.readers.setdefault(name, []).append(index)
        read = Counter(name for node in all_nodes(model.graph) for name in node.input)
        read.subtract(name for node in self.nodes for name in node.input)
        #: values that are outputs, or read in a subgraph
        self.kept = {name for name, inside in read.items() if inside} | {each.name for each in model.graph.output}

    def replacements(self, node: onnx.NodeProto, index: int) -> dict[int, NodeBuilder]:
        """Return the new nodes by place in the graph: none unless every reader takes the last step."""
        attributes = attributes_of(node)
        direction, axis = attributes.get("direction", "forward"), int(attributes.get("layout", 0))
        states, lengths = node.output[0] if node.output else "", any(node.input[4:5])
        shape = self.context.shape(states)
        if lengths or not states or shape is None or shape[axis] < 2:
            return {}
        both = direction == "bidirectional"
        if both and (axis or any(name in self.kept or name in self.readers for name in node.output[1:])):
            return {}
        readers = self._passing(states, axis, 0 if direction == "reverse" else shape[axis] - 1)
        if not readers:
            return {}
        build = NodeBuilder(stem_of(node, index), self.context.names)
        if both:
            _both_ends(node, attributes, build, shape[axis])
        else:
            _last_state(node, attributes, build, axis)
        return {index: build} | {each.place: self._read_one_step(each) for each in readers}

    def _passing(self, name: str, axis: int, step: int) -> list[_Reader] | None:
        """Return the nodes that pass a value on, up to slices of its one `step` along an axis.

        None if a reader takes more.
        """
        if name in self.kept:
            return None
        found: list[_Reader] = []
        for index in self.readers.get(name, ()):
            node = self.nodes[index]
            moved = self._move(node, axis) if node.input[0] == name and name not in node.input[1:] else None
            if moved is not None:
                more = self._passing(node.output[0], moved, step)
                if more is None:
                    return None
                found += [_Reader(index, axis), *more]
            elif self._takes(node, name, axis, step):
                found.append(_Reader(index, axis))
            else:
                return None
        return found

    def _move(self, node: onnx.NodeProto, axis: int) -> int | None:
        """Return the axis of the steps behind a node that moves elements; None behind any other."""
        before, after = self.context.shape(node.input[0]), self.context.shape(node.output[0])
        if node.op_type not in VIEWS | {"Transpose"}:
            return None
        return follow_axis(node.op_type, axis, before, after, attributes_of(node).get("perm"))

    def _takes(self, node: onnx.NodeProto, name: str, axis: int, step: int) -> bool:
        """Return whether a node takes the one step of a value along an axis, and nothing else."""
        shape = self.context.shape(name)
        if shape is None or node.input[0] != name:
            return False
        if node.op_type == "Gather":
            indices = self.context.constant(node.input[1])
            own = int(attributes_of(node).get("axis", 0)) % len(shape)
            single = indices is not None and indices.size == 1
            return own == axis and indices is not None and single and int(indices.item()) % shape[axis] == step
        if node.op_type == "Slice":
            given = [*map(self.context.constant, node.input[1:])]
            after = self.context.shape(node.output[0])
            takes_one = after == (*shape[:axis], 1, *shape[axis + 1 :])
            if not takes_one or len(given) < 3 or given[0] is None or given[2] is None:
                return False
            starts = {int(each) % len(shape): int(start) for each, start in zip(given[2], given[0])}
            start = starts.get(axis, 0)
            return axis in starts and min(max(start + shape[axis] * (start < 0), 0), shape[axis] - 1) == step
        return False

    def _read_one_step(self, reader: _Reader) -> NodeBuilder:
        """Return a reader of one step."""
        node = self.nodes[reader.place]
        build = NodeBuilder(stem_of(node, reader.place), self.context.names)
        attributes, (result,) = attributes_of(node), node.output
        if node.op_type == "Gather":
            first = build.constant(np.zeros_like(self.context.constant(node.input[1])))
            build.node("Gather", node.input[0], first, result=result, **attributes)
        elif node.op_type == "Slice":
            build.node("Identity", node.input[0], result=result)
        elif node.op_type == "Reshape":
            shape = list(self.context.shape(result) or ())
            shape[self._move(node, reader.axis) or 0] = 1
            build.node("Reshape", node.input[0], build.integers(*shape), result=result)
        else:
            build.node(node.op_type, *node.input, result=result, **attributes)
        return build


def _last_state(node: onnx.NodeProto, attributes: dict[str, Any], build: NodeBuilder, axis: int) -> None:
    """Build the node without states; its last state becomes the one step of an `axis`."""
    outputs = [*node.output, ""] if len(node.output) < 2 else list(node.output)
    outputs[1] = outputs[1] or build.names.new(f"{build.stem}/last")
    build.many(node.op_type, node.input, ["", *outputs[1:]], **attributes)
    build.node("Unsqueeze", outputs[1], build.integers(axis), result=node.output[0])


def _both_ends(node: onnx.NodeProto, attributes: dict[str, Any], build: NodeBuilder, steps: int) -> None:
    """Build both directions apart: the states of the last step are the forward one's last, and the reverse one's first."""
    x, *operands = node.input
    last = build.node("Slice", x, build.integers(steps - 1), build.integers(steps), build.integers(0))
    shared = {name: value for name, value in attributes.items() if not name.startswith("activation")}
    ends = []
    for number, (direction, data) in enumerate((("forward", x), ("reverse", last))):
        bounds = build.integers(number), build.integers(number + 1), build.integers(0)
        own = [build.node("Slice", name, *bounds) if name else "" for name in operands]
        named = direction_activations(node.op_type, attributes, number, 2)
        _, end = build.many(node.op_type, [data, *own], 2, **(shared | {"direction": direction} | named))
        build.nodes[-1].output[0] = ""
        ends.append(build.node("Unsqueeze", end, build.integers(0)))
    build.node("Concat", *ends, result=node.output[0], axis=1)
