"""Fuse the steps of a streaming region into one kernel: row by row, with ring buffers between.

    for tick in …:                                each stage in the order of the steps
        k = (tick - offset) / period
        if k is whole and 0 <= k < extent / group: window(first = k * group)
    finish                                        epilogues of the stages that summed up

A window reads and writes row r of a ring at r modulo the rows it holds.

The rings are results nobody reads: the arena has a place for them while the kernel runs, and they cost nothing after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import tvm_ffi
from tvm import s_tir, sym, tirx
from tvm.ir import Expr, Range, TensorLoad, TensorRegion, Var
from tvm.tirx import BufferStore, For, IfThenElse, IterVar, PrimFunc, Stmt

from ...memory.streaming.region import Region, Stage, merge_region
from ...program import Step
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
from .window_taps import tap_window

_SERIAL, _SPATIAL = 0, 0


def stream_region(lowered: Lowered, region: Region) -> Lowered:
    """Replace the steps of `region` by one kernel, at the last one's place."""
    lowered, region = region_with_columns_last(*region_with_integers_last(lowered, region))
    program, step = merge_region(lowered.program, region)
    kernel, repacks = _kernel(lowered, region, step.reads, step.writes)
    program, weights = repack_by_number(program, lowered.weights, repacks)
    used = {each.kernel for each in program.steps}
    kernels = {name: function for name, function in lowered.kernels.items() if name in used} | {step.kernel: kernel}
    layouts = {**lowered.layouts, **repacks}
    return replace(
        lowered, program=program, kernels=dict(sorted(kernels.items())), weights=weights, layouts=layouts
    )


@dataclass(frozen=True)
class _Place:
    """Location of a tensor in the kernel: its buffer, and the axis and number of rows of a ring.

    `writer` is the stage that writes a ring whose groups overlap.
    """

    buffer: Var
    axis: int = 0
    held: int | None = None
    writer: Stage | None = None

    def indices(self, indices: Sequence[Expr], row: Expr | None = None) -> list[Expr]:
        """Return the buffer indices of a tensor element.

        With `row`, indices along the axis count from that row.
        """
        found = list(indices)
        if row is None and self.held is None:  # a scalar has no axis
            return found
        place = found[self.axis]
        if row is None:
            found[self.axis] = tirx.floormod(place, self.held)
        elif self.held is None:
            found[self.axis] = row + place
        elif self.writer is None:
            found[self.axis] = tirx.floormod(row, self.held) + place
        elif not self.writer.lockstep:
            found[self.axis] = tirx.floormod(row + place, self.held)
        return found

    def indices_read(self, indices: Sequence[Expr], row: Expr | None) -> list[Expr]:
        """Return the buffer indices of an element that a stage reads at `row`."""
        if row is None or self.writer is None or not self.writer.lockstep:
            return self.indices(indices)
        found = list(indices)
        found[self.axis] = sym.Analyzer().simplify(found[self.axis] - row)
        return found


def _kernel(
    lowered: Lowered, region: Region, reads: Sequence[int], results: Sequence[int]
) -> tuple[PrimFunc, dict[int, Repack]]:
    """Build the fused kernel, and the repacks it wants, by weight number.

    `results` are those of the merged step; a ring for rows that wait comes last.
    """
    program = lowered.program
    own = results[: len(region.stages)]
    runs = _runs(lowered, region)
    layouts = {weight: repack for run in runs for weight, repack in run.repacks.items()}
    places = {}
    for number, tensor in enumerate(reads):
        given, weight = program.tensors[tensor].shape, program.tensors[tensor].weight
        laid = layouts[weight].shape(given) if weight in layouts else given
        places[tensor] = _Place(buffer_of(f"operand{number}", laid, program.tensors[tensor].dtype))
    for stage in region.stages:
        tensor = program.steps[stage.step].writes[0]
        ring = tensor in region.rings and stage.held < stage.extent
        shape = list(program.tensors[tensor].shape)
        if tensor in region.rings:
            shape[stage.axis] = stage.held
        buffer = buffer_of(f"result{results.index(tensor)}", shape, program.tensors[tensor].dtype)
        axis = stage.axis if stage.operand is None else 0
        places[tensor] = _Place(buffer, axis, stage.held if ring else None, stage if ring and stage.extent % stage.group else None)
    params = [places[tensor].buffer for tensor in (*reads, *own)]
    over = region.replacement
    whole = None
    if over is not None and over.held:
        waiting, whole = region.stage_of(program, over.result), places[over.result]
        shape = [over.held if n == waiting.axis else int(e) for n, e in enumerate(whole.buffer.ty.shape)]
        ring = buffer_of("waiting", shape, program.tensors[over.result].dtype)
        places[over.result] = _Place(ring, waiting.axis, over.held)
        params.append(ring)
    ticks = region.ticks
    tick = Var("tick", "int64")
    body, after = [], []
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
                made = partial(_bound, kernel, step, places, windowed=True)
                body.append(_at_its_ticks(stage, since + lead if lead else since, made))
        if over is not None and whole is not None and step.writes[0] == over.result:
            stored = partial(_stored, places[over.result], whole, stage)
            body.append(_at_its_ticks(stage, since - over.lag, stored))
        if run.finish is not None:
            after.append(_bound(run.finish, step, places, None))
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
            schedule = schedules(kernel, choice, lowered.machine, True).within(RULE_WORKSPACE, RULE_WORKSPACE)
            if stage.operand is None and not stage.leads:
                # what accumulates reads its accumulator in place, which no analysis here sees
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
            last = schedules(finish, frozenset(), lowered.machine, True).within(RULE_WORKSPACE, RULE_WORKSPACE)
            finish, workspace = s_tir.renew_defs(last.kernel), max(workspace, last.workspace)
        found.append(_Run(tuple(kernels), finish, own, workspace))
    return found


