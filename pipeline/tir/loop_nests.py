"""Read and build unscheduled kernels: a sequence of loop nests, each around one block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Expr, Range, TensorLoad, TensorRegion, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import Bind, BufferStore, For, IfThenElse, IntImm, IterVar, PrimFunc, SeqStmt, Stmt
from tvm.tirx.analysis import undefined_vars

from .expressions import collect, is_true, loads, replaced
from .index_grid import NoMatch

_Node = TypeVar("_Node")
_SERIAL, _SPATIAL = 0, 0
#: fields of loops and blocks, as their constructors name them
_FIELDS: dict[type, str] = {
    For: "loop_var min extent kind body thread_binding annotations step",
    SBlock: "iter_vars reads writes name_hint body init alloc_buffers match_buffers annotations",
    BufferStore: "buffer value indices",
    Bind: "var value",
}


def blocks_of(kernel: PrimFunc) -> list[SBlock]:
    """Return the blocks of a kernel, each with one loop per axis. Raises NoMatch for a kernel of another form."""
    return list(_blocks_of(kernel))


@lru_cache(1 << 10)
def _blocks_of(kernel: PrimFunc) -> tuple[SBlock, ...]:
    """Return `blocks_of`, kept: each rule asks for them."""
    return tuple(block_of(nest) for nest in nests_in(kernel))


def nests_in(kernel: PrimFunc) -> list[Stmt]:
    """Return the loop nests of a kernel in execution order. Raises NoMatch for a kernel of another form."""
    body = kernel.body
    if not isinstance(body, SBlockRealize) or body.iter_values or body.block.match_buffers:
        raise NoMatch("the kernel is not a plain sequence of loop nests")
    return statements(body.block.body)


def block_of(nest: Stmt, *, in_order: bool = True) -> SBlock:
    """Return the block of a perfect loop nest, whose loops from 0 are its axes in order.

    Without `in_order`, loops come in any order, and an axis of extent 1 needs none. Raises NoMatch for another form.
    """
    loops, nest = nest_loops(nest)
    if not isinstance(nest, SBlockRealize) or not isinstance(nest.block.body, BufferStore):
        raise NoMatch("a loop nest is not around one block of one store")
    block = nest.block
    if block.match_buffers or block.alloc_buffers or not is_true(nest.predicate):
        raise NoMatch("a block has its own buffers or a predicate")
    if not all(isinstance(loop.extent, IntImm) and int(loop.min) == 0 for loop in loops):
        raise NoMatch("a loop has no constant bounds")
    bound = [(value, int(axis.dom.extent)) for axis, value in zip(block.iter_vars, nest.iter_values)]
    if not in_order:
        bound = [(value, extent) for value, extent in bound if extent > 1 or not isinstance(value, IntImm)]
        places = {loop.loop_var: place for place, loop in enumerate(loops)}
        bound.sort(key=lambda axis: places.get(axis[0], -1) if isinstance(axis[0], Var) else -1)
    found = [(loop.loop_var, int(loop.extent)) for loop in loops]
    same = all(var.same_as(value) and one == other for (var, one), (value, other) in zip(found, bound))
    if len(found) != len(bound) or not same:
        raise NoMatch("the axes of a block are not its loops")
    return block


def iterations(stmt: Stmt, around: int = 1) -> int:
    """Count the executions of the innermost statements; a loop of unknown extent counts as one iteration."""
    if isinstance(stmt, For):
        return iterations(stmt.body, around * (int(stmt.extent) if isinstance(stmt.extent, IntImm) else 1))
    if isinstance(stmt, SeqStmt):
        return sum(iterations(part, around) for part in stmt.seq)
    if isinstance(stmt, SBlockRealize):
        return iterations(stmt.block.body, around)
    if isinstance(stmt, IfThenElse):
        return iterations(stmt.then_case, around) + (iterations(stmt.else_case, around) if stmt.else_case else 0)
    return around


def axis_values(realize: SBlockRealize) -> dict[Var, Expr]:
    """Return the values of a block's axes."""
    return {axis.var: value for axis, value in zip(realize.block.iter_vars, realize.iter_values)}


