"""Below the floor of one kernel: which steps to run as one, a few rows or channels at a time, and which to run again.

    cut or not ─► order ─► repeats ─► the path whose fullest edge is least ─► what turns out not to be needed goes

Everything is judged on programs without kernels: what is joined is made only for the footprint of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..graph import Program, Splits
from ..kernels.cutting import cut_sums
from ..kernels.lowering import Lowered
from ..kernels.splits import splits_of
from ..memory import CHEAP_ORDERS
from ..memory.rematerialise import Repeat, best_repeats, repeated, work_of
from ..memory.segments import Paths, Segment, all_joined, best_segments
from ..passes.base import ModulePass, SplitPass
from ..passes.cut_sums import CutSums
from ..passes.order import Order
from ..passes.rematerialise import Rematerialise
from ..passes.sequence import specs_of
from ..passes.split import CHANNELS, SplitChannels, SplitRows
from .evaluation import Evaluation, Evaluator
from .scoring import Arrangement, arrangements

#: candidates that are looked at in parts
CANDIDATES = 3


class Splitter:
    """Looks at the candidates of one search in parts; what it finds for one it remembers."""

    def __init__(self, evaluator: Evaluator):
        self._evaluator = evaluator
        self._forms: dict[int, tuple[_Form, ...]] = {}
        self._known: dict[tuple[int, Arrangement], Way] = {}

    def ways(self, found: Evaluation) -> tuple[Way, ...]:
        """The best segments of the kernels of `found` in each order worth a look, as they are and cut."""
        return tuple(self._ways(found, [Order(by=name) for name in CHEAP_ORDERS]))

    def most_promising(self, found: Evaluation, others: Iterable[Evaluation]) -> Evaluation:
        """Of `found` and the first few others, the one whose segments, before memory is planned, need least.

        What is best with whole kernels need not be best in parts: wider fusion saves tensors that parts never hold.
        Each stays in its own order: all orders of each would take long.
        """
        different = {each.key: each for each in (found, *others)}

        def least(each: Evaluation) -> int:
            assert each.footprint is not None
            return min(way.nbytes for way in self._ways(each, ())) + each.footprint.ram - each.footprint.arena

        return min(list(different.values())[:CANDIDATES], key=least)

    def evaluations(self, found: Evaluation, way: Way) -> list[Evaluation]:
        """The module passes of `found`, then this way with no more segments than it needs; memory shared in the two
        most promising ways. Where one fails, it has no footprint."""
        way = _as_few_as_needed(way)
        return [self._evaluator.arranged(found, (*way.passes, *after)) for _, after, _ in way.arrangements[:2]]

    def rungs(self, way: Way, fractions: Iterable[float]) -> list[Way]:
        """Ways between this one and whole kernels, which join less and more rows at a time: a fraction of 0.1 allows a
        tenth of the bytes between the two."""
        paths = Paths(way.repeated, way.splits, way.alignment)
        whole = max(paths.alone, default=way.nbytes)
        found: dict[tuple[Segment, ...], Way] = {}
        for fraction in fractions:
            path = paths.coarser(paths.within(way.nbytes + int(fraction * (whole - way.nbytes))))
            if path.segments and path.segments != way.segments:
                found.setdefault(path.segments, replace(way, segments=path.segments, nbytes=path.nbytes))
        return list(found.values())

    def _ways(self, found: Evaluation, others: Iterable[Order]) -> Iterator[Way]:
        """In the order of `found`, and in others; the kernels as they are, and cut."""
        last, key, alignment = found.passes[-1], found.key, self._evaluator.target.alignment
        assert isinstance(last, Order)
        for form in self._forms_of(found, key):
            seen = set()
            for order in (last, *others):
                numbers = order.numbers(form.program)
                if numbers in seen:
                    continue
                seen.add(numbers)
                before = (*form.cut, order)
                if (key, before) not in self._known:
                    ordered = form.program.reordered(numbers)
                    path = best_segments(ordered, form.splits, alignment)
                    way = Way(before, ordered, form.splits, alignment, segments=path.segments, nbytes=path.nbytes)
                    self._known[key, before] = way
                yield self._known[key, before]

    def _forms_of(self, found: Evaluation, key: int) -> tuple[_Form, ...]:
        """The program of `found` with its kernels as they are, and cut."""
        if key not in self._forms:
            specs = specs_of(each for each in found.passes if isinstance(each, ModulePass))
            lowered = self._evaluator.scorer.lowered(specs)
            self._forms[key] = (self._form((), lowered), self._form((CutSums(),), cut_sums(lowered)))
        return self._forms[key]

    def _form(self, cut: Arrangement, lowered: Lowered) -> _Form:
        return _Form(cut, self._evaluator.scorer.planned(lowered)[0].program, splits_of(lowered))


@dataclass(frozen=True)
class _Form:
    """A program after the passes `cut`, and how its kernels can run in parts."""

    cut: Arrangement
    program: Program
    splits: Mapping[str, Splits]


def lowest(ways: Iterable[Way], extra_compute: float = 0.0) -> Way:
    """The way with the least bound, where there may be more arithmetic by this fraction of what there is."""
    ways = tuple(ways)
    # how memory is shared takes longest: only for those that need least before it is
    best = min(sorted(ways, key=lambda way: way.nbytes)[:2], key=lambda way: way.bound)
    if extra_compute > 0:
        repeating = [_repeating(way, extra_compute) for way in _different(ways)]
        best = min(best, *repeating, key=lambda way: way.bound)
        best = replace(best, refused=any(way.refused for way in repeating))
    return best


@dataclass(frozen=True)
class Way:
    """A program, cut and ordered by `before`; the repeats that follow, and the segments that run as one after them."""

    before: Arrangement
    program: Program
    splits: Mapping[str, Splits]
    alignment: int
    repeats: tuple[Repeat, ...] = ()
    segments: tuple[Segment, ...] = ()
    #: alive at the fullest step before memory is shared
    nbytes: int = 0
    #: repeats were left out for the arithmetic they take
    refused: bool = False

    @cached_property
    def repeated(self) -> Program:
        program = self.program
        for each in self.repeats:
            program = repeated(program, each)
        return program

    @cached_property
    def arrangements(self) -> list[tuple[int, Arrangement, Program]]:
        """How memory is shared then, the lowest bound first."""
        return arrangements(all_joined(self.repeated, self.splits, self.segments, self.alignment), self.alignment)

    @property
    def bound(self) -> int:
        return self.arrangements[0][0]

    @property
    def unavoidable(self) -> int:
        """What the inputs of the model alone take, or its outputs, in bytes."""
        return Paths(self.program, self.splits, self.alignment).unavoidable

    @property
    def extra_compute(self) -> float:
        """What is run again, as a fraction of the arithmetic there is."""
        return work_of(self.repeated, self.splits) / work_of(self.program, self.splits) - 1 if self.repeats else 0.0

    @property
    def passes(self) -> Arrangement:
        """The last segment first, so that the numbers of the others stay."""
        repeats = (Rematerialise("+".join(map(str, each.steps)), each.before) for each in self.repeats)
        return (*self.before, *repeats, *(_pass(self.repeated, segment) for segment in reversed(self.segments)))


def _different(ways: Iterable[Way]) -> Iterator[Way]:
    """The best order of the kernels as they are, and of those that are cut."""
    for cut in (False, True):
        of_kind = [way for way in ways if (CutSums() in way.before) == cut]
        if not cut or _kernels(of_kind[0]) != _kernels(ways[0]):
            yield min(of_kind, key=lambda way: way.nbytes)


def _kernels(way: Way) -> set[str]:
    return {step.kernel for step in way.program.steps}


def _repeating(way: Way, extra_compute: float) -> Way:
    work = int(extra_compute * work_of(way.program, way.splits))
    found = best_repeats(way.program, way.splits, work, way.alignment)
    path = found.path
    return replace(way, repeats=found.repeats, segments=path.segments, nbytes=path.nbytes, refused=found.refused)


def _as_few_as_needed(way: Way) -> Way:
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
