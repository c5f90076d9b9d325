"""Collect all stores of a kernel, with the loops, bindings and conditions around them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import AllocBuffer, AttrStmt, BufferStore, For, IfThenElse, SeqStmt, Stmt

from .expressions import choice_of, is_true, loads
from .index_grid import GridLoop, Mask, NoMatch
from .loop_nests import axis_values, bounds_of


@dataclass(frozen=True)
class Store:
    """Describe one `BufferStore` and its iteration domain.

    It runs for all values of `loops` for which all `masks` hold; `bindings` are evaluated in order.
    """

    buffer: Var
    indices: Sequence[Expr]
    value: Expr
    loops: tuple[GridLoop, ...]
    bindings: tuple[tuple[Var, Expr], ...]
    masks: tuple[Mask, ...]

    @property
    def iterations(self) -> int:
        """Return an upper bound on its executions."""
        return math.prod(loop.extent for loop in self.loops)

    @property
    def steering(self) -> list[TensorLoad]:
        """Return the loads that decide its address, or whether it runs."""
        return [load for each in (*self.indices, *(condition for condition, _ in self.masks)) for load in loads(each)]


def leaves(value: Expr, masks: tuple[Mask, ...]) -> Iterator[tuple[Expr, tuple[Mask, ...]]]:
    """Yield the values that choices select from, each with the masks it is selected under."""
    choice = choice_of(value)
    if choice is None:
        yield value, masks
        return
    condition, then, other = choice
    yield from leaves(then, (*masks, (condition, True)))
    yield from leaves(other, (*masks, (condition, False)))


def stores(body: Stmt) -> list[Store]:
    """Collect all stores below `body`, in text order. Raises NoMatch for other than loops, blocks and branches."""
    return list(_stores(body, (), (), ()))


def _stores(stmt: Stmt, loops: tuple, bindings: tuple, masks: tuple) -> Iterator[Store]:
    if isinstance(stmt, BufferStore):
        yield Store(stmt.buffer, list(stmt.indices), stmt.value, loops, bindings, masks)
    elif isinstance(stmt, SeqStmt):
        for part in stmt.seq:
            yield from _stores(part, loops, bindings, masks)
    elif isinstance(stmt, For):
        yield from _stores(stmt.body, (*loops, _loop(stmt)), bindings, masks)
    elif isinstance(stmt, SBlockRealize):
        block = stmt.block
        if block.match_buffers:
            raise NoMatch("a block renames buffers")
        bindings = (*bindings, *axis_values(stmt).items())
        masks = masks if is_true(stmt.predicate) else (*masks, (stmt.predicate, True))
        for part in (block.init, block.body):
            if part is not None:
                yield from _stores(part, loops, bindings, masks)
    elif isinstance(stmt, IfThenElse):
        yield from _stores(stmt.then_case, loops, bindings, (*masks, (stmt.condition, True)))
        if stmt.else_case is not None:
            yield from _stores(stmt.else_case, loops, bindings, (*masks, (stmt.condition, False)))
    elif isinstance(stmt, AttrStmt):
        yield from _stores(stmt.body, loops, bindings, masks)
    elif not isinstance(stmt, AllocBuffer):
        raise NoMatch(type(stmt).__name__)


def _loop(stmt: For) -> GridLoop:
    bounds = bounds_of(stmt)
    if bounds is None:
        raise NoMatch("a loop has no constant bounds")
    return GridLoop(stmt.loop_var, *bounds)
