"""Below the floor of one kernel: which steps to run as one, a few rows or channels at a time, and which to run again.

    cut or not ─► order ─► repeats ─► the path whose fullest edge is least ─► what turns out not to be needed goes

Everything is judged on programs without kernels: what is joined is made only for the footprint of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

from ..graph import Program, Splits
from ..memory import CHEAP_ORDERS
from ..memory.rematerialise import TRIED_STEPS, Repeat, best_repeats, repeated, work_of
from ..memory.segments import Path, Paths, Segment, all_joined, best_segments
from ..passes.base import SplitPass
from ..passes.cut_sums import CutSums
from ..passes.order import Order
from ..passes.rematerialise import Rematerialise
from ..passes.sequence import specs_of
from ..passes.split import CHANNELS, SplitChannels, SplitRows
from .evaluation import Evaluation, Evaluator
from .scoring import Arrangement, Errand, Scorer, Specs, arrangements

#: candidates that are looked at in parts
CANDIDATES = 3


class Splitter:
    """Looks at the candidates of one search in parts; what it finds for one it remembers."""

    def __init__(self, evaluator: Evaluator):
        self._evaluator = evaluator
        #: by state, whether sums are cut, and order
        self._paths: dict[tuple[int, Arrangement], Path] = {}
        self._repeating: dict[tuple[Arrangement, Program, float], Way] = {}

    def ways(self, found: Evaluation) -> tuple[Way, ...]:
        """The best segments of the kernels of `found` in each order worth a look, as they are and cut."""
        (ways,) = self._ways([found], [Order(by=name) for name in CHEAP_ORDERS])
        return ways

    def most_promising(self, found: Evaluation, others: Iterable[Evaluation]) -> Evaluation:
        """Of `found` and the first few others, the one whose segments, before memory is planned, need least.

        What is best with whole kernels need not be best in parts: wider fusion saves tensors that parts never hold.
        Each stays in its own order: all orders of each would take long.
        """
        different = list({each.key: each for each in (found, *others)}.values())[:CANDIDATES]

        def least(looked_at: tuple[Evaluation, tuple[Way, ...]]) -> int:
            each, ways = looked_at
            assert each.footprint is not None
            return min(way.nbytes for way in ways) + each.footprint.ram - each.footprint.arena

        return min(zip(different, self._ways(different)), key=least)[0]

    def look_ahead(self, found: Evaluation, ways: Iterable[Way], extra_compute: float, arena: int) -> None:
        """Work out at once what `lowest` with so much extra arithmetic will be asked for, and the `evaluations` of the
        lowest way without any, where its arena may be below `arena`."""
        way = lowest(ways)
        arranged = [(found, each) for each in way.shared] if way.bound < arena else []
        self._repeat(found, ways, extra_compute, arranged)

    def lowest(self, found: Evaluation, ways: Iterable[Way], extra_compute: float, steps: int = TRIED_STEPS) -> Way:
        """The way with the least bound, where there may be more arithmetic by this fraction of what there is; `steps` as
        in memory.rematerialise."""
        repeating = self._repeat(found, ways, extra_compute, steps=steps)
        best = min([lowest(ways), *repeating], key=lambda way: way.bound)
        return replace(best, refused=any(way.refused for way in repeating))

    def _repeat(
        self,
        found: Evaluation,
        ways: Iterable[Way],
        extra_compute: float,
        then: Iterable[tuple[Evaluation, Arrangement]] = (),
        steps: int = TRIED_STEPS,
    ) -> list[Way]:
        """The different ways, with repeats that take no more than this fraction of the arithmetic there is."""
        if extra_compute <= 0:
            return []
        asked = {(way.before, way.program, extra_compute): way for way in _different(ways)}
        new = {place: way for place, way in asked.items() if place not in self._repeating}
        specs = specs_of(found.module_passes)
        repeats = partial(_with_repeats, extra_compute=extra_compute, steps=steps)
        errands = [Errand(specs, partial(repeats, way=way)) for way in new.values()]
        self._repeating |= zip(new, self._evaluator.run(errands, then))
        return [self._repeating[place] for place in asked]

    def evaluations(self, found: Evaluation, way: Way) -> list[Evaluation]:
        """The module passes of `found`, then this way with no more segments than it needs; memory shared in the two
        most promising ways. Where one fails, it has no footprint."""
        return [self._evaluator.arranged(found, each) for each in way.shared]

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

    def _ways(self, founds: Sequence[Evaluation], others: Sequence[Order] = ()) -> list[tuple[Way, ...]]:
        """Of each, in its own order and in others; the kernels as they are, and cut."""
        alignment = self._evaluator.target.alignment
        errands = []
        for each in founds:
            specs = specs_of(each.module_passes)
            orders = tuple(dict.fromkeys((each.passes[-1], *others)))
            errands += [Errand(specs, partial(_ordered, specs=specs, cut=cut, orders=orders)) for cut in (False, True)]
        ordered = self._evaluator.run(errands)
        programs = [(*plain, *cut) for plain, cut in zip(ordered[::2], ordered[1::2])]
        new = {
            (each.key, one.before): Errand(errand.specs, partial(_path, ordered=one, alignment=alignment))
            for each, errand, of_one in zip(founds, errands[::2], programs)
            for one in of_one
            if (each.key, one.before) not in self._paths
        }
        self._paths |= zip(new, self._evaluator.run(new.values()))
        return [
            tuple(_way(one, self._paths[each.key, one.before], alignment) for one in of_one)
            for each, of_one in zip(founds, programs)
        ]


class _Ordered(NamedTuple):
    """A program in the order that `before` ends with, and how its kernels can run in parts."""

    before: Arrangement
    program: Program
    splits: Mapping[str, Splits]


def _ordered(scorer: Scorer, specs: Specs, cut: bool, orders: Sequence[Order]) -> list[_Ordered]:
    """The program after `specs` in different orders; with sums cut, none where there are none to cut."""
    program, splits = scorer.splittable(specs, cut)
    if cut and program == scorer.splittable(specs, False)[0]:
        return []
    before = (CutSums(),) if cut else ()
    different: dict[tuple[int, ...], Order] = {}
    for order in orders:
        different.setdefault(order.numbers(program), order)
    return [_Ordered((*before, order), program.reordered(numbers), splits) for numbers, order in different.items()]


def _path(_: Scorer, ordered: _Ordered, alignment: int) -> Path:
    return best_segments(ordered.program, ordered.splits, alignment)


def _way(ordered: _Ordered, path: Path, alignment: int) -> Way:
    return Way(*ordered, alignment, segments=path.segments, nbytes=path.nbytes)


def lowest(ways: Iterable[Way]) -> Way:
    """The way with the least bound."""
    # how memory is shared takes longest: only for those that need least before it is
    return min(sorted(ways, key=lambda way: way.nbytes)[:2], key=lambda way: way.bound)


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

    @cached_property
    def shared(self) -> list[Arrangement]:
        """With no more segments than it needs, memory shared in the two most promising ways."""
        way = _as_few_as_needed(self)
        return [(*way.passes, *after) for _, after, _ in way.arrangements[:2]]

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
    ways = tuple(ways)
    for cut in (False, True):
        of_kind = [way for way in ways if (CutSums() in way.before) == cut]
        if of_kind:
            yield min(of_kind, key=lambda way: way.nbytes)


def _with_repeats(_: Scorer, way: Way, extra_compute: float, steps: int) -> Way:
    work = int(extra_compute * work_of(way.program, way.splits))
    found = best_repeats(way.program, way.splits, work, way.alignment, steps)
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
