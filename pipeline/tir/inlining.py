"""Inline element-wise producers into their consumers: the first step of every schedule rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import tvm
from tvm.ir import IRModule, Var
from tvm.s_tir import SBlock
from tvm.s_tir.schedule import LoopRV, SBlockRV, Schedule, ScheduleError
from tvm.tirx import PrimFunc

from .expressions import has_condition, loads, uses
from .index_grid import NoMatch
from .memoise import memoise_by_structure

#: errors TVM raises when it refuses a schedule step
REFUSALS = (ScheduleError, tvm.error.InternalError)


def _refusing(step: Callable[..., Any]) -> Callable[..., Any]:
    """Raise a ScheduleError for a step that fails in TVM's simplifier: axes of one element mix int32 and int64 (TVM 0.27)."""

    @wraps(step)
    def taken(*args: object, **options: object) -> object:
        try:
            return step(*args, **options)
        except TypeError as error:
            raise ScheduleError(str(error)) from error

    return taken


#: schedules that do not compare each argument with its annotation, which takes longer than many steps
_Unchecked = type(
    "_Unchecked",
    (Schedule,),
    {name: _refusing(step.__wrapped__) for name, step in vars(Schedule).items() if hasattr(step, "__wrapped__")},
)


def new_schedule(kernel: PrimFunc) -> Schedule:
    return _Unchecked(IRModule({"main": kernel}), debug_mask="none")


def scheduled_kernel(schedule: Schedule, kernel: PrimFunc) -> PrimFunc:
    """Return the kernel of `schedule`, with the attributes of the original `kernel`."""
    result = schedule.mod["main"]
    return result.with_attrs(kernel.attrs) if kernel.attrs else result


def attempt(step: Callable[..., object], *args: object, **options: object) -> bool:
    """Apply a schedule step; tell whether TVM accepted it.

    TVM checks its legality and leaves the schedule unchanged when it refuses.
    """
    try:
        step(*args, **options)
    except REFUSALS:
        return False
    return True


def root_blocks(schedule: Schedule) -> list[SBlockRV]:
    return schedule.get_child_blocks(schedule.get_sblock("root"))


def name_of(schedule: Schedule, block: SBlockRV) -> str:
    return schedule.get(block).name_hint


def is_reduction(schedule: Schedule, block: SBlockRV) -> bool:
    return schedule.get(block).init is not None


def result_names(schedule: Schedule) -> set[str]:
    """Return the names of the blocks that write the kernel's results."""
    return {name_of(schedule, block) for block in schedule.get_output_blocks("root")}


def intermediate_blocks(schedule: Schedule, results: set[str]) -> list[SBlockRV]:
    return [block for block in root_blocks(schedule) if name_of(schedule, block) not in results]


def inline_producers(
    schedule: Schedule, keep_padding_of_reductions: bool = False, keep_epilogues: bool = False
) -> None:
    """Inline every intermediate block TVM can; optionally keep padding, and epilogues that a reduction repeats."""
    for block in intermediate_blocks(schedule, result_names(schedule)):
        if keep_padding_of_reductions and pads_for_reduction(schedule, block):
            continue
        if keep_epilogues and _is_repeated_epilogue(schedule, block):
            continue
        inline(schedule, block)


def only_block(schedule: Schedule) -> tuple[SBlockRV | None, list[LoopRV]]:
    """Inline all producers; return the block that is left and its loops, one for each axis. No block for another form."""
    inline_producers(schedule)
    blocks = root_blocks(schedule)
    loops = schedule.get_loops(blocks[0]) if len(blocks) == 1 else []
    whole = len(blocks) == 1 and len(loops) == len(schedule.get(blocks[0]).iter_vars)
    return (blocks[0], loops) if whole else (None, [])


def schedule_only_block(kernel: PrimFunc, steps: Callable[[Schedule, SBlockRV, list[LoopRV]], bool]) -> PrimFunc | None:
    """Apply `steps` to the one block left once all producers are inlined; None for another form, or if they refuse."""
    schedule = new_schedule(kernel)
    try:
        block, loops = only_block(schedule)
        return scheduled_kernel(schedule, kernel) if block is not None and steps(schedule, block, loops) else None
    except REFUSALS:
        return None


def inline(schedule: Schedule, block: SBlockRV) -> None:
    """Inline a block if TVM can. A reduction never is, and TVM takes as long to say so as to inline another block."""
    if not is_reduction(schedule, block):
        attempt(schedule.compute_inline, block)


def pads_for_reduction(schedule: Schedule, block: SBlockRV) -> bool:
    """Return whether `block` selects by position between two values, for a reduction to read."""
    if is_reduction(schedule, block) or not has_condition(schedule.get(block).body):
        return False
    return any(is_reduction(schedule, consumer) for consumer in schedule.get_consumers(block))


def _is_repeated_epilogue(schedule: Schedule, block: SBlockRV) -> bool:
    """Return whether `block` follows a reduction, and another reduction reads each of its elements several times."""
    if is_reduction(schedule, block) or not _follows_reduction(schedule, block):
        return False
    written = schedule.get(block).body.buffer
    return any(
        is_reduction(schedule, each) and repeats(schedule.get(each), written) for each in schedule.get_consumers(block)
    )


def _follows_reduction(schedule: Schedule, block: SBlockRV) -> bool:
    return any(
        is_reduction(schedule, each) or _follows_reduction(schedule, each) for each in schedule.get_producers(block)
    )


def repeats(reduction: SBlock, buffer: Var) -> bool:
    """Return whether some spatial axis of a reduction moves no load of `buffer`."""
    read = [load for load in loads(reduction.body.value) if load.source.same_as(buffer)]
    axes = [axis.var for axis in reduction.iter_vars if int(axis.iter_type) == 0 and int(axis.dom.extent) > 1]
    return any(not any(uses(load, axis) for load in read) for axis in axes)


@memoise_by_structure
def inlined(kernel: PrimFunc, keep_epilogues: bool = False) -> PrimFunc:
    """Inline all producers of `kernel` except padding. Raises NoMatch if TVM cannot schedule the kernel.

    With `keep_epilogues`, what follows a reduction stays a block of its own if another reduction reads it repeatedly.
    """
    schedule = new_schedule(kernel)
    try:
        inline_producers(schedule, keep_padding_of_reductions=True, keep_epilogues=keep_epilogues)
    except REFUSALS as error:
        raise NoMatch("the kernel is not made of blocks") from error
    return scheduled_kernel(schedule, kernel)
