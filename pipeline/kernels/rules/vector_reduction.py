"""Vectorize reductions along memory (mean of a plane, row times vector): one partial result per lane.

    for … elements of the result:
        lanes[0:8] = 0
        for … reduction, 8 at a time:
            lanes[0:8] += data[k : k + 8]
        result = lanes[0] + lanes[1] + …

One chain of additions is slow, since each waits for the one before it, and inaccurate: over 6400 positive numbers of a
plane it lost 6 times what ONNX Runtime loses, eight chains do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import prod

import tvm_ffi
from tvm.ir import Var
from tvm.s_tir import SBlock
from tvm.s_tir.schedule import LoopRV, SBlockRV, Schedule
from tvm.tirx import BufferStore, PrimFunc, Stmt

from ...targets import Machine
from ...tir.counts.product_operands import walked_tensors
from ...tir.expressions import is_contiguous, is_costly, loads, replaced, uses
from ...tir.extremes import from_finite, from_infinity
from ...tir.inlining import (
    REFUSALS,
    inline,
    inline_producers,
    intermediate_blocks,
    is_reduction,
    name_of,
    new_schedule,
    result_names,
    root_blocks,
    scheduled_kernel,
)
from ...tir.loop_nests import with_fields
from ...tir.memoise import memoise_by_structure
from .axes.overlap_sums import SHORT, overlap_sums, widths
from .axes.unroll_and_jam import unroll_and_jam
from .axes.vector_columns import lanes_innermost
from .fuse_loops import compute_at_consumer, iteration_values
from .rule import RuleResult, Speed

#: candidate numbers of partial results: the first that divides the extent; 16 is two vectors of AVX2, four of NEON
LANES = (SHORT, 8, 4)
#: vectors of a long reduction, each of which waits for the one before: joining them at the end takes long
_VECTORS = 4
_REDUCE = 2


def vector_reduction(kernel: PrimFunc, lanes: Sequence[int] = LANES, machine: Machine | None = None) -> PrimFunc | None:
    """Vectorize the reductions of `kernel`; None if the rule does not match or TVM refuses a step.

    With a `machine`, rows that share an operand are summed side by side where its registers hold them.

    Of `lanes`, the candidate lane counts, the first that divides the extent is taken.
    """
    finite = from_finite(kernel)
    if finite.same_as(kernel):
        return _vectorized(kernel, lanes, machine)
    # TVM's `rfactor` knows an extreme by its last finite number; a store of that number must stay
    found = _vectorized(finite, lanes, machine) if from_infinity(kernel).same_as(kernel) else None
    return None if found is None else from_infinity(found)


def _vectorized(kernel: PrimFunc, lanes: Sequence[int], machine: Machine | None) -> PrimFunc | None:
    """Vectorize reductions from finite starts, as `vector_reduction` does."""
    overlapped = overlap_sums(kernel, lanes) if len(lanes) > 1 else None
    for form in (kernel,) if overlapped is None else (overlapped, kernel):
        for in_result in (True, False):
            with suppress(*REFUSALS):
                schedule = new_schedule(form)
                costly = _value_in_result(schedule) if in_result else None
                found = None if in_result and costly is None else _schedule(schedule, form, lanes, costly, machine)
                if found is not None:
                    return found
    return None


def sums_of_one_tensor(kernel: PrimFunc, _repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the vectorized reduction of a single tensor: a Rule. Tiles would read its rows side by side."""
    along = None if _multiplies_tensors(kernel) else vector_reduction(kernel, _lanes_of(machine))
    if along is not None:
        yield RuleResult(along)