def _windows(kernel: PrimFunc, stage: Stage) -> tuple[list[PrimFunc], PrimFunc | None]:
    """Return the kernels of a stage, one for each tap or piece of a sum, and the one after its last tick."""
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


def _part_of_sum(kernel: PrimFunc, step: Step, places: dict[int, _Place], stage: Stage, row: int, first: Expr) -> Stmt:
    """Bind a piece of a sum from `row` on; the last group of its operand may begin earlier, and overlap."""
    if not row:
        return _bound(kernel, step, places, first)
    return _bound(kernel, step, places, first + row, group=int64(stage.extent - stage.group))


def _stored(ring: _Place, whole: _Place, stage: Stage, first: Expr) -> Stmt:
    """Store a group of rows, from row `first` on, that waited in a ring."""
    shape = [stage.group if n == stage.axis else int(extent) for n, extent in enumerate(whole.buffer.ty.shape)]
    axes = [IterVar(Range(0, int64(extent)), Var(f"v_i{n}", "int64"), _SPATIAL) for n, extent in enumerate(shape)]
    at = [axis.var for axis in axes]
    store = BufferStore(whole.buffer, tirx.BufferLoad(ring.buffer, ring.indices(at, first)), whole.indices(at, first))
    return tvm_ffi.structural_map(nest_of(axes, "store", store), (TensorRegion, lambda each: all_of(each.source)))


def _bound(
    kernel: PrimFunc, step: Step, places: dict[int, _Place], row: Expr | None, windowed: bool = False,
    group: Expr | None = None,
) -> Stmt:
    """Bind the body of a stage's kernel to the buffers of the fused kernel.

    `windowed`: the result holds the rows from `row` on. `group` is the first row of the operands' groups, if not `row`.
    """
    params = list(kernel.params)
    first = params.pop(0) if row is not None else None
    tensors = [*step.reads, *step.writes]
    if len(params) > len(tensors):  # the sum so far aliases the result
        tensors.insert(len(step.reads), step.writes[0])
    held = {param: places[tensor] for param, tensor in zip(params, tensors, strict=True)}
    result = params[-1]

    def load(each: TensorLoad) -> TensorLoad:
        place = held.get(each.source)
        if place is None:
            return each
        if windowed and each.source.same_as(result):
            return tirx.BufferLoad(place.buffer, place.indices(each.indices, row))
        return tirx.BufferLoad(place.buffer, place.indices_read(each.indices, row if group is None else group))

    def store(each: BufferStore) -> BufferStore:
        place = held.get(each.buffer)
        if place is None:
            return each
        return BufferStore(place.buffer, each.value, place.indices(each.indices, row if windowed and each.buffer.same_as(result) else None))

    def region(each: TensorRegion) -> TensorRegion:
        place = held.get(each.source)
        return each if place is None else all_of(place.buffer)

    def variable(var: Var) -> Expr:
        return row if first is not None and var.same_as(first) else var

    moved = [(TensorLoad, load), (BufferStore, store), (TensorRegion, region), (Var, variable)]
    return tvm_ffi.structural_map(kernel.body, moved)
