"""Search space: candidates, start points and actions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...passes.base import Level, ModulePass, Pass
from ...passes.graph.folding.fold_constant import FoldConstant
from ...passes.graph.fuse_operators import FuseOperators
from ...passes.graph.legalize import Legalize
from ...passes.graph.mapping.fuse_by_mapping import FuseByMapping
from ...passes.graph.stock import CanonicalizeBindings, DeadCodeElimination
from ...passes.sequence.catalogue import CATALOGUE, parse_spec
from ...passes.sequence.sequence import TVM_DEFAULT

#: tails, from a graph to scored kernels: TVM's default first, then wider fusion, less folding, less fusion
TAILS: tuple[tuple[Pass, ...], ...] = (
    tuple(parse_spec(spec) for spec in TVM_DEFAULT),
    (Legalize(), FoldConstant(), FuseOperators(over="pooling")),
    (Legalize(), FoldConstant(), FuseOperators(over="reduction")),
    (Legalize(), FoldConstant(grow=0), FuseOperators()),
    (Legalize(), FuseOperators()),
    (Legalize(), FoldConstant(), FuseOperators(depth=4)),
    (Legalize(), FoldConstant(), FuseOperators(depth=2)),
    (Legalize(), FoldConstant()),
    (Legalize(), FoldConstant(), FuseByMapping()),
)

#: orders of graph passes known to work well together
STOCK_ORDERS: tuple[tuple[Pass, ...], ...] = tuple(
    tuple(parse_spec(spec) for spec in specs)
    for specs in (
        ("decompose-ops-for-inference", "eliminate-common-subexpr"),
        ("fold-batchnorm-to-conv2d", "decompose-ops-for-inference", "eliminate-common-subexpr"),
        ("eliminate-common-subexpr", "remove-redundant-reshape"),
    )
)


#: removal of trivial bindings and dead code, which never costs anything. It follows every graph pass of a candidate, so
#: that graphs differing in nothing else are one state; on a classifier of 230 operators that makes 6 states of 208.
CLEAN_UP: tuple[Pass, ...] = (CanonicalizeBindings(), DeadCodeElimination())


@dataclass(frozen=True)
class Candidate:
    """Candidate sequence: graph passes, each followed by CLEAN_UP, then a tail to kernels."""

    prefix: tuple[Pass, ...] = ()
    tail: tuple[Pass, ...] = TAILS[0]

    @property
    def passes(self) -> tuple[Pass, ...]:
        return (*clean(self.prefix), *self.tail)


def clean(prefix: tuple[Pass, ...]) -> tuple[Pass, ...]:
    """Return the graph passes with CLEAN_UP after each; passes of CLEAN_UP become a single CLEAN_UP."""
    return tuple(step for each in prefix for step in (CLEAN_UP if each in CLEAN_UP else (each, *CLEAN_UP)))


def actions(*, lossy: bool = False) -> tuple[Pass, ...]:
    """Return the graph passes a search may append; CLEAN_UP alone is one action."""
    return (CLEAN_UP[0], *(each for each in graph_passes(lossy=lossy) if each not in CLEAN_UP))


def graph_passes(*, lossy: bool = False) -> tuple[Pass, ...]:
    """Return all catalogue passes from graph to graph; lossy ones only if admitted."""
    return tuple(
        each
        for kind in CATALOGUE.values()
        if issubclass(kind, ModulePass)
        and kind.levels == {Level.GRAPH}
        and kind is not Legalize
        and (lossy or not kind.lossy)
        for each in kind.instances()
    )


def starts() -> Iterator[Candidate]:
    """Yield TVM's default, then every other tail, then the stock orders."""
    for tail in TAILS:
        yield Candidate((), tail)
    for order in STOCK_ORDERS:
        yield Candidate(order)


def neighbours(candidate: Candidate, passes: tuple[Pass, ...]) -> Iterator[Candidate]:
    """Yield candidates with one more graph pass at the prefix's end, or another tail."""
    for each in passes:
        if not candidate.prefix or candidate.prefix[-1] != each:
            yield Candidate((*candidate.prefix, each), candidate.tail)
    for tail in TAILS:
        if tail != candidate.tail:
            yield Candidate(candidate.prefix, tail)