def vector_sums(kernel: PrimFunc, _repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the vectorized reduction of `kernel`: a Rule. Others are faster for products of tensors."""
    along = vector_reduction(kernel, _lanes_of(machine), machine)
    if along is not None:
        yield RuleResult(along, speed=Speed.LANES if _multiplies_tensors(kernel) else Speed.FAST)


@memoise_by_structure
def _multiplies_tensors(kernel: PrimFunc) -> bool:
    """Return whether a reduction walks several tensors once its producers are inlined, or stores several results."""
    schedule = new_schedule(kernel)
    inline_producers(schedule)
    reductions = (schedule.get(block) for block in root_blocks(schedule) if is_reduction(schedule, block))
    return any(not isinstance(block.body, BufferStore) or len(walked_tensors(block)) > 1 for block in reductions)


def _lanes_of(machine: Machine) -> Sequence[int]:
    """Return LANES, after the lanes of several vectors if these are more."""
    return (_VECTORS * machine.lanes, *LANES) if not machine.compact and _VECTORS * machine.lanes > SHORT else LANES


def _schedule(
    schedule: Schedule,
    kernel: PrimFunc,
    lanes: Sequence[int],
    costly: SBlockRV | None,
    machine: Machine | None,
) -> PrimFunc | None:
    name = None if costly is None else name_of(schedule, costly)
    for block in intermediate_blocks(schedule, result_names(schedule)):
        if name_of(schedule, block) != name:
            inline(schedule, block)
    for block in root_blocks(schedule):
        if not schedule.get_loops(block):
            schedule.add_unit_loop(block)  # TVM's `rfactor` fails beside a block without a loop
    reductions = [block for block in root_blocks(schedule) if is_reduction(schedule, block)]
    partials: dict[str, tuple[SBlockRV, SBlockRV]] = {}
    for total in reductions:
        found = _lane_loop(schedule, total, lanes)
        if found is None:
            return None
        loop, count = found
        alone = sum(int(axis.iter_type) == _REDUCE for axis in schedule.get(total).iter_vars) == 1
        whole = count == int(schedule.get(loop).extent) and not alone
        inner = loop if whole else schedule.split(loop, [None, count])[1]
        rank = len(schedule.get(total).writes[0].region)
        partial = schedule.rfactor(inner, rank)
        partials[name_of(schedule, partial)] = partial, total
    if not partials:
        return None
    if machine is not None and len(partials) == 1 and unroll_and_jam(schedule, *next(iter(partials.values())), machine):
        return scheduled_kernel(schedule, kernel)
    for block in reversed(intermediate_blocks(schedule, result_names(schedule))):
        if name_of(schedule, block) in partials:
            _place_partial(schedule, *partials[name_of(schedule, block)])
        else:
            compute_at_consumer(schedule, block)
    for partial, _ in partials.values():
        lanes_innermost(schedule, partial)
    found = scheduled_kernel(schedule, kernel)
    if costly is None:
        return found
    if len(schedule.get_loops(costly)) <= len(schedule.get(costly).iter_vars):
        return None  # computed whole, not by rows
    value, result = schedule.get(costly).writes[0].source, kernel.params[-1]
    return found.with_body(_without_buffer(replaced(found.body, {value: result}), result))


def _value_in_result(schedule: Schedule) -> SBlockRV | None:
    """Find a costly value that a reduction reads, and the result at the same element.

    It is computed once, in the result's own place: the exponentials of a softmax.
    """
    results = result_names(schedule)
    if len(results) != 1:
        return None
    (last,) = (block for block in root_blocks(schedule) if name_of(schedule, block) in results)
    for block in intermediate_blocks(schedule, results):
        written = schedule.get(block).writes[0].source
        if is_reduction(schedule, block) or not is_costly(schedule.get(block).body):
            continue
        readers = [name_of(schedule, each) for each in schedule.get_consumers(block)]
        if len(readers) > 1 and name_of(schedule, last) in readers and _at_same_place(schedule.get(last), written):
            return block
    return None


def _at_same_place(block: SBlock, value: Var) -> bool:
    """Return whether a block reads `value` only at the element it writes, which is of the same kind."""
    store = block.body
    if not isinstance(store, BufferStore) or block.init is not None:
        return False
    same = [str(store.buffer.ty.dtype), *map(int, store.buffer.ty.shape)] == [
        str(value.ty.dtype),
        *map(int, value.ty.shape),
    ]
    read = [load for load in loads(store.value) if load.source.same_as(value)]
    return same and all(all(map(tvm_ffi.structural_equal, load.indices, store.indices)) for load in read)


def _without_buffer(body: Stmt, buffer: Var) -> Stmt:
    """Drop the allocation of a buffer that a parameter replaced."""

    def rewritten(block: SBlock) -> SBlock:
        return with_fields(block, alloc_buffers=[each for each in block.alloc_buffers if not each.same_as(buffer)])

    return tvm_ffi.structural_map(body, (SBlock, rewritten))


def _lane_loop(schedule: Schedule, block: SBlockRV, lanes: Sequence[int]) -> tuple[LoopRV, int] | None:
    """Find a reduction loop with contiguous loads only, and the lane count that divides it."""
    body = schedule.get(block)
    if not isinstance(body.body, BufferStore):
        return None  # several results at once, as of an ArgMax
    written = body.writes[0].source
    update = body.body.value
    read = [load for load in loads(update) if not load.source.same_as(written)]
    summed = [axis for axis in body.iter_vars if int(axis.iter_type) == _REDUCE]
    loops = schedule.get_loops(block)
    if len(loops) != len(body.iter_vars):
        return None
    worth = widths(prod(int(axis.dom.extent) for axis in summed), lanes)
    for loop, axis in reversed(list(zip(loops, body.iter_vars))):
        if int(axis.iter_type) != _REDUCE or not any(uses(index, axis.var) for load in read for index in load.indices):
            continue
        count = next((each for each in worth if int(axis.dom.extent) % each == 0), None)
        if count is not None and is_contiguous(update, axis.var):
            return loop, count
    return None


def _place_partial(schedule: Schedule, partial: SBlockRV, total: SBlockRV) -> None:
    """Compute the partial sums inside the loops of a result element.

    They stand just outside the loop that sums the lanes.
    """
    axes = schedule.get(total).iter_vars
    loops = schedule.get_loops(total)[-len(axes) :]
    (summed,) = [
        value for axis, value in zip(axes, iteration_values(schedule, total)) if int(axis.iter_type) == _REDUCE
    ]
    (lanes,) = [loop for loop in loops if uses(summed, schedule.get(loop).loop_var)]
    schedule.reorder(*[loop for loop in loops if loop is not lanes], lanes)
    around = schedule.get_loops(total)[:-1]
    if around:
        schedule.compute_at(partial, around[-1], preserve_unit_loops=True)
