"""Find the constraints of a model's inputs: carry those of all operands back, from readers to makers.

ids ─► Cast ─► Gather from 10 rows      ids in −10 … 9
 └───► Less than 5                      … and the model would fail elsewhere, so all of them
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...frontend.canonical.graph_context import NodeView, Values
from ...frontend.canonical.node_builder import inner_graphs
from .constraint import Constraint, meet, suggest
from .known_values import known_values
from .result_rows import MOVES, RESULTS
from .vendor_rows import ALL_OPERANDS

if TYPE_CHECKING:
    import onnx

#: largest magnitude of integers that are computed with: sums of products of two stay within int32
_COMPUTED = 1000
#: walks over a body that reads what it wrote in the iteration before
_WALKS = 2


def input_constraints(model: onnx.ModelProto) -> dict[str, Constraint]:
    """Map constrained inputs to their constraints. Works on files of any operator set and domain."""
    graph, values = known_values(model)
    found: dict[str, Constraint] = {}
    _walk(graph, values, found)
    inputs = {value.name for value in model.graph.input}
    return {name: constraint for name, constraint in found.items() if name in inputs}


def _walk(graph: onnx.GraphProto, values: Values, found: dict[str, Constraint]) -> None:
    """Add the constraints of all operands in a graph; names are unique throughout a model."""
    for node in reversed(graph.node):  # sorted: readers come after makers
        _walk_bodies(node, values, found)
        view = NodeView(node, values)
        for number, constraint in _operands(view, found.get(node.output[0]) if node.output else None):
            _add(found, view.name(number), constraint)


def _operands(node: NodeView, wanted: Constraint | None) -> list[tuple[int, Constraint]]:
    """Return the constraints of a node's operands: those of the operator, and those its result passes on."""
    moves = node.key in MOVES
    found = list(ALL_OPERANDS[node.key](node).items()) if node.key in ALL_OPERANDS else []
    if not moves:
        found += [(number, suggest(_COMPUTED)) for number in range(len(node.input))]
    if node.key in RESULTS and (wanted is not None or not moves):
        wanted = wanted or suggest()
        passed = RESULTS[node.key](node, wanted)
        found += [(at, replace(each, magnitude=min(each.magnitude, wanted.magnitude))) for at, each in passed.items()]
    return found


def _add(found: dict[str, Constraint], name: str, constraint: Constraint) -> None:
    if name:
        found[name] = meet(found[name], constraint) if name in found else constraint


def _walk_bodies(node: onnx.NodeProto, values: Values, found: dict[str, Constraint]) -> None:
    """Carry constraints of results into bodies of If, Loop and Scan, and of their inputs out."""
    for body in inner_graphs(node):
        skipped, carried = _links(node, body)
        for _ in range(_WALKS if node.op_type in ("Loop", "Scan") else 1):
            _connect(found, node.output, [value.name for value in body.output][skipped:])
            _connect(found, [value.name for value in body.input][2 * skipped :][:carried],
                     [value.name for value in body.output][skipped:])  # fmt: skip
            _walk(body, values, found)
        if node.op_type in ("Loop", "Scan"):
            _connect(found, [value.name for value in body.input], _outer(node, body))


def _links(node: onnx.NodeProto, body: onnx.GraphProto) -> tuple[int, int]:
    """Return the numbers of a body's results that are not the node's, and that are carried on."""
    if node.op_type == "Loop":  # (trip, condition, carried …) to (condition, carried …, scanned …)
        return 1, len(body.input) - 2
    scanned = next((each.i for each in node.attribute if each.name == "num_scan_inputs"), 0)
    return 0, len(body.input) - scanned if node.op_type == "Scan" else 0


def _outer(node: onnx.NodeProto, body: onnx.GraphProto) -> list[str]:
    """Return the operands of a node by input of its body; those of Scan-8 follow the lengths."""
    names = ["", *node.input[1:]] if node.op_type == "Loop" else list(node.input)
    return names[-len(body.input) :] if node.op_type == "Scan" else names


def _connect(found: dict[str, Constraint], readers: Mapping | list[str], makers: list[str]) -> None:
    """Pass constraints on, position by position; slices and stacks keep intervals, not forms."""
    for reader, maker in zip(readers, makers, strict=False):
        if reader in found:
            _add(found, maker, replace(found[reader], form=None))
