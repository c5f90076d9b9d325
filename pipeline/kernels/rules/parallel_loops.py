"""Parallelise a scheduled kernel: in each nest the outermost loop whose iterations are independent.

    for y in 0…7: for x in 0…8: …          parallel for n in 0…56: y, x = n / 8, n % 8: …

If iterations do not divide evenly among the threads, the next loop is fused with it. No sum is split, so results are
the same bits for any number of threads. Iterations are independent if

* no element of a result is written by two of them, or read by another than its writer; in-place operands (see
  tir/in_place/analysis.py) are read by the iteration that overwrites them;
* each buffer of the kernel's own is allocated inside the loop by TVM's own placing, so that nothing is kept from one
  iteration to the next, and is written before it is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import tvm
from tvm import s_tir
from tvm.ir import Expr, IRModule, TensorLoad, Var
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import For, IntImm, PrimFunc, Stmt
from tvm.tirx.analysis import undefined_vars

from ...tir.expressions import collect, loads, map_body, replaced
from ...tir.in_place.analysis import takes_address
from ...tir.index_grid import GridLoop, NoMatch, chunks
from ...tir.loop_nests import bounds_of, int64, iterations, nests_in, statements
from ...tir.stores import Store, stores

_SERIAL, _PARALLEL = 0, 1
#: innermost statements worth waking threads for: 10 to 20 µs of one thread, against 1 to 10 µs for waking
MIN_WORK = 1 << 18
#: fuse loops if the busiest thread's load is more than this times the mean
_UNEVEN = 1.05
#: largest number of iterations around a loop that are checked, one by one
_MOST_AROUND = 64


def parallelise_loops(kernel: PrimFunc, threads: int) -> PrimFunc:
    """Parallelise a loop in each nest of scheduled `kernel` for `threads` threads; return it unchanged without any."""
    if threads == 1:
        return kernel
    try:
        for nest in nests_in(kernel) if isinstance(kernel.body, SBlockRealize) else statements(kernel.body):
            kernel = _parallelised(kernel, nest, threads) or kernel
    except NoMatch:
        return kernel
    return kernel


def has_parallel_loop(kernel: PrimFunc) -> bool:
    return any(int(loop.kind) == _PARALLEL for loop in collect(kernel.body, For))


def _parallelised(kernel: PrimFunc, nest: Stmt, threads: int) -> PrimFunc | None:
    """Make one loop of `nest` parallel; None if there is none."""
    around: list[GridLoop] = []
    while isinstance(nest, For) and int(nest.kind) == _SERIAL and iterations(nest) >= MIN_WORK:
        if _extent(nest) > 1:
            for made in _parallel_variants(nest, threads):
                found = map_body(kernel, (For, lambda each, made=made, old=nest: made if each.same_as(old) else each))
                if _independent(found, made, around):
                    return found
        around.append(GridLoop(nest.loop_var, int(nest.min), _extent(nest)))
        nest = nest.body
    return None


def _parallel_variants(loop: For, threads: int) -> Iterator[For]:
    """Yield `loop` made parallel, alone or fused with inner loops, most even load first."""
    made, whole = _parallel(loop.loop_var, _extent(loop), loop.body), [loop]
    found = [made]
    while _unevenness(_extent(made), threads) > _UNEVEN:
        inner = whole[-1].body
        if not isinstance(inner, For) or int(inner.kind) != _SERIAL or not isinstance(inner.extent, IntImm):
            break
        whole.append(inner)
        made = _fused(whole)
        found.append(made)
    yield from sorted(found, key=lambda each: _unevenness(_extent(each), threads))


def _fused(loops: Sequence[For]) -> For:
    number, values = Var("shared", "int64"), {}
    rest: Expr = number
    for loop in reversed(loops[1:]):
        values[loop.loop_var] = rest % loop.extent
        rest = rest // loop.extent
    values[loops[0].loop_var] = rest
    return _parallel(number, math.prod(map(_extent, loops)), replaced(loops[-1].body, values))


def _parallel(var: Var, extent: int, body: Stmt) -> For:
    return For(var, int64(0), int64(extent), _PARALLEL, body)


def _unevenness(extent: int, threads: int) -> float:
    """Return the load of the busiest thread over the mean load."""
    return -(-extent // threads) * threads / extent


def _extent(loop: For) -> int:
    bounds = bounds_of(loop)
    if bounds is None or bounds[0]:
        raise NoMatch("a loop has no constant bounds")
    return bounds[1]


def _independent(kernel: PrimFunc, loop: For, around: Sequence[GridLoop]) -> bool:
    """Return whether a parallel loop's iterations may run in any order, and at once."""
    found = stores(loop)
    if any(takes_address(store) for store in found):
        return False
    private = _placed_inside(kernel, loop)
    for buffer in {store.buffer: None for store in found}:
        if any(buffer.same_as(param) for param in kernel.params):
            if not _is_owned(buffer, found, loop, around):
                return False
        elif buffer not in private or not _is_written_first(buffer, found):
            return False
    return True


