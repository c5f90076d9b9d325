"""Grow a streaming region step by step: the axis of each step, and the rates of its tensors' rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ...program import Program, Rows, Splits

#: most steps of branches that wait to be joined
BRANCH = 8


@dataclass(frozen=True)
class Need:
    """Rows of `tensor` a reader needs: groups floor(slope · v) + low up to floor(slope · v) + high for group v."""

    tensor: int
    slope: Fraction
    low: int
    high: int


@dataclass(frozen=True)
class StepSplit:
    """Role of a step in a region: by the `rows` of its result, or summing up rows of an `operand`."""

    step: int
    axis: int
    extent: int
    rows: Rows | None = None
    operand: int | None = None


def last_needs(program: Program) -> dict[int, int]:
    """Return the last step that reads each tensor.

    Tensors for the caller, and sources of views, have the number after the last step.
    """
    found = {tensor: number for number, step in enumerate(program.steps) for tensor in step.reads}
    for tensor in (*(port.tensor for port in program.outputs), *(view.source for view in program.views)):
        found[tensor] = len(program.steps)
    return found


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
        self._rates: dict[int, Fraction] = {tensor: Fraction(1) for tensor in program.steps[first].writes}
        self.waiting: list[int] = []
        self._needs: dict[tuple[int, int], list[Need]] = {}
        #: bytes of the rows a reader needs at once, by tensor read here
        self._least: dict[int, int] = {}

    def grow(self) -> bool:
        """Take in the next step; False where no region with it is possible, however it grows."""
        self.last += 1
        step = self.program.steps[self.last]
        inside = [t for t in step.reads if self.program.tensors[t].buffer in self._buffers]
        if len(step.writes) != 1 or any(t not in self._made for t in inside):
            return False  # it reads a view of a result made here
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
        for need in self.needs(choice, 1):
            tensor = self.program.tensors[need.tensor]
            extent = tensor.shape[self._axes[need.tensor]]
            nbytes = tensor.nbytes // extent * min(need.high - need.low, extent)
            self._least[need.tensor] = max(self._least.get(need.tensor, 0), nbytes)
        return self._keeps_pace(choice)

    def _keeps_pace(self, choice: StepSplit) -> bool:
        """Note the rate of each tensor's rows, relative to the first result's.

        Returns False if two rates disagree.
        """
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
        """List the rows a step needs of tensors made in the region.

        Further steps do not change them.
        """
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
        """Collect the tensors made here that later steps, the caller, or a view need."""
        return frozenset(tensor for tensor in self._made if self._needed_last.get(tensor, 0) > self.last)

    def least_bytes(self) -> int:
        """Return a lower bound on the bytes of the rings, for any alignment."""
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
        """Return the ticks between two groups of each tensor's rows."""
        unit = math.lcm(*(rate.numerator for rate in self._rates.values()))
        periods = {tensor: unit // rate.numerator * rate.denominator for tensor, rate in self._rates.items()}
        least = math.gcd(*periods.values())
        return {tensor: period // least for tensor, period in periods.items()}
