"""Return whether every implementation computes a quantised model's integers alike, so that they have to be equal.

Integer layers, quantisation, and float operators that IEEE 754 rounds correctly give the same numbers everywhere. A sum
of floats in another order, or an approximated function, may round to the next integer: one unit apart is not an error then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...frontend.canonical.control_flow.loop_bodies import loop_bodies
from ...frontend.traits import EXACT, INTEGER_LAYERS, LOGIC, MOVES, QUANTISES

if TYPE_CHECKING:
    import onnx

_MOVES = MOVES | {"Concat", "GlobalMaxPool", "MaxPool", "Pad", "ReduceMax", "ReduceMin"}
#: operators with one result for one operand
_CHOICES = LOGIC | {"ArgMax", "ArgMin", "OneHot", "Range", "Shape", "Size", "TopK", "Trilu"}
_ROUNDS = INTEGER_LAYERS.keys() | QUANTISES


def rounds_nothing(model: onnx.ModelProto) -> bool:
    """Return whether every implementation computes the same numbers: no sum of floats, no approximated function."""
    exact = INTEGER_LAYERS.keys() | EXACT | _MOVES | _CHOICES
    return all(node.op_type in exact for node in model.graph.node)


def is_quantised(model: onnx.ModelProto) -> bool:
    """Return whether some layer computes on integers, or rounds to them."""
    graphs = (model.graph, *loop_bodies(model.graph))
    return any(node.op_type in _ROUNDS for graph in graphs for node in graph.node)


def has_exact_integers(model: onnx.ModelProto) -> bool:
    """Return whether all numbers that `model` quantises are the same in every implementation.

    Floats after the last quantisation do not count: they are compared as floats. Those of a loop may be quantised in its
    next iteration.
    """
    if not is_quantised(model) or next(loop_bodies(model.graph), None) is not None:
        return False
    exact = _ROUNDS | EXACT | _MOVES
    quantised: set[str] = set()
    for node in reversed(model.graph.node):  # from readers to makers: nodes are sorted
        if node.op_type in _ROUNDS or quantised.intersection(node.output):
            if node.op_type not in exact:
                return False
            quantised.update(node.input)
    return True
