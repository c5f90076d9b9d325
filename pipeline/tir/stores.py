"""Collect all stores of a kernel, with the loops, bindings and conditions around them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tvm.ir import Expr, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import AllocBuffer, AttrStmt, BufferStore, For, IfThenElse, IntImm, SeqStmt, Stmt

from .expressions import is_true
from .index_grid import GridLoop, Mask, Unknown
from .loop_nests import axis_values


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


def stores(body: Stmt) -> list[Store]:
    """Collect all stores below `body`, in text order. Raises Unknown for other than loops, blocks and branches."""
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
            raise Unknown("a block renames buffers")
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
        raise Unknown(type(stmt).__name__)


def _loop(stmt: For) -> GridLoop:
    if not isinstance(stmt.min, IntImm) or not isinstance(stmt.extent, IntImm) or stmt.step is not None:
        raise Unknown("a loop has no constant bounds")
    return GridLoop(stmt.loop_var, int(stmt.min), int(stmt.extent))