def _placed_inside(kernel: PrimFunc, loop: For) -> set[Var]:
    """Return the buffers TVM allocates anew in each iteration: all their uses are inside the loop."""
    module = IRModule({"main": kernel.with_attr("global_symbol", "main")})
    passes = [s_tir.transform.LowerInitBlock(), s_tir.transform.PlanAndUpdateBufferAllocationLocation()]
    placed = tvm.transform.Sequential(passes)(module)["main"]
    same = [each for each in collect(placed.body, For) if each.loop_var.same_as(loop.loop_var)]
    if len(same) != 1:
        raise NoMatch("the parallel loop is not unique")
    return {buffer for block in collect(same[0].body, SBlock) for buffer in block.alloc_buffers}


def _loads(store: Store) -> list[TensorLoad]:
    return [*loads(store.value), *store.steering]


def _is_written_first(buffer: Var, found: Sequence[Store]) -> bool:
    """Return whether a store precedes all loads of the buffer, in text order."""
    for store in found:
        if any(load.source.same_as(buffer) for load in _loads(store)):
            return False
        if store.buffer.same_as(buffer):
            return True
    return True


def _is_owned(buffer: Var, found: Sequence[Store], loop: For, around: Sequence[GridLoop]) -> bool:
    """Return whether each element is written, and then read, by one iteration alone.

    This has to hold for all values of the loops `around`.
    """
    reads = [(store, load.indices) for store in found for load in _loads(store) if load.source.same_as(buffer)]
    writes = [(store, store.indices) for store in found if store.buffer.same_as(buffer)]
    if math.prod(each.extent for each in around) > _MOST_AROUND:
        return False
    try:
        for values in product(*(range(each.start, each.start + each.extent) for each in around)):
            fixed = [GridLoop(each.var, value, 1) for each, value in zip(around, values)]
            owner = np.full(math.prod(int(extent) for extent in buffer.ty.shape), -1, np.int64)
            for accesses, writing in ((writes, True), (reads, False)):
                for store, indices in accesses:
                    if not _claimed(owner, buffer, store, indices, loop, fixed, writing):
                        return False
    except (NoMatch, IndexError):
        return False
    return True


def _claimed(
    owner: np.ndarray,
    buffer: Var,
    store: Store,
    indices: Sequence[Expr],
    loop: For,
    fixed: list[GridLoop],
    writing: bool,
) -> bool:
    """Mark the written elements with their iteration; False if an element is another's."""
    loops = [*fixed, *store.loops]
    known = {each.var for each in loops} | {var for var, _ in store.bindings}
    masks = [mask for mask in store.masks if _variables([mask[0]], store) <= known]
    needed = _variables([*indices, *(condition for condition, _ in masks)], store) | {loop.loop_var}
    used = [each for each in loops if each.var in needed]
    bindings = [(var, value) for var, value in store.bindings if var in needed]
    for grid in chunks(used, bindings):
        places, mine = grid.select(masks, grid.flat(indices, buffer), grid.values[loop.loop_var])
        if places.size and places.min() < 0:
            return False
        before = owner[places]
        if ((before >= 0) & (before != mine)).any():
            return False
        if writing:
            owner[places] = mine
            if (owner[places] != mine).any():
                return False
    return True


def _variables(exprs: Sequence[Expr], store: Store) -> set[Var]:
    """Collect the variables expressions depend on, through bindings too; bound variables included."""
    found = {var for expr in exprs for var in undefined_vars(expr)}
    for var, value in reversed(store.bindings):
        if var in found:
            found |= set(undefined_vars(value))
    return found
