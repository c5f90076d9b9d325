"""Fuse the steps of a streaming region into one kernel: row by row, with ring buffers between.

    for tick in …:                                each stage in the order of the steps
        k = (tick - offset) / period
        if k is whole and 0 <= k < extent / group: window(first = k * group)
    finish                                        epilogues of the stages that summed up

Rows lie where `ring_place.py` says. Those in a slot go to their ring after the last stage that reads them.

The rings are results nobody reads: the arena has a place for them while the kernel runs, and they cost nothing after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, Range, TensorLoad, TensorRegion, Var
from tvm.tirx import BufferStore, For, IfThenElse, IterVar, PrimFunc, Stmt

from ...memory.sharing.overlay import drop_empty_buffers
from ...memory.streaming.merge_region import before_turns, merge_region
from ...memory.streaming.region import Region
from ...memory.streaming.stage import Stage
from ...program import Program, Step
from ...tir.loop_nests import all_of, buffer_of, int64, kernel_of, nest_of, sequence
from ...tir.row_window import row_window
from ..lower.lower import Lowered
from ..schedule.candidates import RULE_WORKSPACE, as_it_is, is_scheduled, schedules
from ..schedule.tuned import ScheduleRequest
from ..weights.read_repacked import read_repacked
from ..weights.repack import Repack, free_weights, repack_by_number
from .columns_last import region_with_columns_last
from .integers_last import region_with_integers_last
from .partial_sum import partial_sum
from .ring_place import Place, Slot, chosen_once, in_rows
from .splittable import checked_region
from .sum_in_place import schedule_in_place
from .turn_rows import turns_of
from .window_taps import tap_window

_SERIAL, _SPATIAL = 0, 0


def stream_region(lowered: Lowered, region: Region) -> Lowered:
    """Replace the steps of `region` by one kernel, at the last one's place. Raises PlanError, always a bug."""
    lowered, region = checked_region(*region_with_columns_last(*region_with_integers_last(lowered, region)))
    program, step = merge_region(lowered.program, region)
    turns = turns_of(lowered.program, program, region, step)
    reads, writes = before_turns(region, step)
    kernel, repacks = _kernel(lowered, region, reads, writes)
    program, weights = repack_by_number(drop_empty_buffers(program), lowered.weights, repacks)
    used = {each.kernel for each in program.steps}
    kernels = {name: function for name, function in lowered.kernels.items() if name in used} | {step.kernel: kernel, **turns}
    layouts = {**lowered.layouts, **repacks}
    return replace(lowered, program=program, kernels=dict(sorted(kernels.items())), weights=weights, layouts=layouts)


def _kernel(
    lowered: Lowered, region: Region, reads: Sequence[int], results: Sequence[int]
) -> tuple[PrimFunc, dict[int, Repack]]:
    """Build the fused kernel, and the repacks it wants, by weight number.

    `results` are those of the merged step: slots come after the rings, and a ring for rows that wait comes last.
    """
    program = lowered.program
    runs = _runs(lowered, region)
    layouts = {weight: repack for run in runs for weight, repack in run.repacks.items()}
    places = {}
    over = region.replacement
    for number, tensor in enumerate(reads):
        given, weight = program.tensors[tensor].shape, program.tensors[tensor].weight
        laid = layouts[weight].shape(given) if weight in layouts else given
        if over is not None and over.growth is not None and tensor in over.operands:
            places[tensor] = in_rows(f"operand{number}", given, over.growth.axis, program.tensors[tensor].dtype)
        else:
            places[tensor] = Place(buffer_of(f"operand{number}", laid, program.tensors[tensor].dtype))
    params = [places[tensor].fresh for tensor in reads]
    slots = [buffer_of(f"slot{number}", (size,), dtype) for number, (size, dtype) in enumerate(region.slots(program))]
    for tensor in (*region.results, *region.rings):
        stage = region.stage_of(program, tensor)
        places[tensor] = place = _place(program, region, stage, slots, f"result{results.index(tensor) if tensor in results else ''}")
        params += [] if place.buffer is None else [place.buffer]
    params += slots
    whole = None
    if over is not None and over.held:
        waiting, whole = region.stage_of(program, over.result), places[over.result]
        shape = [over.held if n == waiting.axis else int(e) for n, e in enumerate(whole.fresh.ty.shape)]
        ring = buffer_of("waiting", shape, program.tensors[over.result].dtype)
        places[over.result] = Place(ring, waiting.axis, over.held)
        params.append(ring)
    ticks = region.ticks
    tick = Var("tick", "int64")
    body, after = [], []
    leaving = _leaving_slots(program, region)
    for stage, run in zip(region.stages, runs):
        step = program.steps[stage.step]
        since = tick + (ticks.start - stage.offset)
        if stage.operand is not None:
            for kernel, (piece, row) in zip(run.kernels, stage.pieces, strict=True):
                late = row // stage.group * stage.period
                made = partial(_part_of_sum, kernel, step, places, stage, row)
                body.append(_at_its_ticks(piece, since - late if late else since, made))
        else:
            for kernel, lead in zip(run.kernels, stage.leads or (0,), strict=True):
                made = partial(_bound, kernel, step, places, stage, windowed=True, lead=lead)
                body.append(_at_its_ticks(stage, since + lead if lead else since, made))
        if over is not None and whole is not None and step.writes[0] == over.result:
            stored = partial(_stored, places[over.result], whole, stage)
            body.append(_at_its_ticks(stage, since - over.lag, stored))
        if run.finish is not None:
            after.append(_bound(run.finish, step, places, stage, None))
        for writer in leaving.get(stage.step, ()):
            kept = partial(_kept, places[program.steps[writer.step].writes[0]], writer)
            body.append(_at_its_ticks(writer, tick + (ticks.start - writer.offset), kept))
    loop = For(tick, int64(0), int64(len(ticks)), _SERIAL, sequence(body))
    fused = kernel_of(params, [loop, *after], [], None).with_attr("tirx.noalias", True)
    most = max(run.workspace for run in runs)
    # stages run one after another: sums of each stay in registers, though TVM would not join all their buffers
    return as_it_is(fused, most if most <= lowered.machine.register_bytes else None), layouts


