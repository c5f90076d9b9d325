"""Below the floor of one kernel: which steps to run as one, a few rows or channels at a time, and which to run again.

    cut or not ─► order ─► repeats ─► the path whose fullest edge is least ─► what turns out not to be needed goes

Everything is judged on programs without kernels: what is joined is made only for the footprint of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..graph import Program, Splits
from ..kernels.cutting import cut_sums
from ..kernels.lowering import Lowered, without_workspaces
from ..kernels.splits import splits_of
from ..memory import orders
from ..memory.bands import joined, region
from ..memory.rematerialise import Repeat, best_repeats, repeated, work_of
from ..memory.segments import Segment, best_segments
from ..passes.base import ModulePass, SplitPass
from ..passes.cut_sums import CutSums
from ..passes.order import Order
from ..passes.rematerialise import Rematerialise
from ..passes.sequence import specs_of
from ..passes.split import CHANNELS, SplitChannels, SplitRows
from .evaluation import Evaluation, Evaluator
from .scoring import Arrangement, arrangements


def split(evaluator: Evaluator, found: Evaluation, extra_compute: float) -> Evaluation:
    """`found` with kernels joined, split and run again where that lowers its ram, or as it was.

    `extra_compute` is how much more arithmetic there may be, as a fraction of what there is.
    """
    assert found.footprint is not None
    modules = tuple(each for each in found.passes if isinstance(each, ModulePass))
    lowered = evaluator.scorer.lowered(specs_of(modules))
    alignment = evaluator.target.alignment
    ways = [*_ways((), lowered, found, alignment), *_ways((CutSums(),), cut_sums(lowered), found, alignment)]
    plain = min(ways, key=lambda way: way.bound)
    best = min(plain, *(_repeating(way, extra_compute) for way in _different(ways)), key=lambda way: way.bound)
    if best.bound >= found.footprint.arena:
        return found
    best = _as_few_as_needed(best)
    tried = [evaluator.with_arrangement(found, (*best.passes, *after)) for _, after, _ in best.arrangements[:2]]
    return min((found, *tried), key=lambda each: each.score)


@dataclass(frozen=True)
class _Way:
    """A program, cut and ordered by `before`; the repeats that follow, and the segments that run as one after them."""

    before: Arrangement
    program: Program
    splits: Mapping[str, Splits]
    alignment: int
    repeats: tuple[Repeat, ...] = ()
    segments: tuple[Segment, ...] = ()

    @cached_property
    def repeated(self) -> Program:
        program = self.program
        for each in self.repeats:
            program = repeated(program, each)
        return program

    @cached_property
    def arrangements(self) -> list[tuple[int, Arrangement, Program]]:
        """How memory is shared then, the lowest bound first."""
        program = self.repeated
        for each in reversed(self.segments):
            found = region(program, self.splits, each.first, each.last, each.axis, each.group, self.alignment)
            assert found is not None
            program, _ = joined(program, found)
        return arrangements(program, self.alignment)

    @property
    def bound(self) -> int:
        return self.arrangements[0][0]

    @property
    def passes(self) -> Arrangement:
        """The last segment first, so that the numbers of the others stay."""
        repeats = (Rematerialise("+".join(map(str, each.steps)), each.before) for each in self.repeats)
        return (*self.before, *repeats, *(_pass(self.repeated, segment) for segment in reversed(self.segments)))


def _ways(cut: Arrangement, lowered: Lowered, found: Evaluation, alignment: int) -> Iterator[_Way]:
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
            segments = best_segments(ordered, splits, alignment).segments
            yield _Way((*cut, order), ordered, splits, alignment, segments=segments)


def _different(ways: list[_Way]) -> Iterator[_Way]:
    """The best order of the kernels as they are, and of those that are cut."""
    for cut in (False, True):
        of_kind = [way for way in ways if (CutSums() in way.before) == cut]
        if not cut or {each.kernel for each in of_kind[0].program.steps} != {each.kernel for each in ways[0].program.steps}:
            yield min(of_kind, key=lambda way: way.bound)


def _repeating(way: _Way, extra_compute: float) -> _Way:
    work = int(extra_compute * work_of(way.program, way.splits))
    found = best_repeats(way.program, way.splits, work, way.alignment)
    return replace(way, repeats=found.repeats, segments=found.path.segments)


def _as_few_as_needed(way: _Way) -> _Way:
    """Without the segments that are not needed once memory is shared, the longest tried first."""
    for segment in sorted(way.segments, key=lambda each: (each.first - each.last, each.first)):
        fewer = replace(way, segments=tuple(each for each in way.segments if each is not segment))
        if fewer.bound <= way.bound:
            way = fewer
    return way


def _pass(program: Program, segment: Segment) -> SplitPass:
    steps = f"{segment.first}-{segment.last}"
    shape = program.tensors[program.steps[segment.first].writes[0]].shape
    if segment.axis == CHANNELS and len(shape) > 2:
        return SplitChannels(steps, segment.group)
    return SplitRows(steps, segment.axis, segment.group)
