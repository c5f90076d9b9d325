"""Below the floor of one kernel: which steps to run as one, a few rows or channels at a time.

    order of the steps ──► the path whose fullest edge is least ──► joins that turn out not to be needed go again

Everything is judged on programs without kernels: what is joined is made only for the footprint of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..graph import Program, Splits
from ..kernels.cutting import cut_sums
from ..kernels.lowering import Lowered, without_workspaces
from ..kernels.splits import splits_of
from ..memory import orders
from ..memory.bands import joined, region
from ..memory.segments import Segment, best_segments
from ..passes.base import ModulePass, SplitPass
from ..passes.cut_sums import CutSums
from ..passes.order import Order
from ..passes.sequence import specs_of
from ..passes.split import CHANNELS, SplitChannels, SplitRows
from .evaluation import Evaluation, Evaluator
from .scoring import Arrangement, arrangements


@dataclass(frozen=True)
class _Way:
    """An order of a program's steps and the segments of it that run as one."""

    before: Arrangement
    order: Order
    program: Program
    splits: Mapping[str, Splits]
    segments: tuple[Segment, ...]
    alignment: int

    @cached_property
    def arrangements(self) -> list[tuple[int, Arrangement, Program]]:
        """How memory is shared then, the lowest bound first."""
        program = self.program
        for each in reversed(self.segments):
            found = region(program, self.splits, each.first, each.last, each.axis, each.group, self.alignment)
            assert found is not None
            program, _ = joined(program, found)
        return arrangements(program, self.alignment)

    @property
    def bound(self) -> int:
        return self.arrangements[0][0]

    def without(self, segment: Segment) -> _Way:
        kept = tuple(each for each in self.segments if each is not segment)
        return _Way(self.before, self.order, self.program, self.splits, kept, self.alignment)

    @property
    def passes(self) -> Arrangement:
        """The last segment first, so that the numbers of the others stay."""
        return (*self.before, self.order, *(_pass(self.program, segment) for segment in reversed(self.segments)))


def split(evaluator: Evaluator, found: Evaluation) -> Evaluation:
    """`found` with kernels joined and split where that lowers its ram, or as it was."""
    assert found.footprint is not None
    modules = tuple(each for each in found.passes if isinstance(each, ModulePass))
    lowered = evaluator.scorer.lowered(specs_of(modules))
    ways = [
        way
        for before, each in (((), lowered), ((CutSums(),), cut_sums(lowered)))
        for way in _ways(before, each, found, evaluator.target.alignment)
    ]
    best = min(ways, key=lambda way: way.bound)
    if not best.segments or best.bound >= found.footprint.arena:
        return found
    best = _as_few_as_needed(best)
    tried = [evaluator.with_arrangement(found, (*best.passes, *after)) for _, after, _ in best.arrangements[:2]]
    return min((found, *tried), key=lambda each: each.score)


def _ways(before: Arrangement, lowered: Lowered, found: Evaluation, alignment: int) -> Iterator[_Way]:
    """The best segments of each order worth a look: that of `found`, and those that cost next to nothing."""
    program, splits = without_workspaces(lowered)[0].program, splits_of(lowered)
    last = found.passes[-1]
    assert isinstance(last, Order)
    seen = set()
    for order in (last, *(Order(by=name) for name, _ in orders(program))):
        numbers = order.numbers(program)
        if numbers not in seen:
            seen.add(numbers)
            ordered = program.reordered(numbers)
            yield _Way(before, order, ordered, splits, best_segments(ordered, splits, alignment).segments, alignment)


def _as_few_as_needed(way: _Way) -> _Way:
    """Without the segments that are not needed once memory is shared, the longest tried first."""
    for segment in sorted(way.segments, key=lambda each: (each.first - each.last, each.first)):
        fewer = way.without(segment)
        if fewer.bound <= way.bound:
            way = fewer
    return way


def _pass(program: Program, segment: Segment) -> SplitPass:
    steps = f"{segment.first}-{segment.last}"
    shape = program.tensors[program.steps[segment.first].writes[0]].shape
    if segment.axis == CHANNELS and len(shape) > 2:
        return SplitChannels(steps, segment.group)
    return SplitRows(steps, segment.axis, segment.group)
