"""Store vectors of channels row by row: blocks of four vectors are transposed, so that neighbours are stored together.

    for lane in 0…16: y[lane · 55 + 0] = v0[lane]         v0 … v3: pixels side by side, 16 channels each
    …                                                     one store of an element each, 64 together
    for lane in 0…16: y[lane · 55 + 3] = v3[lane]

    for lane in 0…16: y[lane · 55 … + 4] = (v0, v1, v2, v3)[lane]          8 shuffles, and 16 stores of four elements

Rows that are not a multiple of four store some elements twice. Two or three rows go in pairs, and one stays as it is.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import Bind, BufferStore, IntImm, PrimFunc, Ramp, SeqStmt, Stmt

from ...tir.expressions import collect, is_one, loads, map_body, replaced
from ...tir.lowering.kernel_target import architecture_of
from ...tir.switches import switchable
from .shuffle import load_lanes, take

#: vectors of a block, and elements of each that are transposed together
_BLOCK = 4
_DTYPES = ("float32",)


@switchable
def transpose_stores(kernel: PrimFunc) -> PrimFunc:
    """Return a lowered, vectorised kernel whose rows of strided vectors are stored in blocks.

    Only on x86-64: on a Cortex-A72, blocks are 2 % more instructions for mtcnn-rnet.
    """
    if architecture_of(kernel) != "x86_64":
        return kernel
    bound = {each.var: each.value for each in collect(kernel.body, Bind)}
    return map_body(kernel, (SeqStmt, lambda each: _rewrite_runs(each, bound)))


@dataclass(frozen=True)
class _Row:
    """Strided store: `offset` elements after the first of its run."""

    store: BufferStore
    offset: int

    @property
    def stride(self) -> int:
        return int(self.store.indices[0].stride)

    @property
    def lanes(self) -> int:
        return int(self.store.indices[0].lanes)

    @property
    def places(self) -> range:
        return range(self.offset, self.offset + self.stride * self.lanes, self.stride)


def _rewrite_runs(sequence: SeqStmt, bound: Mapping[Var, Expr]) -> Stmt:
    """Rewrite the runs of strided stores in a sequence of statements."""
    made: list[Stmt] = []
    run: list[Stmt] = []
    for stmt in (*sequence.seq, None):
        if stmt is not None and (_is_strided(stmt) or (run and _is_index(stmt))) and _continues(run, stmt):
            run.append(stmt)
            continue
        made += _store_run(run, bound)
        run = [stmt] if stmt is not None and _is_strided(stmt) else []
        made += [] if run or stmt is None else [stmt]
    return sequence if len(made) == len(sequence.seq) else SeqStmt(made)


def _is_strided(stmt: Stmt) -> bool:
    """Return whether a statement stores a whole vector of blocks with a constant stride."""
    if not isinstance(stmt, BufferStore) or len(stmt.indices) != 1 or not isinstance(stmt.indices[0], Ramp):
        return False
    at, dtype = stmt.indices[0], stmt.value.ty.dtype
    if (
        not isinstance(at.stride, IntImm)
        or not isinstance(at.lanes, (int, IntImm))
        or str(dtype.with_lanes(1)) not in _DTYPES
    ):
        return False
    # a value may read the result where it is stored itself, but not what another row stores
    own = [each for each in loads(stmt.value) if each.source.same_as(stmt.buffer)]
    return (
        int(at.stride) >= _BLOCK
        and int(at.lanes) % _BLOCK == 0
        and all(tvm_ffi.structural_equal(each.indices[0], at) for each in own)
    )


def _is_index(stmt: Stmt) -> bool:
    """Return whether a statement names a value that reads no memory."""
    return isinstance(stmt, Bind) and not loads(stmt.value)


def _continues(run: Sequence[Stmt], stmt: Stmt) -> bool:
    return not run or isinstance(stmt, Bind) or stmt.buffer.same_as(run[0].buffer)


def _store_run(run: Sequence[Stmt], bound: Mapping[Var, Expr]) -> Iterator[Stmt]:
    """Yield the statements of a run, its stores in blocks if no two meet."""
    stores = [stmt for stmt in run if isinstance(stmt, BufferStore)]
    rows = _rows(stores, bound)
    blocks = _blocks(rows) if rows is not None and _are_apart(rows) else []
    if not blocks:
        yield from run
        return
    taken_up = {id(row.store) for block in blocks for row in block}
    yield from (stmt for stmt in run if isinstance(stmt, Bind))
    yield from (store for store in stores if id(store) not in taken_up)
    values: dict[int, Var] = {}
    for block in blocks:
        fresh = [row for row in block if row.offset not in values]
        read = yield from _read(block, bound)
        for row in fresh:
            values[row.offset] = Var("row", row.store.value.ty)
            yield Bind(values[row.offset], _replace_loads(row.store.value, read.get(row.offset, [])))
        yield from _store_block(block, [values[row.offset] for row in block])


def _rows(stores: Sequence[BufferStore], bound: Mapping[Var, Expr]) -> list[_Row] | None:
    """Return the stores by their distance from the first; None if one is unknown."""
    analyzer, found = sym.Analyzer(), []
    bases = [_resolve(store.indices[0].base, bound) for store in stores]
    for store, base in zip(stores, bases):
        distance = analyzer.simplify(base - bases[0])
        if not isinstance(distance, IntImm):
            return None
        found.append(_Row(store, int(distance)))
    return found


def _resolve(index: Expr, bound: Mapping[Var, Expr]) -> Expr:
    """Return an index without names of values."""
    used = [var for var in collect(index, Var) if var in bound]
    return replaced(index, {var: _resolve(bound[var], bound) for var in used}) if used else index


def _are_apart(rows: Sequence[_Row]) -> bool:
    """Return whether no element is stored twice: then the order of the stores does not matter."""
    return len({place for row in rows for place in row.places}) == sum(row.lanes for row in rows)


def _blocks(rows: Sequence[_Row]) -> list[list[_Row]]:
    """Group rows of neighbours in blocks of four, or of two; the last of a group may take rows of the one before."""
    found: list[list[_Row]] = []
    ordered = sorted(rows, key=lambda row: (row.stride, row.lanes, row.offset))
    for _, side_by_side in groupby(
        enumerate(ordered), lambda place: (place[1].stride, place[1].lanes, place[1].offset - place[0])
    ):
        group = [row for _, row in side_by_side]
        size = _BLOCK if len(group) >= _BLOCK else 2
        if len(group) >= size:
            starts = [*range(0, len(group) - size, size), len(group) - size]
            found += [group[start : start + size] for start in starts]
    return found


def _strided_loads(value: Expr) -> list[TensorLoad]:
    return [
        load
        for load in loads(value)
        if len(load.indices) == 1 and isinstance(load.indices[0], Ramp) and not is_one(load.indices[0].stride)
    ]


def _read(block: Sequence[_Row], bound: Mapping[Var, Expr]) -> Generator[Stmt, None, dict[int, list[Expr]]]:
    """Yield statements that load the strided operands of a block; return them by row. They are neighbours as its results are."""
    found = [_strided_loads(row.store.value) for row in block]
    if len(block) < _BLOCK or not found[0] or any(len(each) != len(found[0]) for each in found):
        return {}
    analyzer = sym.Analyzer()
    made: dict[int, list[Expr]] = {row.offset: [] for row in block}
    for alike in zip(*found):
        first, at = alike[0], alike[0].indices[0]
        bases = [_resolve(each.indices[0].base, bound) for each in alike]
        steps = [analyzer.simplify(base - bases[0]) for base in bases]
        same = all(
            each.source.same_as(first.source) and tvm_ffi.structural_equal(each.indices[0].stride, at.stride)
            for each in alike
        )
        if (
            not same
            or str(first.ty.dtype) != str(block[0].store.value.ty.dtype)
            or [int(each) if isinstance(each, IntImm) else None for each in steps] != list(range(_BLOCK))
        ):
            return {}
        base = Var("base", at.base.ty)
        yield Bind(base, at.base)
        fours = []
        for number in range(_BLOCK):
            starts = (base + channel * at.stride for channel in range(number, block[0].lanes, _BLOCK))
            channels = [load_lanes(first, start, _BLOCK) for start in starts]
            fours.append(Var("four", first.ty))
            yield Bind(fours[-1], channels[0] if len(channels) == 1 else take(channels, range(block[0].lanes)))
        rows = yield from _transpose(fours, block[0].lanes)
        for row, vector in zip(block, rows):
            made[row.offset].append(vector)
    return made


def _replace_loads(value: Expr, read: Sequence[Expr]) -> Expr:
    """Return a value whose strided loads, in their order, are vectors already read."""
    if not read:
        return value
    strided = _strided_loads(value)

    def load(each: TensorLoad) -> Expr:
        return next((vector for other, vector in zip(strided, read) if other.same_as(each)), each)

    return tvm_ffi.structural_map(value, (TensorLoad, load))


def _pin(vector: Expr) -> Expr:
    """Return a vector that LLVM computes whole: else it would shuffle each of its parts alone."""
    dtype = vector.ty.dtype
    return tirx.call_llvm_pure_intrin(str(dtype), f"llvm.arithmetic.fence.v{dtype.lanes}f32", vector)


def _store_block(block: Sequence[_Row], values: Sequence[Expr]) -> Iterator[Stmt]:
    """Yield the stores of a block: `len(block)` neighbours of each channel at a time."""
    first, size = block[0], len(block)
    at = first.store.indices[0]
    # not a constant: TVM would tell LLVM that constant places in different multiples of four do not meet
    base = Var("base", at.base.ty)
    yield Bind(base, at.base)
    turned = yield from _transpose(values, first.lanes)
    for number, vector in enumerate(turned):
        kept = Var("kept", vector.ty)
        yield Bind(kept, _pin(vector))
        for start in range(0, first.lanes, size):
            # a vector holds every (4 / size)-th channel of each four
            channel = start // _BLOCK * _BLOCK + number * _BLOCK // len(turned) + start % _BLOCK // size
            index = Ramp(base + channel * first.stride, tirx.const(1, base.ty.dtype), size)
            yield BufferStore(first.store.buffer, take([kept], range(start, start + size)), [index])


def _transpose(vectors: Sequence[Expr], lanes: int) -> Generator[Stmt, None, list[Expr]]:
    """Yield shuffles; return vectors that hold, of each four lanes, one lane of all four `vectors`, or two lanes of both."""
    made: list[Expr] = []

    def shuffle_fours(one: Expr, other: Expr, places: Sequence[int]) -> Bind:
        """Take `places` of each four of two vectors; those of the second count from four."""
        both = [
            four + place if place < _BLOCK else lanes + four + place - _BLOCK
            for four in range(0, lanes, _BLOCK)
            for place in places
        ]
        made.append(Var("turned", one.ty))
        return Bind(made[-1], take([one, other], both))

    for one, other in zip(vectors[::2], vectors[1::2]):
        yield shuffle_fours(one, other, (0, 4, 1, 5))
        yield shuffle_fours(one, other, (2, 6, 3, 7))
    if len(vectors) == 2:
        return made
    pairs, made[:] = made[:], []
    for one, other in zip(pairs[:2], pairs[2:]):
        yield shuffle_fours(one, other, (0, 1, 4, 5))
        yield shuffle_fours(one, other, (2, 3, 6, 7))
    return made
