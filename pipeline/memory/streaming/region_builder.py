"""Steps that can run as one, row by row: by which axis each takes part, and how many rows of one go by with another's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ...program import Program, Rows, Splits

#: steps of branches that wait for one that joins them, at most
BRANCH = 8


@dataclass(frozen=True)
class Need:
    """A reader needs groups floor(slope · v) + low up to floor(slope · v) + high of `tensor` for its group v."""

    tensor: int
    slope: Fraction
    low: int
    high: int


@dataclass(frozen=True)
class StepSplit:
    """How a step takes part: by the `rows` of its result, or by those of an `operand`, which it sums up."""

    step: int
    axis: int
    extent: int
    rows: Rows | None = None
    operand: int | None = None


def last_needs(program: Program) -> dict[int, int]:
    """The last step that reads a tensor; one after all of them for the caller, and for views."""
    found = {tensor: number for number, step in enumerate(program.steps) for tensor in step.reads}
    for tensor in (*(port.tensor for port in program.outputs), *(view.source for view in program.views)):
        found[tensor] = len(program.steps)
    return found


class RegionBuilder:
    """Steps from `first` to `last` that run as one: none at first, then one more after the other.

    A step takes part by the axis its operands made here go by; one that begins a branch waits for a step that joins it.
    """

    def __init__(
        self, program: Program, splits: Mapping[str, Splits], first: int, axis: int, needed: Mapping[int, int]
    ):
        """`needed`: the last_needs of the program."""
        self.program, self.splits, self.first, self.last, self._needed_last = program, splits, first, first - 1, needed
        self._axes = {tensor: axis for tensor in program.steps[first].writes}
        self._made: set[int] = set()
        self._buffers: set[int | None] = set()
        self._sums: set[int] = set()
        self.choices: dict[int, StepSplit] = {}
        self._rates: dict[int, Fraction] = {tensor: Fraction(1) for tensor in program.steps[first].writes}
        self.waiting: list[int] = []
        self._needs: dict[tuple[int, int], list[Need]] = {}
        #: what the rows a reader needs at once take, of the tensors that are read here
        self._least: dict[int, int] = {}

    def grow(self) -> bool:
        """Take in the next step; False where no region with it is possible, however it grows."""
        self.last += 1
        step = self.program.steps[self.last]
        inside = [t for t in step.reads if self.program.tensors[t].buffer in self._buffers]
        if len(step.writes) != 1 or any(t not in self._made for t in inside):
            return False  # it reads a view of what is made here
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
        """Decide how a step takes part, where that is known by now; False where it cannot."""
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
        for need in self.needs(choice, 1):
            tensor = self.program.tensors[need.tensor]
            extent = tensor.shape[self._axes[need.tensor]]
            nbytes = tensor.nbytes // extent * min(need.high - need.low, extent)
            self._least[need.tensor] = max(self._least.get(need.tensor, 0), nbytes)
        return self._keeps_pace(choice)

    def _keeps_pace(self, choice: StepSplit) -> bool:
        """Note the rows of each tensor that go by while one of the first result's does; False where two disagree."""
        if choice.rows is None:
            return True
        result = self.program.steps[choice.step].writes[0]
        needs = self.needs(choice, 1)
        for need in needs:
            if result not in self._rates and need.tensor in self._rates:
                self._rates[result] = self._rates[need.tensor] / need.slope
        due = [(need.tensor, self._rates[result] * need.slope) for need in needs]
        return all(self._rates.setdefault(tensor, rate) == rate for tensor, rate in due)

    def needs(self, choice: StepSplit, group: int) -> list[Need]:
        """What a step needs of the tensors that are made in the region; further steps do not change it."""
        if (choice.step, group) not in self._needs:
            self._needs[choice.step, group] = list(self._needed(choice, group))
        return self._needs[choice.step, group]

    def _needed(self, choice: StepSplit, group: int) -> Iterator[Need]:
        step = self.program.steps[choice.step]
        if choice.rows is None:
            assert choice.operand is not None
            yield Need(step.reads[choice.operand], Fraction(1), 0, 1)
            return
        for operand, follows in choice.rows.operands:
            if step.reads[operand] in self._made:
                yield Need(step.reads[operand], *follows.pace(group))

    def kept(self) -> frozenset[int]:
        """The tensors made here that later steps, the caller, or a view need."""
        return frozenset(tensor for tensor in self._made if self._needed_last.get(tensor, 0) > self.last)

    def least_bytes(self) -> int:
        """No rings for the steps taken in take less, however they are aligned."""
        kept = self.kept()
        return sum(nbytes for tensor, nbytes in self._least.items() if tensor not in kept)

    def _by_rows(self, number: int, splits: Splits, inside: list[tuple[int, int]], result: int | None) -> StepSplit | None:
        step = self.program.steps[number]
        for rows in splits.rows:
            if result is not None and rows.axis != result:
                continue
            follows = [(t, rows.follows(n)) for n, t in inside]
            axes = {t: each.axis for t, each in follows if each is not None}
            if all(each is not None and self._axes.get(t, axes[t]) == axes[t] == each.axis for t, each in follows):
                self._axes.update(axes)
                self._axes[step.writes[0]] = rows.axis
                return StepSplit(number, rows.axis, rows.extent, rows)
        return None

    def _by_sum(self, number: int, splits: Splits, inside: list[tuple[int, int]], result: int | None) -> StepSplit | None:
        if result is not None or len(inside) != 1:
            return None
        ((operand, tensor),) = inside
        step = self.program.steps[number]
        if (operand, self._axes[tensor]) not in splits.sums:
            return None
        axis = self._axes[tensor]
        self._sums.add(step.writes[0])
        return StepSplit(number, axis, self.program.tensors[tensor].shape[axis], operand=operand)

    def periods(self) -> dict[int, int]:
        """The ticks from a group of each tensor's rows to the next."""
        unit = math.lcm(*(rate.numerator for rate in self._rates.values()))
        periods = {tensor: unit // rate.numerator * rate.denominator for tensor, rate in self._rates.items()}
        least = math.gcd(*periods.values())
        return {tensor: period // least for tensor, period in periods.items()}
