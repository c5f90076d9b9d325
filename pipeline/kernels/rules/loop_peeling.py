"""Peel the loops around register tiles: the end tiles, which meet padding or have fewer rows, get their own code.

    for x in 0…10:                                            a tile: columns 3 x … 3 x + 2, as far as there are 29
        for c, i, j, r: acc[r] += (data[c, y + i - 1, 3 x + r + j - 1] if inside else 0) * weight[c, i, j]

    x = 0: …; for x in 1…9: …; x = 9: …                       only the first and the last meet columns of padding
        for c, i: if 1 <= y + i < 28:                         one test of rows for the whole tile
            for j, r: acc[r] += data[…] * weight[…]           no test of columns except in the end tiles

Padding is skipped, not copied: it would add 0 to a sum. At the ends x is constant, and the compiler decides most
tests of a row there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tvm import tirx
from tvm.ir import Expr, Range, TensorLoad, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import BufferStore, For, IfThenElse, IntImm, PrimFunc, SeqStmt, Stmt

from ...tir.expressions import collect, conjuncts, is_among, is_choice, is_true, loads, replaced, unconverted, uses
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import (
    all_of,
    analyzer_over,
    axis_values,
    int64,
    kernel_of,
    move_accesses,
    nest_loops,
    nests_in,
    renewed,
    reshaped,
    sequence,
    statements,
    with_fields,
)
from .vector_conditions import VECTORIZED, of_vectors

_SERIAL = 0
#: largest number of tiles at an end that are peeled one by one
_ENDS = 2


def has_skippable_padding(block: SBlock, paddings: Sequence[SBlock]) -> bool:
    """Return whether all `paddings` can be skipped: each is a load or 0, and one factor of a summed product.

    The load may be converted, and less a zero point. Padding that computes more is better computed once, and copied.
    """
    total = block.body.value
    if type(total).__name__ != "Add" or type(total.b).__name__ != "Mul":
        return not paddings
    factors = [unconverted(each) for each in (total.b.a, total.b.b)]
    for padding in paddings:
        value = padding.body.value
        if not is_choice(value) or not _is_centred(value.args[1]) or getattr(value.args[2], "value", 1) != 0:
            return False
        read = [load for load in loads(total) if load.source.same_as(padding.body.buffer)]
        if len(read) != 1 or not any(read[0].same_as(each) for each in factors):
            return False
    return True


def _is_centred(expr: Expr) -> bool:
    """Return whether an expression is a load, perhaps converted, perhaps less a constant."""
    expr = unconverted(expr)
    if isinstance(expr, (tirx.Sub, tirx.Add)) and isinstance(expr.b, IntImm):
        expr = unconverted(expr.a)
    return isinstance(expr, TensorLoad)


def skips_products(block: SBlock) -> bool:
    """Return whether a reduction adds products of which a factor is 0 under a condition."""
    return bool(_without_padding(block.body)[1])


def peel_loops(kernel: PrimFunc) -> PrimFunc:
    """Peel the tile loops of `kernel`, whose reduction is tiled and whose padding is inlined.

    Raises NoMatch for a kernel of another form.
    """
    (whole,) = nests_in(kernel)
    around, nest = nest_loops(whole)
    own = list(kernel.body.block.alloc_buffers)
    if not isinstance(nest, SeqStmt) or len(own) != 1:
        raise NoMatch("the loop nest holds more than one tile")
    return kernel_of(kernel.params, [_Tile(nest, around, own[0]).nest()], [], kernel.attrs)


class _Tile:
    """Rebuild one tile, moving its sums from `buffer` to private accumulators.

    `around` are the loops around it.
    """

    def __init__(self, body: Stmt, around: Sequence[For], buffer: Var):
        self._around = around
        parts = sequence(list(_read(body, {}, {})))
        loops = collect(parts, For)
        self._inner = {loop.loop_var: Range(0, loop.extent) for loop in loops}
        self._rows = [loop.loop_var for loop in loops if int(loop.kind) != _SERIAL]
        self._conditions = [each for guard in collect(parts, IfThenElse) for each in conjuncts(guard.condition)]
        first = {loop.loop_var: int64(0) for loop in around}
        self._accumulators = reshaped(buffer, _extents(parts, buffer, first, self._inner), "acc")
        # every tile at the indices of the first
        self._body = move_accesses(
            parts, {buffer: self._accumulators}, lambda _, indices: [replaced(index, first) for index in indices]
        )

    def nest(self, ranges: Mapping[Var, Range] = {}, values: Mapping[Var, Expr] = {}) -> Stmt:
        """Peel the loops around a tile that have no range yet, and build the tile."""
        if len(ranges) == len(self._around):
            return self._tile(ranges, values)
        loop = self._around[len(ranges)]
        parts = []
        for first, count in self._parts(loop.loop_var, int(loop.extent), ranges):
            var = Var(loop.loop_var.name, "int64")
            value = int64(first) if count == 1 else var if first == 0 else var + first
            body = self.nest(
                {**ranges, loop.loop_var: Range.from_min_extent(int64(first), int64(count))},
                {**values, loop.loop_var: value},
            )
            parts.append(body if count == 1 else For(var, int64(0), int64(count), _SERIAL, body))
        return sequence(parts)

    def _parts(self, var: Var, extent: int, ranges: Mapping[Var, Range]) -> list[tuple[int, int]]:
        """Return first value and count of each part of a peeled loop.

        The ends are peeled one by one if they are few; between them no condition is left that depends on rows of a tile
        too.
        """
        asked = [each for each in self._conditions if uses(each, var) and any(uses(each, row) for row in self._rows)]
        if not asked:
            return [(0, extent)]

        def decided(first: int, count: int) -> bool:
            analyzer = analyzer_over({**self._inner, **ranges, var: Range.from_min_extent(int64(first), int64(count))})
            return all(analyzer.can_prove(condition) for condition in asked)

        start = next((value for value in range(extent) if decided(value, 1)), extent)
        end = next((value for value in range(extent, start, -1) if decided(value - 1, 1)), start)
        if start < end and not decided(start, end - start):
            raise NoMatch("inner tiles meet padding")
        found = [(start, end - start)] if start < end else []
        for first, count in ((0, start), (end, extent - end)):
            found += [(first + n, 1) for n in range(count)] if count <= _ENDS else [(first, count)]
        return sorted(found)

    def _tile(self, ranges: Mapping[Var, Range], values: Mapping[Var, Expr]) -> Stmt:
        analyzer = analyzer_over({**self._inner, **ranges})
        decided = [condition for condition in self._conditions if analyzer.can_prove(condition)]
        own = reshaped(self._accumulators, self._accumulators.ty.shape)
        body = sequence([_under(*_hoist(part, decided)) for part in statements(self._body)])
        body = replaced(renewed(body), {**values, self._accumulators: own})
        region = [all_of(own)]
        return SBlockRealize([], tirx.const(True), SBlock([], region, region, "tile", body, alloc_buffers=[own]))


def _hoist(stmt: Stmt, decided: Sequence[Expr]) -> tuple[Stmt, list[Expr]]:
    """Hoist the conditions of a statement out of its loops, but for those decided; return it without, and them."""
    if isinstance(stmt, IfThenElse):
        return stmt.then_case, [each for each in conjuncts(stmt.condition) if not is_among(each, decided)]
    if not isinstance(stmt, For):
        return stmt, []
    parts, outside = [_hoist(each, decided) for each in statements(stmt.body)], []
    if len(parts) == 1:
        ((inner, conditions),) = parts
        outside = [each for each in conditions if not uses(each, stmt.loop_var)]
        parts = [(inner, [each for each in conditions if uses(each, stmt.loop_var)])]
    return with_fields(stmt, body=sequence([_under(*each) for each in parts])), outside


def _read(stmt: Stmt, values: Mapping[Var, Expr], lanes: Mapping[Var, int]) -> Iterator[Stmt]:
    """Yield a statement without blocks and single iterations; padding becomes a condition of its store.

    `lanes` are the vectorized loops, with their extents.
    """
    if isinstance(stmt, SeqStmt):
        for part in stmt.seq:
            yield from _read(part, values, lanes)
    elif isinstance(stmt, For) and int(stmt.extent) == 1:
        yield from _read(stmt.body, {**values, stmt.loop_var: int64(0)}, lanes)
    elif isinstance(stmt, For):
        if int(stmt.kind) == VECTORIZED:
            lanes = {**lanes, stmt.loop_var: int(stmt.extent)}
        yield with_fields(stmt, body=sequence(list(_read(stmt.body, values, lanes))))
    elif isinstance(stmt, SBlockRealize) and isinstance(stmt.block.body, BufferStore) and stmt.block.init is None:
        bound = {axis: replaced(value, values) for axis, value in axis_values(stmt).items()}
        store, conditions = _without_padding(stmt.block.body)
        asked = [replaced(each, bound) for each in conditions]
        if not is_true(stmt.predicate):
            asked += [replaced(each, values) for each in conjuncts(stmt.predicate)]
        yield _under(replaced(store, bound), [of_vectors(condition, lanes) for condition in asked])
    else:
        raise NoMatch("not a loop nest of plain blocks")


def _extents(stmt: Stmt, buffer: Var, first: Mapping[Var, Expr], inner: Mapping[Var, Range]) -> list[int]:
    """Return the extents of `buffer` that the first tile stores. Raises NoMatch if an index has no bound."""
    analyzer, found = analyzer_over(inner), [1] * len(buffer.ty.shape)
    for store in collect(stmt, BufferStore):
        if store.buffer.same_as(buffer):
            bounds = [analyzer.const_int_bound(replaced(index, first)) for index in store.indices]
            if any(int(bound.max_value) >= int(extent) for bound, extent in zip(bounds, buffer.ty.shape)):
                raise NoMatch("an index of a sum has no bound")
            found = [max(extent, int(bound.max_value) + 1) for extent, bound in zip(found, bounds)]
    return found


def _without_padding(store: BufferStore) -> tuple[BufferStore, list[Expr]]:
    """Return a sum of products without its padding selects, and their conditions; other stores unchanged."""
    total = store.value
    if type(total).__name__ != "Add" or type(total.b).__name__ != "Mul":
        return store, []
    factors = [total.b.a, total.b.b]
    choices = [choice for choice in map(unconverted, factors) if is_choice(choice)]
    if not choices:
        return store, []
    conditions = [each for choice in choices for each in conjuncts(choice.args[0])]
    one, other = map(_inside, factors)
    return BufferStore(store.buffer, total.a + one * other, store.indices), conditions


def _inside(factor: Expr) -> Expr:
    """Return a factor without its padding."""
    if isinstance(factor, tirx.Cast):
        return tirx.Cast(factor.ty.dtype, _inside(factor.value))
    return factor.args[1] if is_choice(factor) else factor


def _under(stmt: Stmt, conditions: Sequence[Expr]) -> Stmt:
    return IfThenElse(tirx.all(*conditions), stmt, None) if conditions else stmt
