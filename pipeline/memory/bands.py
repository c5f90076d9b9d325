"""Several steps run as one, row by row: of the tensors between them a few rows exist at a time, in a ring.

    tick    0   1   2   3   4   5   6
    step 1  r0  r1  r2  r3  r4  r5  r6        a row at each tick
    step 2          r0      r1      r2        every second tick, from three rows of step 1, the last just computed
    ring    0   01  012 123 234 345 456

Nothing is computed twice: what a row has in common with the one before it is kept. The idea is that of line buffers in
hardware, and of msf-CNN's fused blocks with a cache. Rows may be lines of an image, or its channels, which a convolution
at the end takes into its sum (partial execution, as in Pex).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from ..graph import Buffer, Program, Rows, Splits, Step
from .liveness import ALIGNMENT, aligned

#: how many rows of an operand a row of a result may stand for, or the other way round
_PACES = tuple(Fraction(n) for n in range(1, 9)) + tuple(Fraction(1, n) for n in range(2, 9))
#: steps of branches that wait for one that joins them, at most
BRANCH = 8


@dataclass(frozen=True)
class Stage:
    """One step of a region: at tick `offset` + k · `period` it computes rows k · group up to (k + 1) · group of its
    result, of `extent` along `axis`. `held` are the rows there is room for: all where the result is needed whole.

    A stage that sums up takes these rows of its `operand` instead, of which `axis` and `extent` are; `held` is 0.
    """

    step: int
    axis: int
    extent: int
    group: int
    period: int
    offset: int
    held: int
    operand: int | None = None

    @property
    def end(self) -> int:
        """The tick after its last."""
        return self.offset + (self.extent // self.group - 1) * self.period + 1


@dataclass(frozen=True)
class Region:
    """Steps that run as one. `rings` are the tensors that are never whole, and `nbytes` what their rings take, each
    aligned; `results` are those that others need."""

    stages: tuple[Stage, ...]
    rings: tuple[int, ...]
    results: tuple[int, ...]
    nbytes: int

    @property
    def ticks(self) -> range:
        return range(min(stage.offset for stage in self.stages), max(stage.end for stage in self.stages))


def region(
    program: Program,
    splits: Mapping[str, Splits],
    first: int,
    last: int,
    axis: int,
    group: int = 1,
    alignment: int = ALIGNMENT,
) -> Region | None:
    """Steps `first` to `last`, included, as one; None where they cannot be. `splits` are those of each kernel.

    The rows are those of the first step's result along `axis`, computed `group` at a time, which must divide them all.
    """
    growth = Growth(program, splits, first, axis)
    while growth.last < last:
        if not growth.grow():
            return None
    return growth.region(group, alignment)


@dataclass(frozen=True)
class _Choice:
    """How a step takes part: by the `rows` of its result, or by those of an `operand`, which it sums up."""

    step: int
    axis: int
    extent: int
    rows: Rows | None = None
    operand: int | None = None


class Growth:
    """Steps from `first` to `last` that run as one: none at first, then one more after the other.

    A step takes part by the axis its operands made here go by; one that begins a branch waits for a step that joins it.
    """

    def __init__(self, program: Program, splits: Mapping[str, Splits], first: int, axis: int):
        self.program, self.splits, self.first, self.last = program, splits, first, first - 1
        self._axes = {tensor: axis for tensor in program.steps[first].writes}
        self._made: set[int] = set()
        self._buffers: set[int | None] = set()
        self._sums: set[int] = set()
        self._choices: dict[int, _Choice] = {}
        self._rates: dict[int, Fraction] = {tensor: Fraction(1) for tensor in program.steps[first].writes}
        self._waiting: list[int] = []

    def grow(self) -> bool:
        """Take in the next step; False where no region with it is possible, however it grows."""
        self.last += 1
        step = self.program.steps[self.last]
        inside = [t for t in step.reads if self.program.tensors[t].buffer in self._buffers]
        if len(step.writes) != 1 or any(t not in self._made for t in inside):
            return False  # it reads a view of what is made here
        self._made.add(step.writes[0])
        self._buffers.add(self.program.tensors[step.writes[0]].buffer)
        self._waiting.append(self.last)
        before = None
        while before != len(self._waiting):
            before = len(self._waiting)
            if not all(self._settle(number) for number in tuple(self._waiting)):
                return False
        return len(self._waiting) <= BRANCH

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
        self._waiting.remove(number)
        self._choices[number] = choice
        return self._keeps_pace(choice)

    def _keeps_pace(self, choice: _Choice) -> bool:
        """Note the rows of each tensor that go by while one of the first result's does; False where two disagree."""
        if choice.rows is None:
            return True
        result = self.program.steps[choice.step].writes[0]
        needs = self._needs(choice, 1)
        for need in needs:
            if result not in self._rates and need.tensor in self._rates:
                self._rates[result] = self._rates[need.tensor] / need.slope
        due = [(need.tensor, self._rates[result] * need.slope) for need in needs]
        return all(self._rates.setdefault(tensor, rate) == rate for tensor, rate in due)

    def _needs(self, choice: _Choice, group: int) -> list[_Need]:
        """What a step needs of the tensors that are made in the region."""
        step = self.program.steps[choice.step]
        if choice.rows is None:
            assert choice.operand is not None
            return [_Need(step.reads[choice.operand], Fraction(1), 0, 1)]
        found = [(step.reads[operand], follows) for operand, follows in choice.rows.operands]
        return [_Need(tensor, *follows.pace(group)) for tensor, follows in found if tensor in self._made]

    def _by_rows(self, number: int, splits: Splits, inside: list[tuple[int, int]], result: int | None) -> _Choice | None:
        step = self.program.steps[number]
        for rows in splits.rows:
            if result is not None and rows.axis != result:
                continue
            follows = [(t, rows.follows(n)) for n, t in inside]
            axes = {t: each.axis for t, each in follows if each is not None}
            if all(each is not None and self._axes.get(t, axes[t]) == axes[t] == each.axis for t, each in follows):
                self._axes.update(axes)
                self._axes[step.writes[0]] = rows.axis
                return _Choice(number, rows.axis, rows.extent, rows)
        return None

    def _by_sum(self, number: int, splits: Splits, inside: list[tuple[int, int]], result: int | None) -> _Choice | None:
        if result is not None or len(inside) != 1:
            return None
        ((operand, tensor),) = inside
        step = self.program.steps[number]
        if (operand, self._axes[tensor]) not in splits.sums:
            return None
        axis = self._axes[tensor]
        self._sums.add(step.writes[0])
        return _Choice(number, axis, self.program.tensors[tensor].shape[axis], operand=operand)

    def region(self, group: int = 1, alignment: int = ALIGNMENT) -> Region | None:
        """The steps taken in, as one; None where a branch is not joined yet, or the rows do not go together."""
        program = self.program
        chosen = [self._choices[number] for number in sorted(self._choices)]
        if self._waiting or any(choice.extent % group for choice in chosen):
            return None
        periods = self._periods()
        needs = [self._needs(choice, group) for choice in chosen]
        paces = [self._needs(choice, 1) for choice in chosen]
        if [[need.slope for need in of] for of in needs] != [[need.slope for need in of] for of in paces]:
            return None  # groups of rows go by at another pace than rows do
        needed = _needed_outside(program, self.first, self.last)
        stages = _stages(program, list(zip(chosen, needs)), periods, needed, group)
        writes = [program.steps[stage.step].writes[0] for stage in stages]
        rings = {t: stage for t, stage in zip(writes, stages) if stage.operand is None and t not in needed}
        held = [program.tensors[t].nbytes // stage.extent * stage.held for t, stage in rings.items()]
        nbytes = sum(aligned(each, alignment) for each in held)
        return Region(stages, tuple(rings), tuple(t for t in writes if t not in rings), nbytes)

    def _periods(self) -> dict[int, int]:
        """The ticks from a group of each tensor's rows to the next."""
        unit = math.lcm(*(rate.numerator for rate in self._rates.values()))
        periods = {tensor: unit // rate.numerator * rate.denominator for tensor, rate in self._rates.items()}
        least = math.gcd(*periods.values())
        return {tensor: period // least for tensor, period in periods.items()}


@dataclass(frozen=True)
class _Need:
    """A reader needs groups floor(slope · v) + low up to floor(slope · v) + high of `tensor` for its group v."""

    tensor: int
    slope: Fraction
    low: int
    high: int


def _stages(
    program: Program,
    chosen: list[tuple[_Choice, list[_Need]]],
    periods: dict[int, int],
    needed: frozenset[int],
    group: int,
) -> tuple[Stage, ...]:
    """The stages with when they run, as late as their readers allow, and what their rings hold."""
    readers: dict[int, list[tuple[_Need, int]]] = {tensor: [] for tensor in periods}
    stages = []
    for choice, needs in reversed(chosen):
        step = program.steps[choice.step]
        tensor = step.writes[0]
        if choice.rows is None:
            assert choice.operand is not None
            period = periods[step.reads[choice.operand]]
            stage = Stage(choice.step, choice.axis, choice.extent, group, period, 0, 0, choice.operand)
        else:
            period = periods[tensor]
            offset = min((at - period * (need.high - 1) for need, at in readers[tensor]), default=0)
            held = max((_held(need, Fraction(at - offset, period)) for need, at in readers[tensor]), default=1) * group
            whole = tensor in needed or held > choice.extent
            stage = Stage(choice.step, choice.axis, choice.extent, group, period, offset, choice.extent if whole else held)
        for need in needs:
            readers[need.tensor].append((need, stage.offset))
        stages.append(stage)
    return tuple(reversed(stages))


def _held(need: _Need, lead: Fraction) -> int:
    """How many groups there must be room for, where the writer is `lead` groups ahead of a reader."""
    ahead = math.floor(lead) if need.slope.denominator == 1 else math.ceil(lead)
    return ahead - need.low + 1


def _needed_outside(program: Program, first: int, last: int) -> frozenset[int]:
    """The tensors steps `first` to `last` write that other steps, the caller, or a view need."""
    writes = {program.steps[number].writes[0] for number in range(first, last + 1)}
    readers = [step for number, step in enumerate(program.steps) if not first <= number <= last]
    read = {tensor for step in readers for tensor in step.reads} | {port.tensor for port in program.outputs}
    read |= {view.source for view in program.views}
    return frozenset(writes & read)


def joined(program: Program, region: Region) -> tuple[Program, Step]:
    """`program` with the steps of the region as one, where the last of them was; and that step.

    It writes the results, then the rings, which nobody reads: they need a place while it runs, and none after.
    """
    inside = {stage.step for stage in region.stages}
    steps = [program.steps[number] for number in sorted(inside)]
    results = (*region.results, *region.rings)
    reads = tuple(dict.fromkeys(t for step in steps for t in step.reads if t not in results))
    taken = {step.kernel for step in program.steps}
    name = f"banded_{steps[0].kernel}"
    while name in taken:
        name += "_"
    step = Step(name, reads, results, tuple(dict.fromkeys(node for each in steps for node in each.nodes)))
    last = max(inside)
    kept = (step if n == last else each for n, each in enumerate(program.steps) if n == last or n not in inside)
    tensors, buffers = list(program.tensors), list(program.buffers)
    for stage in region.stages:
        tensor = program.steps[stage.step].writes[0]
        if tensor in region.rings:
            shape = tuple(stage.held if n == stage.axis else e for n, e in enumerate(tensors[tensor].shape))
            tensors[tensor] = ring = replace(tensors[tensor], shape=shape)
            buffers[ring.buffer] = Buffer(buffers[ring.buffer].name, ring.nbytes)
    return replace(program, steps=tuple(kept), tensors=tuple(tensors), buffers=tuple(buffers)), step
