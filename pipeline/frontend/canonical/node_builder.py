"""Build ONNX nodes and constants under one prefix, for rewrites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx


def inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the subgraphs of a node."""
    for attribute in node.attribute:
        yield from (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs


class Names:
    """Names of a graph or function: of nodes and values, inner graphs included. Every new name is asked for here."""

    def __init__(self, graph: onnx.GraphProto | onnx.FunctionProto, others: Iterable[str] = ()):
        self._taken = set(others)
        self._collect(graph)

    def _collect(self, graph: onnx.GraphProto | onnx.FunctionProto) -> None:
        if hasattr(graph, "initializer"):
            values = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
            self._taken.update(value.name for value in values)
            self._taken.update(tensor.values.name for tensor in graph.sparse_initializer)
        else:
            self._taken.update(graph.input)
        for node in graph.node:
            self._taken.update((node.name, *node.input, *node.output))
            for inner in inner_graphs(node):
                self._collect(inner)

    def new(self, name: str) -> str:
        """Take `name`, or one that begins with it if that is taken."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


class NodeBuilder:
    """Builder of nodes and initializers; their names begin with `stem`, which tells their origin, and are new."""

    def __init__(self, stem: str, names: Names):
        self.stem, self.names = stem, names
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def constant(self, value: np.ndarray) -> str:
        """Add an initializer; return its name."""
        from onnx import numpy_helper

        name = self.names.new(f"{self.stem}/constant_{len(self.initializers)}")
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name))
        return name

    def copy(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """Add a copy of `node`, to be changed; return it."""
        copied = deepcopy(node)
        self.nodes.append(copied)
        return copied

    def integers(self, *values: int) -> str:
        """Add a one-dimensional int64 initializer: axes, starts, shapes; return its name."""
        return self.constant(np.asarray(values, dtype=np.int64).reshape(-1))

    def from_zero(self, indices: str, dtype: np.dtype | type) -> str:
        """Add nodes that move negative indices out of every range; Gather and scatters count them from the end."""
        zero, beyond = (self.number(value, dtype) for value in (0, np.iinfo(np.int32).min))
        return self.node("Where", self.node("Less", indices, zero), beyond, indices)

    def many(self, op: str, inputs: Sequence[str], outputs: int | Sequence[str], **attributes: object) -> list[str]:
        """Add a node with so many results, or of these names; return the names. Absent operands at the end are left out."""
        from onnx import helper

        name = self.names.new(f"{self.stem}/{op}_{len(self.nodes)}")
        if isinstance(outputs, int):
            outputs = [self.names.new(f"{name}:{index}") for index in range(outputs)]
        self.nodes.append(helper.make_node(op, given(inputs), outputs, name=name, **attributes))
        return list(outputs)

    def node(self, op: str, *inputs: str, result: str = "", **attributes: object) -> str:
        """Add a node with one result, called `result` if given; return the result's name."""
        return self.many(op, inputs, [result] if result else 1, **attributes)[0]

    def number(self, value: object, dtype: np.dtype | type) -> str:
        """Add an initializer of a dtype; return its name."""
        return self.constant(np.asarray(value, dtype))

    def cast(self, value: str, dtype: np.dtype | type | str | int, result: str = "") -> str:
        """Add a Cast to a dtype, or ONNX's number of one; return the result's name."""
        from onnx import helper

        to = dtype if isinstance(dtype, int) else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", value, result=result, to=to)


def given(operands: Sequence[str]) -> list[str]:
    """Return the operands without the absent ones at the end."""
    names = list(operands)
    while names and not names[-1]:
        names.pop()
    return names


def stem_of(node: onnx.NodeProto, index: int) -> str:
    """Return a name prefix for the replacement of `node`, the `index`-th of its graph."""
    return node.name or f"{node.op_type}_{index}"


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return the attributes of a node as Python values; strings as str."""
    from onnx import helper

    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return {
        name: value.decode() if isinstance(value, bytes)
        else [v.decode() if isinstance(v, bytes) else v for v in value] if isinstance(value, (list, tuple))
        else value
        for name, value in values.items()
    }  # fmt: skip


def replace_nodes(graph: onnx.GraphProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Put other nodes in the place of a graph's own, which may be among them."""
    made = list(nodes)
    del graph.node[:]
    graph.node.extend(made)


def splice(graph: onnx.GraphProto | onnx.FunctionProto, replacements: dict[int, NodeBuilder]) -> None:
    """Replace the nodes at the given indices by each builder's nodes, and add its constants; a function's are nodes."""
    from onnx import FunctionProto, helper

    nodes = list(graph.node)
    del graph.node[:]
    for index, node in enumerate(nodes):
        build = replacements.get(index)
        constants = [] if build is None else build.initializers
        if isinstance(graph, FunctionProto):
            graph.node.extend(helper.make_node("Constant", [], [each.name], value=each) for each in constants)
        else:
            graph.initializer.extend(constants)
        graph.node.extend([node] if build is None else build.nodes)


def spliced(model: onnx.ModelProto, replacements: dict[int, NodeBuilder]) -> onnx.ModelProto:
    """Copy `model` with the nodes at the given indices replaced; return `model` itself if there are none."""
    if not replacements:
        return model
    result = deepcopy(model)
    splice(result.graph, replacements)
    return result


def build_replacements(
    graph: onnx.GraphProto, names: Names, rule: Callable[[onnx.NodeProto, NodeBuilder], object], suffix: str = ""
) -> dict[int, NodeBuilder]:
    """Build what `rule` replaces nodes of `graph` by, for `splice`; nodes that it builds nothing for stay."""
    made = {}
    for index, node in enumerate(graph.node):
        build = NodeBuilder(stem_of(node, index) + suffix, names)
        rule(node, build)
        if build.nodes:
            made[index] = build
    return made
