"""Unswitch the choices of a tile: one whose elements all come from one place reads them there.

    for c:                                              for c:
      for p in 0…20: pad[p] = x[c, 492 + t + p]           if 8 <= t and t + 19 < 508:                     one test a tile
          if t + p < 8 else x[c, t + p - 8] if …              for j, r: acc[r] += x[c, t + r + 8 j - 8] * w[c, j]
      for j, r: acc[r] += pad[r + 8 j] * w[c, j]          else: the copy, and the sum of what it holds

Circular, reflected and repeated edges are such choices, of values or of indices, and concatenations that a product
reads. Unswitching: Allen and Cocke, A Catalogue of Optimizing Transformations, 1971.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Call, Expr, TensorLoad, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import (
    GE,
    GT,
    LE,
    LT,
    And,
    BufferStore,
    For,
    IfThenElse,
    IntImm,
    Max,
    Min,
    Not,
    Or,
    PrimFunc,
    Select,
    SeqStmt,
    Stmt,
)
from tvm.tirx.analysis import undefined_vars

from ....tir.expressions import choice_of, collect, is_true, loads, map_body, reads, replaced, unconverted, uses, walk
from ....tir.index_grid import GridLoop, NoMatch, grid_over
from ....tir.loop_nests import (
    all_of,
    are_axes,
    axis_values,
    bounds_of,
    int64,
    nest_loops,
    renewed,
    sequence,
    with_fields,
)
from ....tir.switches import switchable

#: most places that get a sum of their own, and the least share of the tiles that read each throughout
_MOST, _SHARE = 2, 0.25
#: most values of an expression to look at: choices double them, and a bilinear resize clamps eight indices
_VALUES = 64
#: positions over which shares are counted
_SAMPLES = 1 << 18
#: a condition, and whether it holds
_Asked = tuple[Expr, bool]


@switchable
def unswitch_choices(kernel: PrimFunc) -> PrimFunc:
    """Unswitch the choices of a tiled kernel; return `kernel` itself if it has none by position."""
    around = _extents(collect(kernel.body, For))

    def unswitched(parts: SeqStmt) -> Stmt:
        first, *rest = parts.seq
        copy = _nest_of(first)
        if (
            copy is None
            or not are_axes(copy.block, copy.store.indices)
            or not all(reads(each, copy.store.buffer) for each in rest)
        ):
            found = [_unswitched_sum(each, around) for each in parts.seq]
            return parts if all(one.same_as(other) for one, other in zip(found, parts.seq)) else SeqStmt(found)
        stmt: Stmt = parts
        for value, whole in reversed(_cases(copy, around)):
            if isinstance(unconverted(value), TensorLoad):  # others are computed once, in the copy
                plain = sequence([renewed(_in_place(each, copy, value)) for each in rest])
                stmt = IfThenElse(whole, plain, stmt)
        return stmt

    return map_body(kernel, (SeqStmt, unswitched))


@dataclass(frozen=True)
class _Nest:
    """Perfect nest around a block: its axes with their values, and its loops with their extents."""

    block: SBlock
    values: Mapping[Var, Expr]
    loops: Mapping[Var, int]

    @property
    def store(self) -> BufferStore:
        return self.block.body


def _nest_of(nest: Stmt) -> _Nest | None:
    """Match a perfect nest whose store chooses by position."""
    loops, realize = nest_loops(nest)
    extents = _extents(loops)
    if not isinstance(realize, SBlockRealize) or not is_true(realize.predicate) or len(extents) < len(loops):
        return None
    block = realize.block
    if block.init is not None or not isinstance(block.body, BufferStore) or _first_choice(block.body.value) is None:
        return None
    return _Nest(block, axis_values(realize), extents)


def _extents(loops: Sequence[For]) -> dict[Var, int]:
    """Return the extents of loops that count from 0, by their variables."""
    bounds = {loop.loop_var: bounds_of(loop) for loop in loops}
    return {var: each[1] for var, each in bounds.items() if each is not None and not each[0]}


def _unswitched_sum(stmt: Stmt, around: Mapping[Var, int]) -> Stmt:
    """Unswitch a nest that adds to its own elements."""
    nest = _nest_of(stmt)
    if nest is None or not reads(nest.store.value, nest.store.buffer):
        return stmt
    for value, whole in _cases(nest, around)[:1]:
        store = BufferStore(nest.store.buffer, value, nest.store.indices)
        plain = tvm_ffi.structural_map(stmt, (SBlock, partial(_with_body, body=store)))
        return IfThenElse(whole, renewed(plain), stmt)
    return stmt


def _cases(nest: _Nest, around: Mapping[Var, int]) -> list[tuple[Expr, Expr]]:
    """Return the values that enough tiles have throughout, each with its condition, the most frequent first."""
    own = {axis.var: int(axis.dom.extent) for axis in nest.block.iter_vars}
    found = []
    branches = list(islice(_branches(nest.store.value, ()), _VALUES + 1))
    if len(branches) > _VALUES:
        return []
    for value, conditions in branches:
        try:
            alone = [_share([condition], own) for condition in conditions]
            if 0 in alone:
                continue
            asked = [condition for condition, share in zip(conditions, alone) if share != 1]
            whole = [_throughout(replaced(each, nest.values), holds, nest.loops) for each, holds in asked]
            # the share of tiles, over rows that are known only when they run
            share = _share([(each, True) for each in whole if set(undefined_vars(each)) <= around.keys()], around)
        except NoMatch:
            continue
        known = all(set(undefined_vars(each)) <= around.keys() for each in whole)
        if share is not None and share >= _SHARE:
            found.append((known, share, len(undefined_vars(value)), (value, tirx.all(tirx.const(True), *whole))))
    if not all(known for known, *_ in found):
        found = [max(found, key=lambda each: each[2])]  # an edge reads one place, whatever the position
    return [case for *_, case in sorted(found, key=lambda each: -each[1])[:_MOST]]


def _branches(value: Expr, conditions: tuple[_Asked, ...]) -> Iterator[tuple[Expr, tuple[_Asked, ...]]]:
    """Yield the values between which choices choose, each with the conditions that do or do not hold then."""
    first = _first_choice(value)
    if first is None:
        yield value, conditions
        return
    choice, (condition, *either) = first
    for chosen, holds in zip(either, (True, False)):

        def put(each: Expr, chosen=chosen) -> Expr:
            return chosen if tvm_ffi.structural_equal(each, choice) else each

        made = tvm_ffi.structural_map(value, [(kind, put) for kind in (Call, Select, Max, Min)])
        yield from _branches(made, (*conditions, (condition, holds)))


def _first_choice(value: Expr) -> tuple[Expr, tuple] | None:
    """Return the outermost choice whose condition holds no other, with condition and values as of `_choice_of`."""
    found = ((each, choice) for each in walk(value) if (choice := _choice_of(each)) is not None)
    return next(((each, choice) for each, choice in found if _first_choice(choice[0]) is None), None)


def _choice_of(expr: object) -> tuple | None:
    """Return the condition and both values of a choice by position; those of an index may be a maximum or a minimum."""
    found = choice_of(expr)
    if isinstance(expr, (Max, Min)) and str(expr.ty.dtype).startswith("int") and not loads(expr):
        found = (expr.a > expr.b if isinstance(expr, Max) else expr.a < expr.b, expr.a, expr.b)
    return None if found is None or loads(found[0]) else found


def _share(conditions: Sequence[_Asked], extents: Mapping[Var, int]) -> float | None:
    """Return the share of the positions for which conditions hold; None if they ask for other variables."""
    used = {var for condition, _ in conditions for var in undefined_vars(condition)}
    if used - extents.keys():
        return None
    asked = [var for var in extents if var in used]
    if math.prod(extents[var] for var in asked) > _SAMPLES:
        raise NoMatch("too many positions to count")
    grid = grid_over([GridLoop(var, 0, extents[var]) for var in asked])
    held = np.ones(grid.shape, bool)
    for condition, holds in conditions:
        held &= grid.holds(condition) == holds
    return float(held.mean())


def _throughout(condition: Expr, holds: bool, loops: Mapping[Var, int]) -> Expr:
    """Return a condition without `loops` by which another holds, or does not, in all iterations. Raises NoMatch."""
    if isinstance(condition, Not):
        return _throughout(condition.a, not holds, loops)
    if isinstance(condition, (And, Or)):
        join = tirx.all if isinstance(condition, And) == holds else tirx.any
        return join(_throughout(condition.a, holds, loops), _throughout(condition.b, holds, loops))
    if not any(uses(condition, var) for var in loops):
        return condition if holds else Not(condition)
    if not isinstance(condition, (LT, LE, GT, GE)):
        raise NoMatch("a condition is not a comparison")
    less = isinstance(condition, (LT, LE))
    small, large = (condition.a, condition.b) if less == holds else (condition.b, condition.a)
    strict = isinstance(condition, (LT, GT)) == holds
    # the difference is greatest where each loop is at one of its ends
    linear = sym.detect_linear_equation(small - large, list(loops))
    if not linear or any(not isinstance(each, IntImm) for each in linear[:-1]):
        raise NoMatch("a condition is not linear in the copy's loops")
    greatest = sum(max(0, int(step) * (extent - 1)) for step, extent in zip(linear, loops.values()))
    most = sym.Analyzer().simplify(linear[-1] + int64(greatest))
    return most < 0 if strict else most <= 0


def _in_place(nest: Stmt, copy: _Nest, value: Expr) -> Stmt:
    """Read the value itself in place of its copy."""
    axes = [axis.var for axis in copy.block.iter_vars]

    def load(each: TensorLoad) -> Expr:
        return replaced(value, dict(zip(axes, each.indices))) if each.source.same_as(copy.store.buffer) else each

    moved = tvm_ffi.structural_map(nest, (TensorLoad, load))
    return tvm_ffi.structural_map(moved, (SBlock, lambda block: _with_body(block, block.body)))


def _with_body(block: SBlock, body: Stmt) -> SBlock:
    sources = dict.fromkeys(load.source for load in loads(body))
    return with_fields(block, reads=[all_of(source) for source in sources], body=body)
