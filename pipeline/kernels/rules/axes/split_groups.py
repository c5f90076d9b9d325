"""Give groups of filters, and phases of a transposed convolution, an axis for tiles.

    y[f] += x[f / 8 · 4 + c] · w[f, c]                 f moves both operands: nothing stays in registers

    y[g, i] += x[g · 4 + c] · w[g, i, c]               i moves the weight alone, and runs along vectors

    y[t] += x[t / 2 - j] · w[t % 2 + 2 j]              a stride of 2: neighbours of a phase are neighbours in x

    y[q, r] += x[q - j] · w[r + 2 j]                   q moves x alone, and runs along vectors; r the weight

The memory of all tensors stays as it is; a weight is repacked group by group (see weights/repack.py). If the stride does
not divide the axis, its last places are computed, and not stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import LE, LT, BufferStore, FloorDiv, IfThenElse, IntImm, PrimFunc, Stmt

from ....tir.expressions import conjuncts, is_choice, loads, parts, replaced, uses, walk
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import (
    analyzer_of,
    blocks_of,
    change_nest,
    exchange_params,
    int64,
    kernel_of,
    move_accesses,
    reshaped,
    simplified,
    simplify_indices,
)
from ...weights.repack import Repack
from ..vector_conditions import of_vectors, vectors_in
from .walked_dimensions import new_axes, walked_dimensions


@dataclass(frozen=True)
class Grouped:
    """Kernel with an axis of `inner` elements split off; `dimensions` are the split ones, by position of a parameter.

    Element 0 of the `extent` elements of such a dimension is number `offset` of the first group.
    """

    kernel: PrimFunc
    inner: int
    dimensions: tuple[tuple[int, int], ...]
    extent: int
    offset: int = 0

    def joined(self, scheduled: PrimFunc, repacks: Sequence[Repack]) -> tuple[PrimFunc, tuple[Repack, ...]] | None:
        """Return the schedule of the split kernel for the true shapes, and its repacks group by group.

        None if a weight was repacked along another dimension than filters of a group.
        """
        packed, split = {repack.parameter: repack for repack in repacks}, dict(self.dimensions)
        if any(
            number in split and (repack.lanes or repack.dimension != split[number] + 1)
            for number, repack in packed.items()
        ):
            return None
        made, places, lanes = {}, {}, vectors_in(scheduled.body)
        for number, dimension in self.dimensions:
            if number not in packed:
                param = scheduled.params[number]
                shape = [int(extent) for extent in param.ty.shape]
                shape[dimension : dimension + 2] = [self.extent]
                made[param], places[param] = reshaped(param, shape), dimension

        def placed(buffer: Var, indices: Sequence[Expr]) -> list[Expr]:
            at = places[buffer]
            return [*indices[:at], indices[at] * self.inner + indices[at + 1] - self.offset, *indices[at + 2 :]]

        def guarded(each: BufferStore) -> Stmt:
            at = each.indices[places[of[each.buffer]]]
            inside = [_of_vectors(condition, lanes) for condition in self._inside(at)]
            return IfThenElse(tirx.all(*inside), each, None) if inside else each

        of = {new: param for param, new in made.items()}
        return exchange_params(scheduled, made, placed, guarded), tuple(
            replace(repack, dimension=split[number], inner=self.inner) if number in split else repack
            for number, repack in packed.items()
        )

    def _inside(self, index: Expr) -> list[Expr]:
        """Return the conditions for an element to exist."""
        found = [] if self.offset == 0 else [index >= 0]
        return found if (self.extent + self.offset) % self.inner == 0 else [*found, index < self.extent]


def split_groups(kernel: PrimFunc, lanes: int = 1) -> Grouped | None:
    """Split an axis by groups or phases; None for an unscheduled kernel of another form.

    Phases of a stride that `lanes` divide are aligned to the weight.
    """
    try:
        blocks = blocks_of(kernel)
        found = next((each for block in blocks for each in [_grouped_axis(block, lanes)] if each is not None), None)
        return None if found is None else _split(kernel, blocks, *found)
    except NoMatch:
        return None


def _grouped_axis(block: SBlock, lanes: int) -> tuple[Var, int, int, int] | None:
    """Find a dimension written by group: its buffer and number, filters of a group, offset.

    Only the last dimension may be split unevenly.
    """
    if block.init is None:
        return None
    indices = [index for load in loads(block.body.value) for index in load.indices]
    quotients = [each for index in indices for each in walk(index) if isinstance(each, FloorDiv)]
    for number, index in enumerate(block.body.indices):
        extent, last = int(block.body.buffer.ty.shape[number]), number == len(block.body.indices) - 1
        for quotient in quotients:
            inner = int(quotient.b) if isinstance(quotient.b, IntImm) else 1
            if inner <= 1 or extent <= inner or not isinstance(index, Var):
                continue
            if quotient.a.same_as(index) and extent % inner == 0:
                return block.body.buffer, number, inner, 0
            linear = sym.detect_linear_equation(quotient.a, [index])
            if not linear or not sym.Analyzer().can_prove_equal(linear[0], 1):
                continue
            shift = int(linear[1]) % inner if isinstance(linear[1], IntImm) else None
            if last or (shift == 0 and extent % inner == 0):
                return block.body.buffer, number, inner, (shift or 0) if inner % lanes == 0 else 0
    return None


def _split(
    kernel: PrimFunc, blocks: Sequence[SBlock], buffer: Var, dimension: int, inner: int, offset: int
) -> Grouped | None:
    extent = int(buffer.ty.shape[dimension])
    outer = -(-(extent + offset) // inner)
    walked = walked_dimensions(blocks, buffer, dimension)
    if walked is None:
        return None
    split, axes = walked
    made = {}
    for other, number in split.items():
        shape = [int(each) for each in other.ty.shape]
        made[other] = reshaped(other, [*shape[:number], outer, inner, *shape[number + 1 :]])
    nests = []
    for block in blocks:
        own, parts = new_axes(block, {axis: (outer, inner) for axis in axes})
        values: dict[Var, Expr] = {var: each[0] for var, each in parts.items()}
        halves = {var: parts[var] for var in axes & parts.keys()}
        values |= {var: group * int64(inner) + member - offset for var, (group, member) in halves.items()}
        analyzer = analyzer_of(own)

        def placed(other: Var, indices: Sequence[Expr], halves=halves) -> list[Expr]:
            at = split[other]
            return [*indices[:at], *halves[indices[at]], *indices[at + 1 :]]

        def change(store: BufferStore, placed=placed, values=values, analyzer=analyzer) -> BufferStore:
            return _simplified(replaced(move_accesses(store, made, placed), values), analyzer)

        moved = [group for group, _ in halves.values()]
        if (
            outer * inner != extent
            and block.init is not None
            and not _reads_inside(change(block.body), moved, analyzer)
        ):
            return None
        nests.append(change_nest(block, own, change))
    buffers = [made.get(each, each) for each in kernel.body.block.alloc_buffers]
    params = [made.get(param, param) for param in kernel.params]
    numbers = tuple((n, split[param]) for n, param in enumerate(kernel.params) if param in split)
    return Grouped(kernel_of(params, nests, buffers, kernel.attrs), inner, numbers, extent, offset)


def _simplified(store: BufferStore, analyzer: sym.Analyzer) -> BufferStore:
    """Simplify the indices and the comparisons of a store."""

    def condition(each: LT | LE) -> Expr:
        if str(each.a.ty.dtype) != "int64":  # of data
            return each
        return type(each)(*(simplified(analyzer, side) for side in (each.a, each.b)))

    return tvm_ffi.structural_map(simplify_indices(store, analyzer), ((LT, LE), condition))


def _of_vectors(condition: Expr, lanes: Mapping[Var, int]) -> Expr:
    """Return a condition of whole vectors if it has one answer for all lanes; else itself, for each lane."""
    try:
        return of_vectors(condition, lanes)
    except NoMatch:
        return condition


def _reads_inside(store: BufferStore, moved: Sequence[Var], analyzer: sym.Analyzer) -> bool:
    """Return whether all reads of a sum are inside their tensors, also for elements that are not stored.

    Indices that none of `moved`, the axes of groups, occurs in are as they were.
    """

    def inside(expr: Any, known: Sequence[Expr]) -> bool:
        if is_choice(expr):
            return inside(expr.args[1], [*known, *conjuncts(expr.args[0])]) and inside(expr.args[2], known)
        if isinstance(expr, TensorLoad) and not expr.source.same_as(store.buffer):
            return all(held(*each, known) for each in zip(expr.indices, expr.source.ty.shape))
        return all(inside(part, known) for part in parts(expr)) if not isinstance(expr, TensorLoad) else True

    def held(index: Expr, extent: Expr, known: Sequence[Expr]) -> bool:
        if not any(uses(index, axis) for axis in moved):
            return True
        bound = analyzer.const_int_bound(index)
        above = [each for each in known if isinstance(each, LE) and analyzer.can_prove(each.a >= 0)]
        below = [each for each in known if isinstance(each, LT) and analyzer.can_prove(each.b <= extent)]
        low = int(bound.min_value) >= 0 or any(analyzer.can_prove_equal(each.b, index) for each in above)
        high = int(bound.max_value) < int(extent) or any(analyzer.can_prove_equal(each.a, index) for each in below)
        return low and high

    return inside(store.value, [])
