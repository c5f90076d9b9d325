"""Replay sequences on one graph and score their states, in this process. Nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Ordered
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple

from tvm.ir import IRModule

from ...kernels.lower.divide_kernels import divide_kernels
from ...kernels.lower.lower import Lowered, lower
from ...kernels.lower.schedule_program import summarise_schedules
from ...kernels.lower.stored_program import StoredPrograms
from ...kernels.rewrite.splittable import splits_of
from ...kernels.schedule.summaries import ScheduleSummaries
from ...memory import ALIGNMENT, Footprint, account, bound, plan_arena, ports_floor, shared_floor
from ...memory.order.best_order import orders_of
from ...memory.order.step_graph import step_graph
from ...memory.sharing.share import has_copies
from ...passes.base import Level, LoweredPass, Pass, ProgramPass
from ...passes.program.order import Order
from ...passes.program.share import Share
from ...passes.sequence.apply import apply_program_passes, rearranged
from ...passes.sequence.catalogue import parse_spec
from ...passes.sequence.failures import failure_of
from ...passes.sequence.sequence import specs_of
from ...program import Program, Splits
from ...program.form import form_key
from ...program.workspaces import add_workspaces, drop_workspaces, workspaces_of_loops
from ...targets import Target
from .transitions import Specs, Transitions

#: program passes of a candidate: splits, sharing, and last the order of the kernels
Arrangement = tuple[Pass, ...]
#: lowered programs kept, the latest ones
_SPLIT = 32


class EvaluationRequest(NamedTuple):
    """Request to evaluate a state.

    `specs` are its module passes. Without `score`, only the key of the state is asked for. `order` are the program
    passes that follow; empty: the best of the cheap ones, see `arrangements`. `below`: skip a state if its floor rules
    out an arena of fewer bytes or, with an `order`, if its bound rules out less ram.
    """

    specs: Specs
    score: bool = True
    order: Arrangement = ()
    below: int | None = None


@dataclass(frozen=True, eq=False)
class WorkerTask:
    """Task for a worker that may have cached the module after `specs`, and the kernels after `order`.

    `run` and its result are picklable. `work` is that of handling all kernels so many times.
    """

    specs: Specs
    run: Callable[[Scorer], object]
    order: Arrangement = ()
    work: float = 0.2


@dataclass(frozen=True)
class EvaluationOutcome:
    """Outcome of a request: small, picklable, and the same in every process.

    `key` is the key of the state, None if no state was reached. `footprint` is None if not asked for, if the asker
    knows the state, and after a failure. `died`: the process evaluating it did not survive. `hopeless`: a bound rules
    out `below`. `least` is a lower bound on the ram of all arrangements of the state, in bytes. `result` is the result
    of a WorkerTask. `seconds` is the processor time it took in another process.
    """

    key: int | None = None
    footprint: Footprint | None = None
    order: Arrangement = ()
    failure: str = ""
    died: bool = False
    hopeless: bool = False
    least: int = 0
    result: object = None
    seconds: float = field(default=0.0, compare=False)


class Scorer:
    """Score sequences on one graph, with modules and footprints cached by state.

    `summaries` are the schedule summaries of all kernels. Unless `keep`, nothing is taken from other searches of the graph.
    """

    def __init__(
        self, graph: IRModule, name: str, target: Target, inputs: Ordered[str], outputs: Ordered[str], keep: bool = True
    ):
        self._name, self._target, self._inputs, self._outputs = name, target, tuple(inputs), tuple(outputs)
        self.summaries = ScheduleSummaries()
        self._transitions = Transitions(graph, self._inputs, self._outputs, keep=keep)
        self._programs = StoredPrograms(self._transitions.store, target.machine)
        self._scored: dict[int, EvaluationOutcome] = {}
        #: the latest states with leading program passes applied
        self._splitted: dict[tuple[int, Arrangement], Lowered] = {}
        self._splittable: dict[tuple[int, Arrangement], tuple[Program, Mapping[str, Splits]]] = {}

    def outcome(
        self, request: EvaluationRequest | WorkerTask, known: frozenset[int] = frozenset()
    ) -> EvaluationOutcome:
        """Replay and, unless the state is one of `known`, score. Let bugs through, and errors of an errand."""
        if isinstance(request, WorkerTask):
            return EvaluationOutcome(result=request.run(self))
        key = None
        try:
            key = self._transitions.state(request.specs).key
            if request.order:
                return self._score_order(request.specs, key, request.order, request.below)
            if not request.score or key in known:
                return EvaluationOutcome(key)
            if key not in self._scored:
                lowered, workspace = self.planned(self._split(request.specs, key, ()))
                if request.below is not None and shared_floor(lowered.program) >= request.below:
                    return EvaluationOutcome(key, hopeless=True)
                self._scored[key] = self._score(lowered.program, workspace, key)
            return self._scored[key]
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            return EvaluationOutcome(key, failure=failure.reason)

    def module(self, specs: Specs) -> IRModule:
        """Return the module after the passes; exceptions of a pass propagate."""
        return self._transitions.module(specs)

    def kept(self, what: str, specs: Specs, make: Callable[[], Any]) -> Any:
        """Return a JSON value of the state after the passes, kept for searches of other targets."""
        return self._transitions.store.get_or_make(f"{what} {self._transitions.state(specs)}", make)

    def program(self, specs: Specs) -> Program:
        """Return the program after the passes, in the order given, nothing shared."""
        return drop_workspaces(self.planned(self.lowered(specs))[0].program)

    def lowered(self, specs: Specs) -> Lowered:
        """Return the program after the passes, nothing scheduled yet; exceptions of a pass propagate."""
        found = self._programs.get_or_make(str(self._transitions.state(specs)), lambda: self._lower(specs))
        return replace(found, program=replace(found.program, name=self._name))

    def begun(self, specs: Specs, order: Arrangement) -> tuple[Lowered, Arrangement]:
        """Lower the module after the passes, apply the actions of `order` before scheduling; return the rest too."""
        return self._begin(specs, self._transitions.state(specs).key, order)

    def splittable(self, specs: Specs, before: Arrangement) -> tuple[Program, Mapping[str, Splits]]:
        """Return the program after module passes and the passes `before` its splits, and its kernels' splits.

        Its loops have the workspaces of their bodies; those of kernels, which splits make smaller, are left out.
        """
        key = self._transitions.state(specs).key
        if (key, before) not in self._splittable:
            lowered = self._split(specs, key, before)
            planned = self.planned(lowered)[0].program
            program = add_workspaces(drop_workspaces(planned), workspaces_of_loops(planned))
            self._splittable[key, before] = program, splits_of(lowered)
        return self._splittable[key, before]

    def planned(self, lowered: Lowered) -> tuple[Lowered, int]:
        """Summarise the schedules of all kernels, see `schedule_program.summarise_schedules`."""
        return summarise_schedules(lowered, self.summaries)

    def _score_order(self, specs: Specs, key: int, order: Arrangement, below: int | None) -> EvaluationOutcome:
        lowered, after = self._begin(specs, key, order)
        lowered, workspace = apply_program_passes(lowered, (), self.planned)

        @cache
        def arranged() -> Program:
            assert all(isinstance(each, ProgramPass) for each in after)
            return rearranged(lowered.program, after)

        store, place = self._transitions.store, f"{self._form(lowered.program)} {' '.join(specs_of(after))}"
        if below is not None:
            fullest = store.get_or_make(f"bound {place}", lambda: bound(arranged(), self._target.alignment))
            if fullest + workspace + self._bytes_copied(lowered.program.weight_bytes) >= below:
                return EvaluationOutcome(key, hopeless=True)
        found = store.get_or_make_as(Footprint, f"footprint {place}", lambda: self._plan_footprint(arranged()))
        return EvaluationOutcome(key, self._needing(found, workspace), order)

    def _begin(self, specs: Specs, key: int, order: Arrangement) -> tuple[Lowered, Arrangement]:
        """Apply the passes that come before scheduling, and return the rest: sharings of one split differ in these."""
        leading = tuple(takewhile(lambda each: Level.LOWERED in each.levels, order))
        return self._split(specs, key, leading), order[len(leading) :]

    def _split(self, specs: Specs, key: int, passes: Arrangement) -> Lowered:
        place = key, passes
        if place not in self._splitted:
            if passes:
                last = passes[-1]
                assert isinstance(last, LoweredPass)
                made = last.apply(self._split(specs, key, passes[:-1]))
            else:
                made = self.lowered(specs)
            while len(self._splitted) >= _SPLIT:
                del self._splitted[next(iter(self._splitted))]
            self._splitted[place] = made
        return self._splitted[place]

    def _bytes_copied(self, weights: int) -> int:
        """Return the bytes copied to ram, of so many bytes of weights."""
        return 0 if self._target.weights == "in-place" else weights

    def _score(self, program: Program, workspace: int, key: int) -> EvaluationOutcome:
        """Score a program in the best of its cheap arrangements, which most targets share."""
        store, place = self._transitions.store, self._form(program)
        kind = tuple[Footprint, tuple[str, ...]]
        footprint, specs = store.get_or_make_as(kind, f"score {place}", lambda: self._best(program))
        bottom = ports_floor(program, self._target.alignment) + self._bytes_copied(program.weight_bytes)
        found = self._needing(footprint, workspace)
        return EvaluationOutcome(key, found, tuple(map(parse_spec, specs)), least=bottom)

    def _best(self, program: Program) -> tuple[Footprint, tuple[str, ...]]:
        """Return the footprint and the specs of the best cheap arrangement, without workspace and copied weights."""
        best: tuple[Footprint, Arrangement] | None = None
        for least, order, arranged_program in arrangements(program, self._target.alignment):
            if best is not None and least > best[0].arena:
                break  # by increasing bound: no later arena is smaller
            footprint = self._plan_footprint(arranged_program)
            if best is None or _size(footprint) < _size(best[0]):
                best = footprint, order
        assert best is not None
        return best[0], specs_of(best[1])

    def _form(self, program: Program) -> str:
        return f"{form_key(program)} {self._target.alignment}"

    def _lower(self, specs: Specs) -> Lowered:
        return divide_kernels(
            lower(self.module(specs), self._name, self._inputs, self._outputs, machine=self._target.machine)
        )

    def _plan_footprint(self, program: Program) -> Footprint:
        """Return the footprint of a program in its order, without workspace and copied weights."""
        return account(program, plan_arena(program, self._target.alignment), workspace=0, code=0, weights_in_place=True)

    def _needing(self, footprint: Footprint, workspace: int) -> Footprint:
        """Add the workspace, and the weights if the target copies them. Regions are those of an image: there is none yet."""
        return replace(
            footprint,
            ram=footprint.ram + workspace + self._bytes_copied(footprint.weights),
            workspace=workspace,
            regions=(),
        )


def arrangements(program: Program, alignment: int) -> list[tuple[int, Arrangement, Program]]:
    """List distinct sharings, none included, each in the cheap order of lowest bound.

    Returns bound, passes and program of each, by increasing bound, then by number of kernels.
    """
    found: dict[Program, tuple[int, Arrangement, Program]] = {}
    sharings = ((), (Share(copies=0),), (Share(),))
    for sharing in sharings if has_copies(program) else sharings[:2]:
        shared = program if not sharing else sharing[0].rearrange(program)
        if shared in found:
            continue
        graph = named = step_graph(shared)  # the order of a name does not depend on the target's alignment
        if alignment != ALIGNMENT:
            graph = step_graph(shared, alignment)
        bounds = [(max(graph.alive(order)), name, order) for name, order in orders_of(named)]
        least, name, order = min(bounds, key=lambda each: each[0])
        found[shared] = (least, (*sharing, Order(by=name)), shared.reordered(order))
    return sorted(found.values(), key=lambda each: (each[0], len(each[2].steps)))


def _size(footprint: Footprint) -> tuple[int, int]:
    return footprint.ram, footprint.kernels
