"""Grow a streaming region step by step: the axis of each step, and the rates of its tensors' rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...program import Program, Rows, Splits, Step

#: rows of a tensor per row of the first result, as numerator and denominator without a common divisor
Rate = tuple[int, int]
#: most steps of branches that wait to be joined
BRANCH = 8


@dataclass(frozen=True)
class StepSplit:
    """Role of a step in a region: by the `rows` of its result, or summing up rows of an `operand`."""

    step: int
    axis: int
    extent: int
    rows: Rows | None = None
    operand: int | None = None
    taps: RowTaps | None = None


@dataclass(frozen=True)
class RowTaps:
    """Parts a row is accumulated in, each from at most `width` rows of `tensor`.

    By part, `early` counts the rows of `tensor` between its last row and that of the last part.
    """

    tensor: int
    width: int
    early: tuple[int, ...]


class Pace(NamedTuple):
    """Rows of `tensor` a step needs: of groups v of its result, groups floor(slope · v) + low up to floor(slope · v) + high.

    The slope is `rises` / `runs`, without a common divisor.
    """

    tensor: int
    rises: int
    runs: int
    low: int
    high: int


def last_needs(program: Program) -> dict[int, int]:
    """Return the last step that reads each tensor.

    Tensors for the caller, and sources of views, have the number after the last step.
    """
    found = {tensor: number for number, step in enumerate(program.steps) for tensor in step.reads}
    for tensor in (*(port.tensor for port in program.outputs), *(view.source for view in program.views)):
        found[tensor] = len(program.steps)
    return found


def may_stream(step: Step) -> bool:
    """Return whether a step may run row by row: it has one result, and all trips run it if it is in a loop's body."""
    return len(step.writes) == 1 and step.guard is None