@dataclass(frozen=True)
class _Run:
    """Kernels of a stage: one per tick, or one per part of a row, and one after the last tick.

    `repacks` are the layouts it wants, by weight number; `workspace` is the largest of its kernels, in bytes.
    """

    kernels: tuple[PrimFunc, ...]
    finish: PrimFunc | None
    repacks: dict[int, Repack]
    workspace: int


def _runs(lowered: Lowered, region: Region) -> list[_Run]:
    """Schedule the kernel of each stage, with fresh variables: two stages may share one kernel."""
    program = lowered.program
    free = free_weights(program, frozenset(name for name, each in lowered.kernels.items() if is_scheduled(each)))
    layouts = dict(lowered.layouts)
    found = []
    for stage in region.stages:
        step = program.steps[stage.step]
        weights = [program.tensors[tensor].weight for tensor in step.reads]
        made, finish = _windows(lowered.kernels[step.kernel], stage)
        kernels: list[PrimFunc] = []
        own: dict[int, Repack] = {}
        workspace = 0
        for kernel in made:
            for number, weight in enumerate(weights):
                if weight in layouts:
                    kernel = read_repacked(kernel, number + 1, layouts[weight])  # the first parameter is the row number
            choice = frozenset(n + 1 for n, weight in enumerate(weights) if weight in free and weight not in layouts)
            candidates = schedules(kernel, choice, lowered.machine, True)
            so_far = len(kernel.params) - 2 if len(kernel.params) > 1 + len(step.reads) + len(step.writes) else None
            schedule = candidates.within(RULE_WORKSPACE, RULE_WORKSPACE) if so_far is None else schedule_in_place(candidates, so_far)
            if stage.operand is None and not stage.leads:  # tuned ones may not sum up in place
                schedule = lowered.tuning.schedule(
                    ScheduleRequest(kernel, choice, lowered.machine, True, schedule, schedule.workspace, stage.groups)
                )
            repacks = {weights[each.parameter - 1]: each for each in schedule.repacks}
            kernels.append(s_tir.renew_defs(schedule.kernel))
            workspace = max(workspace, schedule.workspace)
            layouts |= repacks
            own |= repacks
        if finish is not None:
            for number, weight in enumerate(weights):
                if weight in layouts and weight not in own:
                    finish = read_repacked(finish, number, layouts[weight])
            last = schedule_in_place(schedules(finish, frozenset(), lowered.machine, True), len(finish.params) - 2)
            finish, workspace = s_tir.renew_defs(last.kernel), max(workspace, last.workspace)
        found.append(_Run(tuple(kernels), finish, own, workspace))
    return found


def _windows(kernel: PrimFunc, stage: Stage) -> tuple[list[PrimFunc], PrimFunc | None]:
    """Return a stage's kernels, one for each tap or piece of a sum, and its finish."""
    if stage.operand is not None:
        parts = [partial_sum(kernel, stage.operand, stage.axis, piece.group) for piece, _ in stage.pieces]
        return [each.part for each in parts], parts[0].finish
    if stage.leads:
        return [tap_window(kernel, stage.axis, number) for number in range(len(stage.leads))], None
    return [row_window(kernel, stage.axis, stage.group)], None


def _at_its_ticks(stage: Stage, since: Expr, body: Callable[[Expr], Stmt]) -> Stmt:
    """Guard a body, made for its first row, by the ticks the stage runs at; `since` counts the ticks since its first."""
    number = tirx.floordiv(since, stage.period) if stage.period > 1 else since
    when = [since >= 0, number < stage.groups]
    if stage.period > 1:
        when.insert(0, tirx.floormod(since, stage.period) == 0)
    row = number * stage.group
    if stage.extent % stage.group:
        row = tirx.min(row, int64(stage.extent - stage.group))
    return IfThenElse(tirx.all(*when), body(row), None)


