"""Split plan of a program: cut sums, order, repeats and streaming regions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ...memory import bound, floor
from ...memory.liveness import shared_floors
from ...memory.order.stored_order import stored_order
from ...memory.streaming.live_bytes import AliveBytes
from ...memory.streaming.partition import apply_partition
from ...memory.streaming.partitioner import Partitioner, StreamedSteps
from ...memory.streaming.rematerialise import Repeat, repeat_steps, work_of
from ...passes.program.cut_sums import CutSums
from ...passes.program.rematerialise import Rematerialise
from ...program import Program, Splits
from ..evaluate.evaluation import Evaluation
from ..evaluate.scoring import Arrangement, arrangements
from .bodies import split_pass
from .stored_splits import Sharings, stored_fewest, stored_sharings


def lowest(plans: Iterable[SplitPlan]) -> SplitPlan:
    """Return the plan of least bound, among the two of least bytes before sharing."""
    return min(promising(plans), key=lambda plan: plan.bound)


def promising(plans: Iterable[SplitPlan]) -> list[SplitPlan]:
    """Return the two plans of least bytes before sharing, which takes longest."""
    return sorted(plans, key=lambda plan: plan.nbytes)[:2]


@dataclass(frozen=True)
class SplitPlan:
    """Plan to split a program that `before` has cut and ordered.

    `repeats` are applied first; `regions` are the steps of the repeated program that are streamed as one.
    """

    before: Arrangement
    program: Program
    splits: Mapping[str, Splits]
    #: key of the program and its splits, see `form_key`
    form: str
    alignment: int
    repeats: tuple[Repeat, ...] = ()
    regions: tuple[StreamedSteps, ...] = ()
    #: bytes alive at the fullest step before memory is shared
    nbytes: int = 0
    #: the limit of extra compute excluded repeats
    refused: bool = False

    @property
    def cut(self) -> bool:
        """Return whether sums are cut."""
        return CutSums() in self.before

    @cached_property
    def whole(self) -> int:
        """Return the bytes alive at the fullest step of whole kernels."""
        return max(AliveBytes(self.program, self.alignment, 0).alone, default=0)

    @cached_property
    def repeated(self) -> Program:
        program = self.program
        for each in self.repeats:
            program = repeat_steps(program, each)
        return program

    @cached_property
    def arrangements(self) -> list[tuple[int, Arrangement, Program]]:
        """Return the sharings of the split program, by increasing bound."""
        return arrangements(apply_partition(self.repeated, self.splits, self.regions), self.alignment)

    @cached_property
    def sharings(self) -> Sharings:
        """Return bound and passes of all arrangements, as another search or process may have kept them."""
        return stored_sharings(*self.made, lambda: [(least, passes) for least, passes, _ in self.arrangements])

    def keep_sharings(self, sharings: Sharings) -> None:
        """Keep the sharings that another process computed."""
        stored_sharings(*self.made, lambda: sharings)

    @property
    def made(self) -> tuple[str, tuple[object, ...]]:
        """Return all that the arrangements depend on."""
        return self.form, (self.repeats, self.regions, self.alignment)

    @property
    def bound(self) -> int:
        return self.sharings[0][0]

    @cached_property
    def fewest(self) -> SplitPlan:
        """Return this plan without redundant regions, as another search or process may have found them."""
        regions = stored_fewest(*self.made, lambda: _as_few_as_needed(self).regions)
        return self if regions == self.regions else replace(self, regions=regions)

    def keep_fewest(self, regions: tuple[StreamedSteps, ...], sharings: Sharings) -> None:
        """Keep the regions of `fewest`, and their sharings, that another process computed."""
        stored_fewest(*self.made, lambda: regions)
        self.fewest.keep_sharings(sharings)

    @property
    def shared(self) -> list[Arrangement]:
        """Return the passes of `fewest` with each of its two most promising sharings."""
        return [(*self.fewest.passes, *after) for _, after in self.fewest.sharings[:2]]

    def promises(self, found: Evaluation, ram: float) -> bool:
        """Return whether bounds allow less than `ram`, and a smaller arena than `found`.

        The kernels of `found` are whole, `ram` is in bytes. The order is searched if the floor leaves it open.
        """
        whole = found.result
        allowed = ram - (whole.ram - whole.arena - whole.workspace)
        if self.bound >= whole.arena:
            return False
        return any(self.fewest._reaches(number, allowed) for number in range(len(self.fewest.sharings[:2])))

    def _reaches(self, sharing: int, below: float) -> bool:
        if self.sharings[sharing][0] < below:
            return True
        program = self.arrangements[sharing][2]
        return (
            floor(program, self.alignment) < below
            and bound(program.reordered(stored_order(program)), self.alignment) < below
        )

    @property
    def unavoidable(self) -> int:
        """Return the bytes of the model's inputs, or of its outputs, alone: no plan needs less."""
        return Partitioner(self.program, self.splits, self.alignment).unavoidable

    @property
    def extra_compute(self) -> float:
        """Return the recomputation as a fraction of the original arithmetic."""
        return work_of(self.repeated, self.splits) / work_of(self.program, self.splits) - 1 if self.repeats else 0.0

    @property
    def passes(self) -> Arrangement:
        """Return the plan as passes; the last region first, so that the step numbers of the others stay."""
        repeats = (Rematerialise("+".join(map(str, each.steps)), each.before, int(each.move)) for each in self.repeats)
        return (*self.before, *repeats, *(split_pass(self.repeated, region) for region in reversed(self.regions)))


def _as_few_as_needed(plan: SplitPlan) -> SplitPlan:
    """Remove regions that are redundant once memory is shared, trying the longest first."""
    needed = shared_floors(plan.repeated)  # by a step that runs whole, however memory is shared
    for region in sorted(plan.regions, key=lambda each: (each.first - each.last, each.first)):
        if max(needed[region.first : region.last + 1]) > plan.bound:
            continue
        fewer = replace(plan, regions=tuple(each for each in plan.regions if each is not region))
        if fewer.bound <= plan.bound:
            plan = fewer
    return plan
