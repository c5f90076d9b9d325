"""What can be done to a sequence: which passes fit at its end, and which ways lead from a graph to kernels."""

from __future__ import annotations

from ..passes.base import Level, ModulePass, Pass
from ..passes.fold_constant import FoldConstant
from ..passes.fuse_operators import FuseOperators
from ..passes.legalize import Legalize
from ..passes.registry import CATALOGUE, parse_spec
from ..passes.sequence import TVM_DEFAULT

#: from a graph to the kernels that are scored: TVM's way first, then with less folding, with less fusion, with none
TAILS: tuple[tuple[Pass, ...], ...] = (
    tuple(parse_spec(spec) for spec in TVM_DEFAULT),
    (Legalize(), FoldConstant(), FuseOperators(over="pooling")),
    (Legalize(), FoldConstant(), FuseOperators(over="reduction")),
    (Legalize(), FoldConstant(grow=0), FuseOperators()),
    (Legalize(), FuseOperators()),
    (Legalize(), FoldConstant(), FuseOperators(depth=4)),
    (Legalize(), FoldConstant(), FuseOperators(depth=2)),
    (Legalize(), FoldConstant()),
)

#: orders of graph passes that are known to go well together
STOCK_ORDERS: tuple[tuple[Pass, ...], ...] = tuple(
    tuple(parse_spec(spec) for spec in specs)
    for specs in (
        ("decompose-ops-for-inference", "eliminate-common-subexpr", "dead-code-elimination"),
        ("fold-batchnorm-to-conv2d", "decompose-ops-for-inference", "eliminate-common-subexpr"),
        ("canonicalize-bindings", "eliminate-common-subexpr", "remove-redundant-reshape", "dead-code-elimination"),
    )
)


def graph_passes() -> tuple[Pass, ...]:
    """Every pass of the catalogue that works on graphs and stays there."""
    return tuple(
        kind()
        for kind in CATALOGUE.values()
        if issubclass(kind, ModulePass) and kind.levels == {Level.GRAPH} and kind is not Legalize
    )