def in_loops(expr: Expr, stmt: Stmt) -> Expr:
    """Replace the axes of all blocks in a statement by their values, in terms of loops."""
    bound = {axis: value for block in collect(stmt, SBlockRealize) for axis, value in axis_values(block).items()}
    while any(var in bound for var in undefined_vars(expr)):
        expr = replaced(expr, bound)
    return expr


def nest_loops(stmt: Stmt, serial: bool = False) -> tuple[list[For], Stmt]:
    """Return the loops, or the `serial` ones, nested directly in each other, outermost first, and the innermost body."""
    found = []
    while isinstance(stmt, For) and (not serial or (int(stmt.kind) == _SERIAL and isinstance(stmt.extent, IntImm))):
        found.append(stmt)
        stmt = stmt.body
    return found, stmt


def bounds_of(loop: For) -> tuple[int, int] | None:
    """Return the first value and the extent of a loop; None if they are not constant."""
    constant = isinstance(loop.extent, IntImm) and isinstance(loop.min, IntImm) and loop.step is None
    return (int(loop.min), int(loop.extent)) if constant else None


def nested(loops: Sequence[For], body: Stmt, **changes: object) -> Stmt:
    """Run a body in copies of loops, outermost first."""
    for loop in reversed(loops):
        body = with_fields(loop, body=body, **changes)
    return body


def kernel_of(params: Sequence[Var], nests: Sequence[Stmt], own: Sequence[Var], attrs: object) -> PrimFunc:
    """Build a kernel from loop nests and its `own` internal buffers."""
    root = SBlock([], [], [], "root", sequence(nests), alloc_buffers=list(own))
    return PrimFunc(list(params), SBlockRealize([], tirx.const(True), root), attrs=attrs)


def sequence(parts: Sequence[Stmt]) -> Stmt:
    """Join statements into one."""
    return parts[0] if len(parts) == 1 else SeqStmt(list(parts))


def renewed(stmt: Stmt) -> Stmt:
    """Rename the loops and axes of a statement to fresh variables."""
    bound = [loop.loop_var for loop in collect(stmt, For)]
    bound += [axis.var for block in collect(stmt, SBlock) for axis in block.iter_vars]
    return replaced(stmt, {each: Var(each.name, each.ty) for each in bound})


def statements(stmt: Stmt) -> list[Stmt]:
    """List the statements of a sequence; one alone for any other."""
    return list(stmt.seq) if isinstance(stmt, SeqStmt) else [stmt]


def with_fields(stmt: _Node, **changes: object) -> _Node:
    """Copy a loop, a block, a store or a binding with other values of some fields."""
    return type(stmt)(**({name: getattr(stmt, name) for name in _FIELDS[type(stmt)].split()} | changes))


def move_accesses(
    part: _Node,
    buffers: Mapping[Var, Var],
    place: Callable[[Var, Sequence[Expr]], Sequence[Expr]] = lambda _, indices: indices,
    guard: Callable[[BufferStore], Stmt] = lambda store: store,
) -> _Node:
    """Access other `buffers` in place of some, at the indices `place` finds for the old buffer and indices.

    `guard` may put a condition around a store to a new buffer. Blocks claim regions whole.
    """

    def load(each: TensorLoad) -> TensorLoad:
        if each.source not in buffers:
            return each
        return tirx.BufferLoad(buffers[each.source], place(each.source, list(each.indices)))

    def store(each: BufferStore) -> Stmt:
        if each.buffer not in buffers:
            return each
        return guard(BufferStore(buffers[each.buffer], each.value, place(each.buffer, list(each.indices))))

    def region(each: TensorRegion) -> TensorRegion:
        new = buffers.get(each.source, each.source)
        return each if new.same_as(each.source) else all_of(new)

    return tvm_ffi.structural_map(part, [(TensorLoad, load), (BufferStore, store), (TensorRegion, region)])


