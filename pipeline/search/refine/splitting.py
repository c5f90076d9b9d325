"""Below the floor of one kernel: which steps to run as one, a few rows or channels at a time, and which to run again.

    cut or not ─► order ─► repeats ─► the path whose fullest edge is least ─► what turns out not to be needed goes

Everything is judged on programs without kernels: what is joined is made only for the footprint of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ...memory import CHEAP_ORDERS
from ...memory.streaming.partition import Partition, Partitioner, StreamedSteps, best_partition
from ...memory.streaming.rematerialise import TRIED_STEPS, RepeatResult, best_repeats, work_of
from ...passes.program.cut_sums import CutSums
from ...passes.program.order import Order
from ...passes.sequence.sequence import specs_of
from ...program import Program, Splits
from ..evaluate.evaluation import Evaluation, Evaluator
from ..evaluate.scoring import Arrangement, Scorer, Specs, WorkerTask
from .split_plan import SplitPlan, lowest


class Splitter:
    """Looks at the candidates of one search in parts; what it finds for one it remembers."""

    def __init__(self, evaluator: Evaluator):
        self._evaluator = evaluator
        #: by form, see `_form`: segments, and for each fraction of more arithmetic what repeats lead to
        self._paths: dict[_Form, Partition] = {}
        self._repeating: dict[tuple[_Form, float, int], RepeatResult] = {}

    def ways(self, found: Evaluation) -> tuple[SplitPlan, ...]:
        """The best segments of the kernels of `found` in each order worth a look, as they are and cut."""
        (ways,) = self.ways_of([found])
        return ways

    def look_ahead(self, found: Evaluation, ways: Iterable[SplitPlan], extra_compute: float, ram: int) -> None:
        """Work out at once what `lowest` with so much extra arithmetic will be asked for, and the `evaluations` of the
        lowest way without any, where it may lead to less `ram`."""
        way = lowest(ways)
        arranged = [(found, each) for each in way.shared] if way.promises(found, ram) else []
        self._repeat([(found, ways)], extra_compute, arranged)

    def lowest(self, found: Evaluation, ways: Iterable[SplitPlan], extra_compute: float, steps: int = TRIED_STEPS) -> SplitPlan:
        """The way with the least bound, where there may be more arithmetic by this fraction of what there is; `steps` as
        in memory.streaming.rematerialise."""
        (way,) = self.lowest_of([(found, ways)], extra_compute, steps)
        return way

    def lowest_of(
        self, asked: Sequence[tuple[Evaluation, Iterable[SplitPlan]]], extra_compute: float, steps: int = TRIED_STEPS
    ) -> list[SplitPlan]:
        """`lowest` of each candidate and its ways; several are worked on at once."""
        found = []
        for (_, ways), repeating in zip(asked, self._repeat(asked, extra_compute, steps=steps)):
            best = min([lowest(ways), *repeating], key=lambda way: way.bound)
            found.append(replace(best, refused=any(way.refused for way in repeating)))
        return found

    def tried(self, ways: Iterable[SplitPlan], extra_compute: float, steps: int = TRIED_STEPS) -> int:
        """How many steps repeats were tried on for these ways."""
        places = {(_form(way), extra_compute, steps) for way in _different(ways)}
        return sum(self._repeating[place].tried for place in places if place in self._repeating)

    def _repeat(
        self,
        asked: Sequence[tuple[Evaluation, Iterable[SplitPlan]]],
        extra_compute: float,
        then: Iterable[tuple[Evaluation, Arrangement]] = (),
        steps: int = TRIED_STEPS,
    ) -> list[list[SplitPlan]]:
        """The different ways of each, with repeats that take no more than this fraction of the arithmetic there is."""
        if extra_compute <= 0:
            return [[] for _ in asked]
        different = [list(_different(ways)) for _, ways in asked]
        repeats = partial(_repeats, extra_compute=extra_compute, steps=steps)
        new: dict[tuple[_Form, float, int], WorkerTask] = {}
        for (found, _), ways in zip(asked, different):
            for way in ways:
                place = (_form(way), extra_compute, steps)
                if place not in self._repeating:
                    new.setdefault(place, WorkerTask(specs_of(found.module_passes), partial(repeats, way=way)))
        self._repeating |= zip(new, self._evaluator.run(new.values(), then))
        return [[_with_repeats(way, self._repeating[_form(way), extra_compute, steps]) for way in ways] for ways in different]

    def evaluations(self, found: Evaluation, way: SplitPlan) -> list[Evaluation]:
        """The module passes of `found`, then this way with no more segments than it needs; memory shared in the two
        most promising ways. Where one fails, it has no footprint."""
        return [self._evaluator.arranged(found, each) for each in way.shared]

    def rungs(self, way: SplitPlan, fractions: Iterable[float]) -> list[SplitPlan]:
        """Ways between this one and whole kernels, which join less and more rows at a time: a fraction of 0.1 allows a
        tenth of the bytes between the two."""
        paths = Partitioner(way.repeated, way.splits, way.alignment)
        whole = max(paths.alone, default=way.nbytes)
        found: dict[tuple[StreamedSteps, ...], SplitPlan] = {}
        for fraction in fractions:
            path = paths.coarser(paths.within(way.nbytes + int(fraction * (whole - way.nbytes))))
            if path.segments and path.segments != way.segments:
                found.setdefault(path.segments, replace(way, segments=path.segments, nbytes=path.nbytes))
        return list(found.values())

    def ways_of(self, founds: Sequence[Evaluation]) -> list[tuple[SplitPlan, ...]]:
        """`ways` of each candidate; several are worked on at once."""
        alignment = self._evaluator.target.alignment
        orders = tuple(Order(by=name) for name in (*CHEAP_ORDERS, "best"))
        errands = []
        for each in founds:
            specs = specs_of(each.module_passes)
            errands += [WorkerTask(specs, partial(_ordered, specs=specs, cut=cut, orders=orders)) for cut in (False, True)]
        ordered = self._evaluator.run(errands)
        programs = [(*plain, *cut) for plain, cut in zip(ordered[::2], ordered[1::2])]
        new: dict[_Form, WorkerTask] = {}
        for errand, of_one in zip(errands[::2], programs):
            for one in of_one:
                if _form(one) not in self._paths:
                    new.setdefault(_form(one), WorkerTask(errand.specs, partial(_path, ordered=one, alignment=alignment)))
        self._paths |= zip(new, self._evaluator.run(new.values()))
        return [tuple(_way(one, self._paths[_form(one)], alignment) for one in of_one) for of_one in programs]


class _Ordered(NamedTuple):
    """A program in the order that `before` ends with, and how its kernels can run in parts."""

    before: Arrangement
    program: Program
    splits: Mapping[str, Splits]


#: a program without names, and how each of its steps can run in parts: what segments and repeats hang on
_Form = tuple[Program, tuple[Splits, ...]]


def _form(of: _Ordered | SplitPlan) -> _Form:
    program = of.program
    plain = replace(
        program,
        name="",
        steps=tuple(replace(step, kernel="", nodes=()) for step in program.steps),
        buffers=tuple(replace(buffer, name="") for buffer in program.buffers),
        weights=tuple(replace(weight, name="", digest="") for weight in program.weights),
        inputs=tuple(replace(port, name="") for port in program.inputs),
        outputs=tuple(replace(port, name="") for port in program.outputs),
    )
    return plain, tuple(of.splits[step.kernel] for step in program.steps)


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


def _path(_: Scorer, ordered: _Ordered, alignment: int) -> Partition:
    return best_partition(ordered.program, ordered.splits, alignment)


def _way(ordered: _Ordered, path: Partition, alignment: int) -> SplitPlan:
    return SplitPlan(*ordered, alignment, segments=path.segments, nbytes=path.nbytes)


def _different(ways: Iterable[SplitPlan]) -> Iterator[SplitPlan]:
    """The best order of the kernels as they are, and of those that are cut."""
    ways = tuple(ways)
    for cut in (False, True):
        of_kind = [way for way in ways if (CutSums() in way.before) == cut]
        if of_kind:
            yield min(of_kind, key=lambda way: way.nbytes)


def _repeats(_: Scorer, way: SplitPlan, extra_compute: float, steps: int) -> RepeatResult:
    work = int(extra_compute * work_of(way.program, way.splits))
    return best_repeats(way.program, way.splits, work, way.alignment, steps)


def _with_repeats(way: SplitPlan, found: RepeatResult) -> SplitPlan:
    path = found.path
    return replace(way, repeats=found.repeats, segments=path.segments, nbytes=path.nbytes, refused=found.refused)
