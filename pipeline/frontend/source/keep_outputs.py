"""Keep chosen outputs of a model alone, or results inside: nodes, constants and inputs that only others need go.

onnx.utils.Extractor does not follow the values that a subgraph (`If`, `Loop` …) reads from around it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ...errors import ModelError, did_you_mean
from ...params.ports import EXAMPLES, OutputPort

if TYPE_CHECKING:
    import onnx


def keep_outputs(model: onnx.ModelProto, outputs: Collection[str]) -> None:
    """Keep the named `outputs` of `model` and the nodes that they need, in place; any result of a node may be one.

    The order stays that of the file, results inside behind its outputs; without names, nothing changes. Raises ModelError
    for a name that is not of a result.
    """
    if not outputs:
        return
    graph = model.graph
    known = [value.name for value in graph.output]
    inner = [name for node in graph.node for name in node.output if name and name not in known]
    for name in outputs:
        if name not in known and name not in inner:
            said = f"The model has no output '{name}', and no node makes it; it has {', '.join(known)}."
            raise ModelError(said, _hint(name, known, inner))
    types = {value.name: value for value in graph.value_info}
    for name in inner:
        if name in outputs:
            graph.output.append(types.get(name) or type(graph.output[0])(name=name))
    for index in reversed(range(len(graph.output))):
        if graph.output[index].name not in outputs:
            del graph.output[index]
    needed = drop_unneeded(graph)
    for index in reversed(range(len(graph.input))):
        if graph.input[index].name not in needed:
            del graph.input[index]


def drop_unneeded(graph: onnx.GraphProto) -> set[str]:
    """Drop the nodes and constants that no output needs, in place; return the values that are needed."""
    outputs = [value.name for value in graph.output]
    makers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    waiting, needed, kept = outputs, set(outputs), set[int]()
    while waiting:
        index = makers.get(waiting.pop())
        if index is None or index in kept:
            continue
        kept.add(index)
        waiting += reads(graph.node[index]) - needed
        needed |= reads(graph.node[index])
    made = {name for index in kept for name in graph.node[index].output}
    for index in reversed(range(len(graph.node))):
        if index not in kept:
            del graph.node[index]
    for values, names in ((graph.initializer, needed), (graph.value_info, needed | made)):
        for index in reversed(range(len(values))):
            if values[index].name not in names:
                del values[index]
    return needed


def _hint(name: str, known: list[str], inner: list[str]) -> str:
    """Return the next step for a name that is none: it may be one with a form that is none."""
    port, equals, form = name.partition("=")
    if equals and port in (*known, *inner):
        return f"'{form}' is not a form of it; write it like {EXAMPLES[OutputPort]}."
    hints = [did_you_mean(name, names) for names in (known, inner)]
    return next((hint for hint in hints if hint.startswith("Did")), hints[0])  # not a list of all results


def reads(node: onnx.NodeProto) -> set[str]:
    """Return the values that a node reads, in its subgraphs too."""
    found = {name for name in node.input if name}
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
            found |= read_from_outside(graph)
    return found


def read_from_outside(graph: onnx.GraphProto) -> set[str]:
    """Collect the values a graph reads and does not make, its subgraphs included."""
    own = {value.name for value in (*graph.input, *graph.initializer)}
    own |= {name for node in graph.node for name in node.output}
    return {value.name for value in graph.output}.union(*map(reads, graph.node)) - own