def stores_of(block: SBlock) -> list[BufferStore]:
    """List the stores of a block, the start of a reduction first."""
    return [block.body] if block.init is None else [block.init, block.body]


def accesses(block: SBlock) -> Iterator[tuple[Var, list[Expr]]]:
    """Yield the buffer and the indices of each store and load of a block."""
    for store in stores_of(block):
        yield store.buffer, list(store.indices)
        yield from ((load.source, list(load.indices)) for load in loads(store.value))


def simplify_indices(part: _Node, analyzer: sym.Analyzer) -> _Node:
    """Simplify the indices of all accesses."""

    def simple(indices: Sequence[Expr]) -> list[Expr]:
        return [simplified(analyzer, index) for index in indices]

    def load(each: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(each.source, simple(each.indices))

    def store(each: BufferStore) -> BufferStore:
        return with_fields(each, indices=simple(each.indices))

    return tvm_ffi.structural_map(part, [(TensorLoad, load), (BufferStore, store)])


def exchange_params(
    kernel: PrimFunc,
    made: Mapping[Var, Var],
    place: Callable[[Var, Sequence[Expr]], Sequence[Expr]],
    guard: Callable[[BufferStore], Stmt] = lambda store: store,
) -> PrimFunc:
    """Return the kernel with the parameters `made`, by the one each replaces, as in `move_accesses`."""
    params = [made.get(param, param) for param in kernel.params]
    return PrimFunc(params, move_accesses(kernel.body, made, place, guard), attrs=kernel.attrs)


def nest_of(axes: Sequence[IterVar], name: str, store: BufferStore, init: Stmt | None = None) -> Stmt:
    """Build a block of one store, with one loop per axis."""
    read = [load for load in loads(store.value) if not load.source.same_as(store.buffer)]
    regions = [element_of(load.source, load.indices) for load in read]
    return loops_around(SBlock(list(axes), regions, [element_of(store.buffer, store.indices)], name, store, init))


def loops_around(block: SBlock) -> Stmt:
    """Build a serial loop per axis of a block, named after it."""
    loops = [Var(axis.var.name.removeprefix("v_"), "int64") for axis in block.iter_vars]
    nest: Stmt = SBlockRealize(loops, tirx.const(True), block)
    for loop, axis in zip(reversed(loops), reversed(list(block.iter_vars))):
        nest = For(loop, int64(0), axis.dom.extent, _SERIAL, nest)
    return nest


def spatial_axes(shape: Sequence[int]) -> list[IterVar]:
    """Return block axes over all elements of a shape: `v_i0`, `v_i1` …"""
    return [IterVar(Range(0, int64(extent)), Var(f"v_i{n}", "int64"), _SPATIAL) for n, extent in enumerate(shape)]


def axis_like(axis: IterVar, extent: int) -> IterVar:
    """Return a block axis of the same kind with a fresh variable and another extent."""
    return IterVar(Range(0, int64(extent)), Var(axis.var.name, "int64"), axis.iter_type)


def fresh_axes(block: SBlock, extents: Mapping[Var, int] = {}) -> tuple[list[IterVar], dict[Var, Expr]]:
    """Return the axes of a block with fresh variables, these by the old ones too; `extents` are others."""
    axes = [axis_like(axis, extents.get(axis.var, int(axis.dom.extent))) for axis in block.iter_vars]
    return axes, {old.var: new.var for old, new in zip(block.iter_vars, axes)}


def change_nest(block: SBlock, axes: Sequence[IterVar], change: Callable[[BufferStore], BufferStore]) -> Stmt:
    """Build the nest of a block over other axes, each of its stores changed."""
    return nest_of(axes, block.name_hint, change(block.body), None if block.init is None else change(block.init))


def analyzer_of(axes: Sequence[IterVar]) -> sym.Analyzer:
    """Return an analyzer bound to the extents of the axes."""
    return analyzer_over({axis.var: axis.dom for axis in axes})


def analyzer_over(ranges: Mapping[Var, Range]) -> sym.Analyzer:
    """Return an analyzer bound to the ranges of variables."""
    analyzer = sym.Analyzer()
    for var, values in ranges.items():
        analyzer.bind(var, values)
    return analyzer


def simple(block: SBlock, indices: Sequence[Expr]) -> list[Expr]:
    """Simplify indices by the extents of the block's axes: undoes, say, a reshape that moves nothing."""
    analyzer = analyzer_of(block.iter_vars)
    return [simplified(analyzer, index) for index in indices]


def are_axes(block: SBlock, indices: Sequence[Expr]) -> bool:
    """Return whether indices are the axes of a block, in their order; along axes of one element, any are."""
    axes = list(block.iter_vars)
    return len(indices) == len(axes) and all(
        index.same_as(axis.var) or int(axis.dom.extent) == 1 for index, axis in zip(indices, axes)
    )


def stores_at_axes(block: SBlock) -> bool:
    """Return whether a block stores at its axes, in their order; windows of rows write 0 for one of extent 1."""
    axes, indices = list(block.iter_vars), list(block.body.indices)
    return len(axes) == len(indices) and all(
        index.same_as(axis.var) or (int(axis.dom.extent) == 1 and isinstance(index, IntImm))
        for axis, index in zip(axes, indices)
    )


def covers(block: SBlock) -> bool:
    """Return whether a block writes each element of its buffer, indexed by its own axes."""
    store = block.body
    spatial = {axis.var: int(axis.dom.extent) for axis in block.iter_vars if int(axis.iter_type) == _SPATIAL}
    for index, extent in zip(store.indices, store.buffer.ty.shape, strict=True):
        if int(extent) != (spatial.pop(index, None) if isinstance(index, Var) else 1):
            return False
    return True


def simplified(analyzer: sym.Analyzer, index: Expr) -> Expr:
    """Simplify an index and keep it int64.

    The analyzer makes an int32 of a constant, and TVM refuses to schedule blocks that mix index types.
    """
    found = analyzer.simplify(index)
    return int64(int(found)) if isinstance(found, IntImm) else found


def resized(buffer: Var, axis: int, extent: int) -> Var:
    """Declare a buffer like `buffer`, with another extent of one axis."""
    return reshaped(buffer, [extent if place == axis else int(each) for place, each in enumerate(buffer.ty.shape)])


def reshaped(buffer: Var, shape: Sequence[int | Expr], name: str = "") -> Var:
    """Declare a buffer like `buffer`, of another shape, perhaps of another name."""
    return buffer_of(name or buffer.name, shape, str(buffer.ty.dtype))


def buffer_of(name: str, shape: Sequence[int | Expr], dtype: str) -> Var:
    """Declare a compact buffer, indexed by int64 like all others."""
    return tirx.decl_buffer([int64(int(extent)) for extent in shape], dtype, name)


def all_of(buffer: Var) -> TensorRegion:
    """Return the region of the whole buffer: scheduling does not need the exact part."""
    return tirx.BufferRegion(buffer, [Range.from_min_extent(int64(0), extent) for extent in buffer.ty.shape])


def flat_index(shape: Sequence[Expr | int], indices: Sequence[Expr]) -> Expr:
    """Return the place of an element in a compact buffer, in elements."""
    flat: Expr = int64(0)
    for extent, index in zip(shape, indices, strict=True):
        flat = flat * int64(int(extent)) + index
    return flat


def int64(value: int) -> IntImm:
    return tirx.const(value, "int64")


def element_of(buffer: Var, indices: Sequence[Expr]) -> TensorRegion:
    """Return the region of one element."""
    return tirx.BufferRegion(buffer, [Range.from_min_extent(index, 1) for index in indices])
