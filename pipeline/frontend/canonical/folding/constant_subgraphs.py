"""Find the constant parts of a graph, and the cost of folding each whole.

    W ─┬─ Slice ─┐
       ├─ Slice ─┼─ Concat ──► LSTM        one part: one frontier value, as large as W
       └─ Slice ─┘

Judged node by node the slices would only add to W; judged whole, W is replaced by its reordered form.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir


def nbytes(value: onnx_ir.Value | onnx_ir.TensorProtocol) -> int:
    """Return the bytes of a value as inferred, one for a string; 0 without a static shape.

    Such a shape is known only once it is computed: that is shape arithmetic.
    """
    if value.shape is None or value.dtype is None or not value.shape.is_static():
        return 0
    return math.ceil(math.prod(value.shape.numpy()) * (1 if value.dtype.is_string() else value.dtype.itemsize))


def fitting_parts(graph: onnx_ir.Graph, growth: int, apart: frozenset[str] = frozenset()) -> set[onnx_ir.Node]:
    """Collect the nodes of constant parts that may be folded whole.

    Folding such a part makes the model at most `growth` bytes larger.

    `graph` is sorted topologically. Two constant nodes are of one part if one reads the other or both read one constant
    of more than `growth` bytes. Operators of `apart` are of no part.
    """
    parts: dict[onnx_ir.Node, int] = {}
    members: dict[int, list[onnx_ir.Node]] = {}
    readers: dict[onnx_ir.Value, int] = {}
    for number, node in enumerate(graph):
        inputs = [value for value in node.inputs if value is not None]
        if (
            not inputs
            or node.op_type in apart
            or not all(_is_constant(value) or value.producer() in parts for value in inputs)
        ):
            continue
        joined = {parts[producer] for value in inputs if (producer := value.producer()) in parts}
        joined |= {readers[value] for value in inputs if value in readers}
        members[number] = [node]
        for other in sorted(joined):
            members[number] = members.pop(other) + members[number]
        for member in members[number]:
            parts[member] = number
        readers = {value: number if part in joined else part for value, part in readers.items()}
        readers |= {value: number for value in inputs if _is_constant(value) and nbytes(value) > growth}
    return {node for nodes in members.values() if _growth(set(nodes)) <= growth for node in nodes}


def _is_constant(value: onnx_ir.Value) -> bool:
    return value.const_value is not None and not value.is_graph_input()


def _growth(part: set[onnx_ir.Node]) -> int:
    """Return the bytes of results other nodes need, minus constants nobody else needs."""
    leaves = {value for node in part for value in node.inputs if value is not None and _is_constant(value)}
    made = [value for node in part for value in node.outputs if _read_outside(value, part)]
    return sum(map(nbytes, made)) - sum(nbytes(value) for value in leaves if not _read_outside(value, part))


def _read_outside(value: onnx_ir.Value, part: set[onnx_ir.Node]) -> bool:
    return value.is_graph_output() or any(use.node not in part for use in value.uses())
