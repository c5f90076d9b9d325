"""Build the body of a streaming region: a program of one tick, whose calls compute a few rows each.

    tick t:  conv(t; x)        ──► rows just computed
             conv(t - 2; rows just computed, ring of 2 rows) ──► y
             copy              ──► ring

Rings live through all ticks. Rows just computed are values of a tick; the last call that reads them is followed by one that
copies them to their ring. Kernels are made here, and scheduled with all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tvm import tirx
from tvm.ir import Var
from tvm.tirx import BufferStore, PrimFunc

from ...memory.streaming.growth import is_turned
from ...memory.streaming.merge_region import region_step
from ...memory.streaming.region import Region
from ...memory.streaming.stage import Stage
from ...program import Buffer, Guard, Loop, Overlay, Port, Program, Step, Tensor, Window
from ...program.free_name import free_name
from ...tir.loop_nests import buffer_of, kernel_of, nest_of, spatial_axes
from ...tir.row_window import row_window
from ..lower.lower import Lowered
from ..lower.row_kernel import Fresh, RowKernel, RowPlace
from .partial_sum import partial_sum
from .window_taps import tap_window


@dataclass
class RegionBody:
    """Collect the calls of a region's ticks, their kernels, and the memory of their rows.

    The body has tensors of its own.
    """

    lowered: Lowered
    region: Region
    kernels: dict[str, PrimFunc] = field(default_factory=dict)
    rows: dict[str, RowKernel] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    _tensors: list[Tensor] = field(default_factory=list)
    _buffers: list[Buffer] = field(default_factory=list)
    #: by tensor around: the tensor of the body that is all of it, or its ring; its rows just computed; where it waits
    _inside: dict[int, int] = field(default_factory=dict)
    _fresh: dict[int, int] = field(default_factory=dict)
    _given: list[Port] = field(default_factory=list)
    _made: list[Port] = field(default_factory=list)
    _waiting: int | None = None

    def __post_init__(self) -> None:
        self._program = self.lowered.program
        self._stages = {self._program.steps[stage.step].writes[0]: stage for stage in self.region.stages}
        self._over = self.region.replacement
        self._start = self.region.ticks.start
        for tensor, stage in self._stages.items():
            place = self._whole(tensor)
            if tensor in self.region.results:
                self._inside[tensor] = self._add(tensor, place.memory, self._made)
            elif stage.kept:
                self._inside[tensor] = self._add(tensor, place.memory, self._given, self._made)
            if stage.slot is not None:
                self._fresh[tensor] = self._add(tensor, self._resize(tensor, stage.axis, stage.group))
        if self._over is not None and self._over.held:
            self._waiting = self._add(self._over.result, self._waits().memory, self._given, self._made)

    def loop(self) -> Loop:
        """Return the region as a loop of ticks, with the operands and results of the program around it."""
        own = region_step(self._program, self.region)
        last: list[Step] = []
        leaving = self._leaving()
        for stage in self.region.stages:
            step = self._program.steps[stage.step]
            last += self._calls(stage, step)
            if self._waiting is not None and self._over is not None and step.writes[0] == self._over.result:
                self._copy_rows(self._over.result, self._waits(), self._waiting, self._over.lag)
            for tensor in leaving.get(stage.step, ()):
                self._copy_rows(tensor, None, self._fresh[tensor])
        self.steps += last
        places = {tensor: number for number, tensor in enumerate((*own.reads, *own.writes))}
        windows = tuple(Window(inside, places[tensor]) for tensor, inside in self._inside.items() if tensor in places)
        steps, tensors, buffers = tuple(self.steps), tuple(self._tensors), tuple(self._buffers)
        body = Program("body", steps, tensors, buffers, (), tuple(self._given), tuple(self._made))
        trips = len(self.region.ticks)
        return Loop(own.kernel, own.reads, own.writes, own.nodes, own.in_place, trips=trips, body=body, windows=windows)

    def _calls(self, stage: Stage, step: Step) -> list[Step]:
        """Add the calls of a stage at its ticks; return the one at the end of the last tick, if there is one."""
        kernel = self.lowered.kernels[step.kernel]
        if stage.operand is not None:
            finish: PrimFunc | None = None
            for piece, row in stage.pieces:
                made = partial_sum(kernel, stage.operand, stage.axis, piece.group)
                finish = made.finish
                rows = RowKernel((), piece.group, piece.extent, piece.groups, row, continues=True)
                guard = self._guard(piece, row // stage.group * stage.period)
                last = stage.extent - stage.group if row else None
                self.steps.append(self._call(f"{step.kernel}_part", made.part, stage, guard, rows, last=last))
            if finish is None:
                return []
            guard, rows = Guard(offset=len(self.region.ticks) - 1), RowKernel((), continues=True)
            return [self._call(f"{step.kernel}_finish", finish, stage, guard, rows)]
        rows = RowKernel((), stage.group, stage.extent, stage.groups, windowed=True)
        if not stage.leads:
            window = row_window(kernel, stage.axis, stage.group)
            self.steps.append(self._call(f"{step.kernel}_rows", window, stage, self._guard(stage), rows))
        for number, lead in enumerate(stage.leads):
            tap, part = tap_window(kernel, stage.axis, number), replace(rows, continues=number > 0)
            self.steps.append(self._call(f"{step.kernel}_tap", tap, stage, self._guard(stage, -lead), part, lead))
        return []

    def _guard(self, stage: Stage, late: int = 0) -> Guard:
        return Guard(stage.period, stage.offset - self._start + late, stage.groups, numbered=True)

    def _call(
        self,
        name: str,
        kernel: PrimFunc,
        stage: Stage,
        guard: Guard,
        rows: RowKernel,
        lead: int = 0,
        last: int | None = None,
    ) -> Step:
        """Return the call of a kernel of a stage, whose rows are `rows`.

        Its ticks are `lead` before those of the stage. Its operands' groups begin at row `last`, if not at its own.
        """
        step = self._program.steps[stage.step]
        places, reads = [], []
        more: list[int] = []
        for tensor in step.reads:
            place = self._place(tensor, stage, lead, last)
            places.append(place)
            if place is None or place.held != 0:
                reads.append(self._operand(tensor, place))
            if place is not None and place.fresh is not None:
                (more if place.held != 0 else reads).append(self._fresh[tensor])
        result, own = step.writes[0], self._result_place(step.writes[0])
        overlays: tuple[Overlay, ...] = ()
        if self._over is not None and self._over.result == result and self._waiting is None:
            shift = self._over.growth.shift if self._over.growth is not None else 0
            overlays = tuple(
                Overlay(n, 0, shift) for n, tensor in enumerate(step.reads) if tensor in self._over.operands
            )
        waiting = None if self._waits_for(result) is None else self._waiting
        writes = self._fresh[result] if own is None else self._inside[result] if waiting is None else waiting
        return self._step(
            name, kernel, replace(rows, places=(*places, own)), guard, (*reads, *more), (writes,), step.nodes, overlays
        )

    def _step(
        self,
        name: str,
        kernel: PrimFunc,
        rows: RowKernel,
        guard: Guard,
        reads: Sequence[int],
        writes: Sequence[int],
        nodes: tuple[str, ...] = (),
        overlays: tuple[Overlay, ...] = (),
    ) -> Step:
        name = free_name(name, self.lowered.kernels.keys() | self.kernels.keys())
        self.kernels[name], self.rows[name] = kernel, rows
        return Step(name, tuple(reads), tuple(writes), nodes, overlays, guard=guard)

    def _copy_rows(self, tensor: int, source: RowPlace | None, own: int, late: int = 0) -> None:
        """Copy a group of rows of a tensor, `late` ticks after it is computed, from tensor `own` of the body to its memory.

        They are in a ring at `source`, or just computed.
        """
        stage = self._stages[tensor]
        name = "keep_rows" if source is None else "store_rows"
        kernel = self._copy(tensor, stage, whole=source is not None)
        rows = RowKernel((source, self._whole(tensor)), stage.group, stage.extent, stage.groups, windowed=True)
        self.steps.append(self._step(name, kernel, rows, self._guard(stage, late), [own], [self._inside[tensor]]))

    def _copy(self, tensor: int, stage: Stage, whole: bool) -> PrimFunc:
        """Build a kernel that copies the rows of a group; their source is `whole`, or they are all of it."""
        what, shape = self._program.tensors[tensor], self._resize(tensor, stage.axis, stage.group)
        source, target = (
            buffer_of("source", what.shape if whole else shape, what.dtype),
            buffer_of("target", shape, what.dtype),
        )
        first = Var("first", "int64")
        axes = spatial_axes(shape)
        at = [axis.var for axis in axes]
        of = [first + index if whole and n == stage.axis else index for n, index in enumerate(at)]
        nest = nest_of(axes, "copy", BufferStore(target, tirx.BufferLoad(source, of), at))
        return kernel_of([first, source, target], [nest], [], None)

    def _leaving(self) -> dict[int, list[int]]:
        """Map steps to the kept tensors whose rows just computed they are the last to read."""
        found: dict[int, list[int]] = {}
        for tensor, stage in self._stages.items():
            if stage.slot is not None and stage.kept:
                readers = [each.step for each in self.region.stages if tensor in self._program.steps[each.step].reads]
                found.setdefault(max(readers, default=stage.step), []).append(tensor)
        return found

    def _place(self, tensor: int, reader: Stage, lead: int, last: int | None) -> RowPlace | None:
        """Locate the rows of a stage's operand; None for one that is whole and stays in place."""
        stage = self._stages.get(tensor)
        if stage is None:
            place = self._whole(tensor) if self._grows(tensor) else None
            return place if place is not None and place.turned else None
        place = self._waits_for(tensor) or self._whole(tensor)
        if stage.slot is not None:
            scale, ahead = (
                reader.period // stage.period,
                (reader.offset - lead - stage.offset) // stage.period * stage.group,
            )
            fresh = Fresh(stage.group, scale, ahead) if last is None else Fresh(stage.group, 0, last * scale + ahead)
            return replace(place, held=stage.kept, fresh=fresh)
        return place if place.held is not None or place.turned else None

    def _result_place(self, tensor: int) -> RowPlace | None:
        """Locate the result of a stage; None for rows just computed."""
        return None if tensor in self._fresh else self._waits_for(tensor) or self._whole(tensor)

    def _waits_for(self, tensor: int) -> RowPlace | None:
        return (
            self._waits()
            if self._waiting is not None and self._over is not None and tensor == self._over.result
            else None
        )

    def _waits(self) -> RowPlace:
        """Return the ring of a result that waits to replace an operand."""
        assert self._over is not None
        return RowPlace(
            self._program.tensors[self._over.result].shape, self._stages[self._over.result].axis, self._over.held
        )

    def _whole(self, tensor: int) -> RowPlace:
        """Return the memory of a tensor: all of it, or its ring."""
        shape, stage = self._program.tensors[tensor].shape, self._stages.get(tensor)
        if self._grows(tensor):
            assert self._over is not None and self._over.growth is not None
            axis = self._over.growth.axis if stage is None else stage.axis
            return RowPlace(shape, axis, turned=not is_turned(shape, axis))
        if stage is None or tensor in self.region.results:
            return RowPlace(shape, stage.axis if stage is not None and stage.operand is None else 0)
        held = stage.kept if stage.kept < stage.extent else None
        return RowPlace(shape, stage.axis, held, stage.extent % stage.group > 0)

    def _grows(self, tensor: int) -> bool:
        """Return whether a tensor is the result that grows over an operand, or the operand."""
        over = self._over
        return over is not None and over.growth is not None and (tensor == over.result or tensor in over.operands)

    def _operand(self, tensor: int, place: RowPlace | None) -> int:
        """Return the tensor of the body for an operand of a call."""
        if self._waits_for(tensor) is not None:
            assert self._waiting is not None
            return self._waiting
        if tensor not in self._inside:
            what = self._program.tensors[tensor]
            if what.weight is not None:
                self._tensors.append(what)
                self._inside[tensor] = len(self._tensors) - 1
            else:
                self._inside[tensor] = self._add(tensor, what.shape if place is None else place.memory, self._given)
        return self._inside[tensor]

    def _add(self, tensor: int, shape: Sequence[int], *ports: list[Port]) -> int:
        """Add a tensor to the body, on a buffer of its own, and to these ports."""
        what, number = self._program.tensors[tensor], len(self._tensors)
        name = self._program.buffers[what.buffer_number].name
        self._tensors.append(Tensor(tuple(shape), what.dtype, len(self._buffers)))
        self._buffers.append(Buffer(name, self._tensors[-1].nbytes))
        for each in ports:
            each.append(Port(name, number))
        return number

    def _resize(self, tensor: int, axis: int, rows: int) -> tuple[int, ...]:
        return tuple(rows if n == axis else extent for n, extent in enumerate(self._program.tensors[tensor].shape))