class RegionBuilder:
    """Build a region of the steps from `first` to `last`: empty at first, then grown one by one.

    A step joins by the axis along which its operands made here are streamed. A step that begins a branch waits for one
    that joins it.
    """

    def __init__(
        self, program: Program, splits: Mapping[str, Splits], first: int, axis: int, needed: Mapping[int, int]
    ):
        """Start an empty region; `needed` is the last_needs of the program."""
        self.program, self.splits, self.first, self.last, self._needed_last = program, splits, first, first - 1, needed
        self._axes = {tensor: axis for tensor in program.steps[first].writes}
        self._made: set[int] = set()
        self._buffers: set[int | None] = set()
        self._sums: set[int] = set()
        self.choices: dict[int, StepSplit] = {}
        #: per step with a role, the rows it needs of tensors made here, one row at a time
        self.paces: dict[int, tuple[Pace, ...]] = {}
        self._rates: dict[int, Rate] = {}
        #: ticks between two rows of each rate; empty once there is another rate
        self._periods: dict[Rate, int] = {}
        self.waiting: list[int] = []
        #: by tensor read here: bytes of the rows a reader needs at once but one, and of one; these of all, and the largest row
        self._least: dict[int, tuple[int, int]] = {}
        self._rows_bytes = self._row_bytes = 0
        self._readers: dict[int, int] = {}
        #: tensors made here that are read here; by buffer, the steps and places that read what is made elsewhere
        self.read_inside: set[int] = set()
        self.read_outside: dict[int, list[tuple[int, int]]] = {}
        for tensor in program.steps[first].writes:
            self._rate(tensor, (1, 1))

    @property
    def least_bytes(self) -> int:
        """Return a lower bound on the bytes of the rings and slots, for any alignment."""
        return self._rows_bytes + self._row_bytes

    def grow(self) -> bool:
        """Add the next step; False where no region with it is possible, however it grows."""
        self.last += 1
        step = self.program.steps[self.last]
        if not may_stream(step):
            return False
        for place, tensor in enumerate(step.reads):
            buffer = self.program.tensors[tensor].buffer
            if tensor in self._made:
                if not self.is_kept(tensor) and tensor not in step.reads[:place]:
                    rows, row = self._least.get(tensor, (0, 0))  # read for the last time: it need not be whole
                    self._rows_bytes, self._row_bytes = self._rows_bytes + rows, max(self._row_bytes, row)
                self.read_inside.add(tensor)
            elif buffer in self._buffers:
                return False  # it reads a view of a result made here
            elif buffer is not None:
                self.read_outside.setdefault(buffer, []).append((self.last, place))
            self._readers[tensor] = self._readers.get(tensor, 0) + 1
        if self.program.tensors[step.writes[0]].buffer in self.read_outside:
            return False  # the next state of a loop, over the one that is read
        self._made.add(step.writes[0])
        self._buffers.add(self.program.tensors[step.writes[0]].buffer)
        self.waiting.append(self.last)
        before = None
        while before != len(self.waiting):
            before = len(self.waiting)
            if not all(self._settle(number) for number in tuple(self.waiting)):
                return False
        return len(self.waiting) <= BRANCH

    def _settle(self, number: int) -> bool:
        """Decide the role of a step, if it is known by now; False if it has none."""
        step, splits = self.program.steps[number], self.splits[self.program.steps[number].kernel]
        inside = [(n, t) for n, t in enumerate(step.reads) if t in self._made]
        result = self._axes.get(step.writes[0])
        if any(t in self._sums for _, t in inside):
            return False  # it reads a sum before it is complete
        if result is None and not any(t in self._axes for _, t in inside):
            return True
        choice = self._by_rows(number, splits, inside, result) or self._by_sum(number, splits, inside, result)
        if choice is None:
            return False
        self.waiting.remove(number)
        self.choices[number] = choice
        self.paces[number] = paces = self.needs(choice, 1)
        for pace in paces:
            tensor = self.program.tensors[pace.tensor]
            extent = tensor.shape[self._axes[pace.tensor]]
            count = min(pace.high - pace.low, extent)
            row = tensor.nbytes // extent if count else 0
            nbytes = row * (count - 1)
            known, _ = self._least.get(pace.tensor, (0, 0))
            if nbytes >= known:
                self._least[pace.tensor] = nbytes, row
                if not self.is_kept(pace.tensor):
                    self._rows_bytes, self._row_bytes = self._rows_bytes + nbytes - known, max(self._row_bytes, row)
        return choice.rows is None or self._keeps_pace(step.writes[0], paces)

    def _keeps_pace(self, result: int, paces: tuple[Pace, ...]) -> bool:
        """Note the rate of each tensor's rows, relative to the first result's.

        Returns False if two rates disagree.
        """
        for pace in paces:
            if result not in self._rates and pace.tensor in self._rates:
                over, under = self._rates[pace.tensor]
                self._rate(result, _reduce(over * pace.runs, under * pace.rises))
        for pace in paces:
            over, under = self._rates[result]
            if not self._rate(pace.tensor, _reduce(over * pace.rises, under * pace.runs)):
                return False
        return True

    def _rate(self, tensor: int, rate: Rate) -> bool:
        """Set the rate of a tensor's rows; False if it has another."""
        known = self._rates.get(tensor)
        if known is None:
            self._rates[tensor] = rate
            self._periods = {}
        return known is None or known == rate

    def needs(self, choice: StepSplit, group: int) -> tuple[Pace, ...]:
        """List the rows a step needs of tensors made in the region, by groups of rows.

        Further steps do not change them.
        """
        step = self.program.steps[choice.step]
        if choice.rows is None:
            assert choice.operand is not None
            return (Pace(step.reads[choice.operand], 1, 1, 0, 1),)
        found = []
        for operand, follows in choice.rows.operands:
            if step.reads[operand] in self._made:
                slope, low, high = follows.pace(group)
                if group == 1 and choice.taps is not None:
                    low = high - choice.taps.width
                found.append(Pace(step.reads[operand], slope.numerator, slope.denominator, low, high))
        return tuple(found)

    def _taps(self, step: Step, rows: Rows) -> RowTaps | None:
        """Return how a step accumulates its rows; None if it takes them at once, which needs no more memory."""
        if not rows.taps:
            return None
        ((operand, follows),) = rows.operands
        tensor, result = self.program.tensors[step.reads[operand]], self.program.tensors[step.writes[0]]
        if (
            step.reads[operand] not in self._made
            or self._readers[step.reads[operand]] > 1
            or self.is_kept(step.reads[operand])
        ):
            return None
        slope, low, high = follows.pace(1)
        parts = [each.pace(1) for each in rows.taps]
        if any(each[0] != slope for each in parts) or [each[2] for each in parts] != sorted(each[2] for each in parts):
            return None
        found = RowTaps(
            step.reads[operand], max(each[2] - each[1] for each in parts), tuple(high - each[2] for each in parts)
        )
        fewer = (high - low - found.width) * tensor.nbytes // tensor.shape[follows.axis]
        more, row = found.early[0] / slope, result.nbytes // rows.extent
        # rows begun early: at most one more for a reader that lags by part of a row
        return found if fewer > math.floor(more) * row and fewer >= math.ceil(more) * row else None

    def is_kept(self, tensor: int) -> bool:
        """Return whether later steps, the caller, or a view need a tensor made here."""
        return self._needed_last.get(tensor, 0) > self.last

    def _by_rows(
        self, number: int, splits: Splits, inside: list[tuple[int, int]], result: int | None
    ) -> StepSplit | None:
        step = self.program.steps[number]
        for rows in splits.rows:
            if result is not None and rows.axis != result:
                continue
            axes = self._axes_by(rows, inside)
            if axes is not None:
                self._axes.update(axes)
                self._axes[step.writes[0]] = rows.axis
                return StepSplit(number, rows.axis, rows.extent, rows, taps=self._taps(step, rows))
        return None

    def _axes_by(self, rows: Rows, inside: list[tuple[int, int]]) -> dict[int, int] | None:
        """Return the axis along which each operand made here follows; None if one does not, or has another."""
        axes: dict[int, int] = {}
        for operand, tensor in inside:
            follows = rows.follows(operand)
            if follows is None or self._axes.get(tensor, follows.axis) != follows.axis:
                return None
            if axes.setdefault(tensor, follows.axis) != follows.axis:
                return None
        return axes

    def _by_sum(
        self, number: int, splits: Splits, inside: list[tuple[int, int]], result: int | None
    ) -> StepSplit | None:
        if result is not None or len(inside) != 1:
            return None
        ((operand, tensor),) = inside
        step = self.program.steps[number]
        if (operand, self._axes[tensor]) not in splits.sums:
            return None
        axis = self._axes[tensor]
        self._sums.add(step.writes[0])
        return StepSplit(number, axis, self.program.tensors[tensor].shape[axis], operand=operand)

    def period(self, tensor: int) -> int:
        """Return the ticks between two groups of a tensor's rows: whole numbers for all, without a common divisor."""
        if not self._periods:
            rates = set(self._rates.values())
            unit = math.lcm(*(over for over, _ in rates))
            ticks = {(over, under): unit // over * under for over, under in rates}
            common = math.gcd(*ticks.values())
            self._periods = {rate: each // common for rate, each in ticks.items()}
        return self._periods[self._rates[tensor]]


def _reduce(over: int, under: int) -> Rate:
    """Return a rate without a common divisor."""
    common = math.gcd(over, under)
    return over // common, under // common
