"""Replay a streaming region tick by tick: each stage must find the rows it reads. Part of the validator.

    tick 4    step 1 computes row 4 ─► its slot, then its ring of three rows: 2 3 4
              step 2 needs rows 2 to 4 of step 1's result: all there

Shares no code with the scheduling of regions. It is asked about the kernels that are built, in the layout they have by that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from ...errors import PlanError
from ...program import Follows, Program, Rows, Splits, Step
from ..streaming.region import Region
from ..streaming.stage import Stage

#: what a place of a ring holds: nothing, a row, or a row and the part of it that comes next
_Held = int | tuple[int, int] | None


def validate_region(program: Program, splits: Mapping[str, Splits], region: Region) -> None:
    """Run a region by its stages, at each tick each due stage in the order of the steps. Raises PlanError.

    The rules: a kernel splits along its stage's axis, and operands follow along the axis of theirs; the rows a stage needs lie
    in their ring, row r at r modulo the rows kept, or in the slot they were put in last; a result in place of operands overwrites
    no row that is needed; all rows are computed, in order.
    """
    replay = _Replay(program, splits, region)
    for tick in region.ticks:
        replay.slots.clear()  # a kernel reads a slot in the tick that fills it alone
        for stage in region.stages:
            replay.run(stage, tick)
    replay.finish()


class _Replay:
    """Rows in rings, slots and results while a region runs."""

    def __init__(self, program: Program, splits: Mapping[str, Splits], region: Region):
        self.program, self.region, self.over = program, region, region.replacement
        self.made = {program.steps[stage.step].writes[0]: stage for stage in region.stages}
        self.rows = {
            stage.step: self._split_of(splits[program.steps[stage.step].kernel], stage) for stage in region.stages
        }
        self.room: dict[int, list[_Held]] = {tensor: [None] * (stage.kept or 1) for tensor, stage in self.made.items()}
        self.slots: dict[int, tuple[int, range]] = {}
        self.waiting: list[int | None] = [None] * (self.over.held if self.over else 0)
        self.overwritten: list[int] = []
        #: rows computed, by tensor
        self.done: dict[int, list[int]] = {tensor: [] for tensor in self.made}
        self.leaving = self._last_readers()

    def _split_of(self, splits: Splits, stage: Stage) -> Rows | None:
        """Return how a stage's kernel splits along its axis; None for a sum over an operand's rows."""
        step = self.program.steps[stage.step]
        if stage.operand is not None:
            inside = {n for n, tensor in enumerate(step.reads) if tensor in self.made}
            if inside != {stage.operand} or (stage.operand, stage.axis) not in splits.sums:
                raise self._error(step, f"does not sum over axis {stage.axis} of operand {stage.operand}")
            return None
        found = [rows for rows in splits.rows if rows.axis == stage.axis]
        if len(found) != 1 or found[0].extent != stage.extent:
            raise self._error(step, f"has no {stage.extent} rows along axis {stage.axis}")
        return found[0]

    def _last_readers(self) -> dict[int, list[int]]:
        """Map steps to the tensors whose slot they are the last to read."""
        found: dict[int, list[int]] = {}
        for tensor, stage in self.made.items():
            if stage.slot is not None:
                readers = [each.step for each in self.region.stages if tensor in self.program.steps[each.step].reads]
                found.setdefault(max(readers, default=stage.step), []).append(tensor)
        return found

    def run(self, stage: Stage, tick: int) -> None:
        step = self.program.steps[stage.step]
        (result,) = step.writes
        number, odd = divmod(tick - stage.offset, stage.period)
        if stage.leads:
            self._accumulate(stage, step, tick)
        elif not odd and 0 <= number < stage.groups:
            self._compute(stage, step, number)
        if self.over is not None and self.over.result == result and self.over.held:
            self._store(stage, step, tick)
        for tensor in self.leaving.get(stage.step, ()):
            self._leave_slot(tensor, tick)

    def finish(self) -> None:
        """Check that every row was computed, and each result is complete."""
        for tensor, stage in self.made.items():
            rows = [_start(stage, number) + n for number in range(stage.groups) for n in range(stage.group)]
            rows = rows if stage.operand is None else list(range(stage.extent))
            step = self.program.steps[stage.step]
            if self.done[tensor] != rows or set(rows) != set(range(stage.extent)):
                raise self._error(step, "does not compute its rows in order")
            if (
                tensor in self.region.results
                and stage.operand is None
                and self.room[tensor] != list(range(stage.extent))
            ):
                raise self._error(step, "leaves its result incomplete")
            if self.over is not None and self.over.result == tensor and self.overwritten != list(range(stage.extent)):
                raise self._error(step, "does not store its result in place once")

    def _accumulate(self, stage: Stage, step: Step, tick: int) -> None:
        """Add the due parts of rows to the sums in their places."""
        rows, (result,) = self.rows[stage.step], step.writes
        assert rows is not None
        for part, lead in enumerate(stage.leads):
            row, odd = divmod(tick - stage.offset + lead, stage.period)
            if odd or not 0 <= row < stage.extent:
                continue
            place = row % len(self.room[result])
            if part and self.room[result][place] != (row, part):
                raise self._error(step, f"adds part {part} to a row that lacks the part before")
            self._find(step, step.reads[rows.operands[0][0]], rows.taps[part], (row,))
            last = part == len(rows.taps) - 1
            self.room[result][place] = row if last else (row, part + 1)
            self.done[result] += [row] * last

    def _compute(self, stage: Stage, step: Step, number: int) -> None:
        (result,) = step.writes
        rows = self.rows[stage.step]
        if rows is None:
            assert stage.operand is not None
            taken = range(number * stage.group, min((number + 1) * stage.group, stage.extent))
            whole = Follows(stage.axis, stage.extent, tuple(range(stage.extent)), tuple(range(1, stage.extent + 1)))
            self._find(step, step.reads[stage.operand], whole, taken)
            self._check_untouched(None, step, taken)
            self.done[result] += taken
            return
        first = _start(stage, number)
        taken = range(first, first + stage.group)
        if self.over is not None and self.over.result == result and not self.over.held:
            self.overwritten += taken  # its own kernel may not even read the row it writes
        self._check_untouched(rows, step, taken)
        for place, tensor in enumerate(step.reads):
            if tensor in self.made:
                follows = rows.follows(place)
                if follows is None:
                    raise self._error(step, f"needs all rows of tensor {tensor}, made in the region")
                self._find(step, tensor, follows, taken)
        self.done[result] += taken
        if stage.slot is not None:
            self.slots[stage.slot] = result, taken
            return
        waits = self.over is not None and self.over.result == result and self.over.held
        for row in taken:
            self.room[result][row % len(self.room[result])] = row
            if waits:
                self.waiting[row % len(self.waiting)] = row

    def _find(self, step: Step, tensor: int, follows: Follows, taken: Iterable[int]) -> None:
        """Check that the rows of `tensor` that `taken` rows need are there."""
        writer = self.made[tensor]
        if writer.operand is not None:
            raise self._error(step, f"reads the sum in tensor {tensor} before it is complete")
        if (writer.axis, writer.extent) != (follows.axis, follows.extent):
            raise self._error(
                step,
                f"reads {follows.extent} rows along axis {follows.axis} of tensor {tensor}, "
                f"of which the region holds {writer.extent} along axis {writer.axis}",
            )
        owner, fresh = self.slots.get(-1 if writer.slot is None else writer.slot, (None, range(0)))
        there = fresh if owner == tensor else range(0)
        room = self.room[tensor]
        needed = set(
            chain.from_iterable(range(max(0, follows.low[row]), min(follows.high[row], writer.extent)) for row in taken)
        )
        if writer.lockstep and needed and not needed <= set(self.done[tensor][-writer.group :]):
            raise self._error(step, f"reads rows of tensor {tensor} of another group")
        for row in needed:
            if row not in there and (not writer.kept or room[row % len(room)] != row):
                raise self._error(step, f"reads row {row} of tensor {tensor}, which is not there")

    def _check_untouched(self, rows: Rows | None, step: Step, taken: range) -> None:
        """Check that no row of an operand in place was overwritten before it is read."""
        if self.over is None:
            return
        for place, tensor in enumerate(step.reads):
            if tensor in self.over.operands:
                follows = None if rows is None else rows.follows(place)
                if follows is None:
                    raise self._error(step, f"needs all rows of tensor {tensor}, which is overwritten")
                needed = {at for row in taken for at in range(follows.low[row], follows.high[row])}
                if not needed.isdisjoint(self._lost(tensor)):
                    raise self._error(step, f"reads a row of tensor {tensor} after it is overwritten")

    def _lost(self, operand: int) -> set[int]:
        """Return the rows of an operand that the result has overwritten."""
        assert self.over is not None
        growth = self.over.growth
        if growth is None:
            return set(self.overwritten)
        what, result = self.program.tensors[operand], self.program.tensors[self.over.result]
        row, written = what.nbytes // what.shape[growth.axis], result.nbytes // self.made[self.over.result].extent
        # rows are stored one after the other from the first
        end = len(self.overwritten) * written - growth.shift
        return set(range(-(-end // row))) if end > 0 else set()

    def _store(self, stage: Stage, step: Step, tick: int) -> None:
        """Store the rows of a result that waited."""
        assert self.over is not None
        number, odd = divmod(tick - stage.offset - self.over.lag, stage.period)
        if odd or not 0 <= number < stage.groups:
            return
        for row in range(number * stage.group, (number + 1) * stage.group):
            if self.waiting[row % len(self.waiting)] != row:
                raise self._error(step, f"stores row {row} of its result, which no longer waits")
            self.overwritten.append(row)

    def _leave_slot(self, tensor: int, tick: int) -> None:
        """Copy the rows just computed from their slot to their ring."""
        writer = self.made[tensor]
        number, odd = divmod(tick - writer.offset, writer.period)
        if odd or not 0 <= number < writer.groups:
            return
        first = _start(writer, number)
        rows = range(first, first + writer.group)
        assert writer.slot is not None
        if self.slots.get(writer.slot) != (tensor, rows):
            raise self._error(
                self.program.steps[writer.step], f"loses rows of tensor {tensor} in a slot before they are read"
            )
        for row in rows if writer.kept else ():
            self.room[tensor][row % writer.kept] = row

    def _error(self, step: Step, what: str) -> PlanError:
        return PlanError(f"A streaming region of '{self.program.name}' computes wrong: '{step.kernel}' {what}.")


def _start(stage: Stage, number: int) -> int:
    """Return the first row of a group: the last one overlaps where they do not divide the rows."""
    return min(number * stage.group, stage.extent - stage.group)