def _part_of_sum(kernel: PrimFunc, step: Step, places: dict[int, Place], stage: Stage, row: int, first: Expr) -> Stmt:
    """Bind a piece of a sum from `row` on; the last group of its operand may begin earlier, and overlap."""
    if not row:
        return _bound(kernel, step, places, stage, first)
    return _bound(kernel, step, places, stage, first + row, group=int64(stage.extent - stage.group))


def _place(program: Program, region: Region, stage: Stage, slots: Sequence[Var], name: str) -> Place:
    """Return the place of a stage's result."""
    what = program.tensors[program.steps[stage.step].writes[0]]
    axis, shape, slot = stage.axis if stage.operand is None else 0, list(what.shape), None
    over = region.replacement
    if over is not None and over.growth is not None and over.result == program.steps[stage.step].writes[0]:
        return in_rows(name, shape, axis, what.dtype)
    if program.steps[stage.step].writes[0] not in region.rings:
        return Place(buffer_of(name, shape, what.dtype), axis)
    if stage.slot is not None:
        shape[stage.axis] = stage.group
        slot = Slot(slots[stage.slot], tuple(shape), stage)
    shape[stage.axis] = stage.kept
    buffer = buffer_of(name, shape, what.dtype) if stage.kept else None
    return Place(buffer, axis, stage.kept if stage.kept < stage.extent else None, stage.extent % stage.group > 0, slot)


def _leaving_slots(program: Program, region: Region) -> dict[int, list[Stage]]:
    """Map steps to the kept stages whose slot they are the last to read."""
    found: dict[int, list[Stage]] = {}
    for stage in region.stages:
        if stage.slot is not None and stage.kept:
            (tensor,) = program.steps[stage.step].writes
            readers = [each.step for each in region.stages if tensor in program.steps[each.step].reads]
            found.setdefault(max(readers, default=stage.step), []).append(stage)
    return found


def _kept(place: Place, stage: Stage, first: Expr) -> Stmt:
    """Copy a group of rows, from row `first` on, from their slot to their ring."""
    assert place.slot is not None
    return _copy(place.slot.shape, lambda at: place.kept(at, first))


def _stored(ring: Place, whole: Place, stage: Stage, first: Expr) -> Stmt:
    """Store a group of rows, from row `first` on, that waited in a ring."""
    shape = [stage.group if n == stage.axis else int(extent) for n, extent in enumerate(whole.fresh.ty.shape)]
    return _copy(shape, lambda at: BufferStore(whole.fresh, tirx.BufferLoad(ring.fresh, ring.in_ring(at, first)), whole.in_ring(at, first)))


def _copy(shape: Sequence[int], store: Callable[[Sequence[Expr]], BufferStore]) -> Stmt:
    """Copy rows of a shape, one element at a time."""
    axes = [IterVar(Range(0, int64(extent)), Var(f"v_i{n}", "int64"), _SPATIAL) for n, extent in enumerate(shape)]
    nest = nest_of(axes, "store", store([axis.var for axis in axes]))
    return tvm_ffi.structural_map(nest, (TensorRegion, lambda each: all_of(each.source)))


def _bound(
    kernel: PrimFunc, step: Step, places: dict[int, Place], stage: Stage, row: Expr | None, windowed: bool = False,
    group: Expr | None = None, lead: int = 0,
) -> Stmt:
    """Bind the body of a stage's kernel to the buffers of the fused kernel.

    `windowed`: the result holds the rows from `row` on. `group` is the first row of the operands' groups, if not `row`.
    `lead` is that of a part of a row.
    """
    params = list(kernel.params)
    first = params.pop(0) if row is not None else None
    tensors = [*step.reads, *step.writes]
    if len(params) > len(tensors):  # the sum so far aliases the result
        tensors.insert(len(step.reads), step.writes[0])
    held = {param: places[tensor] for param, tensor in zip(params, tensors, strict=True)}
    result = params[-1]
    conditions: list[Expr] = []

    def load(each: TensorLoad) -> Expr:
        place = held.get(each.source)
        if place is None:
            return each
        if windowed and each.source.same_as(result):
            return tirx.BufferLoad(place.fresh, place.of_stage(each.indices, row))
        found = place.read(each.indices, row if group is None else group, stage, lead)
        conditions.extend([found.condition] if isinstance(found, tirx.Select) else [])
        return found

    def store(each: BufferStore) -> Stmt:
        place = held.get(each.buffer)
        if place is not None:
            own = windowed and each.buffer.same_as(result)
            at = place.of_stage(each.indices, row) if own else place.in_ring(each.indices)
            each = BufferStore(place.fresh, each.value, at)
        return chosen_once(each, conditions)

    def region(each: TensorRegion) -> TensorRegion:
        place = held.get(each.source)
        return each if place is None else place.region(each.source.same_as(result))

    def variable(var: Var) -> Expr:
        return row if first is not None and var.same_as(first) else var

    moved = [(TensorLoad, load), (BufferStore, store), (TensorRegion, region), (Var, variable)]
    return tvm_ffi.structural_map(kernel.body, moved)
