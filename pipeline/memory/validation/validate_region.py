"""Replay a streaming region tick by tick: each stage must find the rows it reads. Part of the validator.

    tick 4    step 1 computes row 4 ─► its slot, then its ring of three rows: 2 3 4
              step 2 needs rows 2 to 4 of step 1's result: all there

The ticks are written out as a program, whose tensors are rows in their places, and replayed like any other.
Shares no code with the scheduling of regions. It is asked about the kernels that are built, in the layout they have by that time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from ...errors import PlanError
from ...program import Buffer, Follows, Overlay, Port, Program, Splits, Step, Tensor
from ..placement.plan_arena import ArenaPlan
from ..streaming.region import Region
from ..streaming.stage import Stage
from .replay_contents import check_contents


def validate_region(program: Program, splits: Mapping[str, Splits], region: Region) -> None:
    """Run a region by its stages, at each tick each due stage in the order of the steps. Raises PlanError.

    The rules: a kernel splits along its stage's axis, and operands follow along the axis of theirs; the rows a stage needs lie
    in their ring, row r at r modulo the rows kept, or in the slot they were put in last; a result in place of operands overwrites
    no row that is needed; all rows are computed, in order.
    """
    try:
        ticks = _Ticks(program, splits, region)
        for tick in region.ticks:
            for stage in region.stages:
                ticks.run(stage, tick)
        check_contents(*ticks.finish())
    except PlanError as error:
        raise PlanError(f"A streaming region of '{program.name}' computes wrong. {error}") from error


class _Ticks:
    """Steps of all ticks, and the rows that they read and write: tensors in rings, slots and results."""

    def __init__(self, around: Program, splits: Mapping[str, Splits], region: Region):
        self.around, self.region, self.over = around, region, region.replacement
        self.made = {around.steps[stage.step].writes[0]: stage for stage in region.stages}
        #: by step and part of its rows: how each operand follows, by place
        self.follows = {
            stage.step: self._follows_of(splits[around.steps[stage.step].kernel], stage) for stage in region.stages
        }
        self.extents = {tensor: stage.extent for tensor, stage in self.made.items()}
        for operand in self.over.operands if self.over is not None else ():
            assert self.over is not None
            shape, growth = around.tensors[operand].shape, self.over.growth
            self.extents[operand] = self.extents[self.over.result] if growth is None else shape[growth.axis]
        #: by tensor: the rows computed; and the last group of them, with its tick
        self.done: dict[int, list[int]] = {tensor: [] for tensor in self.made}
        self.fresh: dict[int, tuple[int, range]] = {}
        self.tick = 0
        self.steps: list[Step] = []
        self.tensors: list[Tensor] = []
        self.numbers: dict[tuple[object, ...], int] = {}
        self.places: dict[str, int] = {}

    def _follows_of(self, splits: Splits, stage: Stage) -> list[dict[int, Follows]]:
        step = self.around.steps[stage.step]
        if stage.operand is not None:
            inside = {n for n, tensor in enumerate(step.reads) if tensor in self.made}
            if inside != {stage.operand} or (stage.operand, stage.axis) not in splits.sums:
                raise self._error(step, f"does not sum over axis {stage.axis} of operand {stage.operand}")
            every = tuple(range(stage.extent + 1))
            return [{stage.operand: Follows(stage.axis, stage.extent, every[:-1], every[1:])}]
        found = [rows for rows in splits.rows if rows.axis == stage.axis]
        if len(found) != 1 or found[0].extent != stage.extent:
            raise self._error(step, f"has no {stage.extent} rows along axis {stage.axis}")
        (rows,) = found
        return [{rows.operands[0][0]: each} for each in rows.taps] if stage.leads else [dict(rows.operands)]

    def run(self, stage: Stage, tick: int) -> None:
        """Add what a stage does at a tick, and the copies after it."""
        self.tick = tick
        step = self.around.steps[stage.step]
        for part, lead in enumerate(stage.leads or (0,)):
            for rows in _due(stage, tick + lead):
                self._compute(stage, step, rows, part)
        if self.over is not None and self.over.held and self.over.result in step.writes:
            tensor = self.over.result
            for rows in _due(stage, tick - self.over.lag):
                self._copy("store_rows", [(self._home(tensor, row), self._in_place(tensor, row)) for row in rows])
        for tensor, writer in self.made.items():
            if writer.slot is not None and writer.kept and self._last_reader(tensor) == stage.step:
                for rows in _due(writer, tick):
                    self._copy("keep_rows", [(self._in_slot(tensor, row), self._in_ring(tensor, row)) for row in rows])

    def _copy(self, name: str, rows: Sequence[tuple[int, int]]) -> None:
        self.steps.append(Step(name, tuple(source for source, _ in rows), tuple(target for _, target in rows)))

    def _last_reader(self, tensor: int) -> int:
        readers = [each.step for each in self.region.stages if tensor in self.around.steps[each.step].reads]
        return max(readers, default=self.made[tensor].step)

    def _compute(self, stage: Stage, step: Step, taken: range, part: int) -> None:
        """Add a step that computes the rows `taken`, or a part of them."""
        (result,) = step.writes
        reads: list[int] = []
        for place, tensor in enumerate(step.reads):
            if tensor in self.made or (self.over is not None and tensor in self.over.operands):
                follows = self.follows[stage.step][part].get(place)
                if follows is None:
                    raise self._error(step, f"needs all rows of tensor {tensor}")
                needed = {at for row in taken for at in range(max(0, follows.low[row]), follows.high[row])}
                reads += self._find(step, tensor, follows, sorted(needed & set(range(follows.extent))))
        left = max(0, len(stage.leads) - 1 - part)
        self.done[result] += () if left else taken
        if stage.operand is not None:
            self.steps.append(Step(step.kernel, tuple(reads), ()))
            return
        self.fresh[result] = self.tick, taken
        so_far = [self._home(result, row, left + 1) for row in taken] if part else []
        overlays = tuple(Overlay(len(reads) + n, n) for n in range(len(so_far)))
        writes = tuple(self._home(result, row, left) for row in taken)
        self.steps.append(Step(step.kernel, (*reads, *so_far), writes, in_place=overlays))

    def _find(self, step: Step, tensor: int, follows: Follows, needed: Sequence[int]) -> list[int]:
        """Return the rows of an operand in their present places."""
        writer = self.made.get(tensor)
        if writer is None:
            return [self._in_place(tensor, row) for row in needed]
        if writer.operand is not None:
            raise self._error(step, f"reads the sum in tensor {tensor} before it is complete")
        if (writer.axis, writer.extent) != (follows.axis, follows.extent):
            raise self._error(
                step,
                f"reads {follows.extent} rows along axis {follows.axis} of tensor {tensor}, "
                f"of which the region holds {writer.extent} along axis {writer.axis}",
            )
        tick, fresh = self.fresh.get(tensor, (self.tick, range(0)))
        if writer.lockstep and not set(needed) <= set(fresh):
            raise self._error(step, f"reads rows of tensor {tensor} of another group")
        return [
            self._in_slot(tensor, row)
            if writer.slot is not None and tick == self.tick and row in fresh
            else self._in_ring(tensor, row)
            for row in needed
        ]

    def _home(self, tensor: int, row: int, left: int = 0) -> int:
        """Return the place into which a kernel writes a row; `left` parts of it come later."""
        if self.over is not None and tensor == self.over.result and self.over.held:
            return self._row("waiting rows", tensor, row, row % self.over.held)
        return self._in_slot(tensor, row) if self.made[tensor].slot is not None else self._in_ring(tensor, row, left)

    def _in_slot(self, tensor: int, row: int) -> int:
        return self._row(f"slot {self.made[tensor].slot}", tensor, row, row - self.fresh[tensor][1].start)

    def _in_ring(self, tensor: int, row: int, left: int = 0) -> int:
        if self.over is not None and tensor == self.over.result:
            return self._in_place(tensor, row)
        # without room for any row there is no place to find this one
        return self._row(f"rows of tensor {tensor}", tensor, row, row % (self.made[tensor].kept or 1), left)

    def _in_place(self, tensor: int, row: int) -> int:
        return self._row("the operand's place", tensor, row, row)

    def _row(self, place: str, tensor: int, row: int, at: int, left: int = 0) -> int:
        """Return the number of a row in a place, `at` rows from its beginning."""
        number = self.numbers.setdefault((place, tensor, row, at, left), len(self.tensors))
        if number == len(self.tensors):
            nbytes = self.around.tensors[tensor].nbytes // self.extents[tensor]
            growth = self.over.growth if self.over is not None and tensor in self.over.operands else None
            offset = at * nbytes + (growth.shift if growth is not None else 0)
            buffer = list(self.places).index(place) if place in self.places else len(self.places)
            self.places[place] = max(self.places.get(place, 0), offset + nbytes)
            self.tensors.append(Tensor((nbytes,), "uint8", buffer=buffer, offset=offset))
        return number

    def finish(self) -> tuple[Program, ArenaPlan]:
        """Return all ticks as a program, and its plan: every place is apart."""
        outputs: list[int] = []
        for tensor, stage in self.made.items():
            if self.done[tensor] != [row for number in range(stage.groups) for row in _group(stage, number)]:
                raise self._error(self.around.steps[stage.step], "does not compute its rows in order")
            if tensor in self.region.results and stage.operand is None:
                outputs += [self._in_ring(tensor, row) for row in range(stage.extent)]
        given = () if self.over is None else self.over.operands
        inputs = [number for (_, tensor, *_), number in self.numbers.items() if tensor in given]
        buffers = tuple(Buffer(name, nbytes) for name, nbytes in self.places.items())
        *offsets, end = accumulate(self.places.values(), initial=0)
        program = Program(
            self.around.name, tuple(self.steps), tuple(self.tensors), buffers, (),
            tuple(Port("", number) for number in inputs), tuple(Port("result", number) for number in outputs),
        )  # fmt: skip
        return program, ArenaPlan(tuple(offsets), end, 0, 0, False)

    def _error(self, step: Step, what: str) -> PlanError:
        return PlanError(f"'{step.kernel}' {what}.")


def _due(stage: Stage, tick: int) -> Iterator[range]:
    """Yield the rows that a stage takes at a tick, if it is its turn."""
    number, odd = divmod(tick - stage.offset, stage.period)
    if not odd and 0 <= number < stage.groups:
        yield _group(stage, number)


def _group(stage: Stage, number: int) -> range:
    """Return the rows of a group: where they do not divide the rows the last one overlaps, or a sum takes those left."""
    first = number * stage.group
    if stage.operand is None:
        first = min(first, stage.extent - stage.group)
    return range(first, min(first + stage.group, stage.extent))
