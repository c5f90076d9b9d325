"""Rematerialise: run steps again for late readers, so that their results need not be kept.

    made ──► read soon ──► … the peak … ──► read late            kept alive all the way
    made ──► read soon ──► … the peak … ──► made again ──► read  computed twice

A repeated result is mostly never whole either: it is made at its reader, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ...errors import PlanError
from ...program import Buffer, Program, Splits, Step
from ..liveness import ALIGNMENT
from .group_rows import coarser
from .partition import best_partition
from .partitioner import Partition, Partitioner
from .region_forms import KnownForms

#: most steps of one repeat
LONGEST = 8
#: factors by which an operand must be smaller than the repeated tensor to be kept for it
WORTH_KEEPING = (8, 2)
#: readers after the peak to try a repeat for
READERS = 2
#: budget of steps of the programs tried: some ten seconds, or a few for a glance
TRIED_STEPS, GLANCED_STEPS = 10_000, 2000
#: part of the bytes in question saved first: to try for half of them at once may use up the tries
EASIEST = 16
#: relative precision of the peak at which the search ends
PRECISION = 0.02


@dataclass(frozen=True)
class Repeat:
    """Steps to run again just before step `before`, for it and all later steps.

    With `move`, those whose results nobody reads before that run there only.
    """

    steps: tuple[int, ...]
    before: int
    move: bool = False


def repeat_steps(program: Program, repeat: Repeat) -> Program:
    """Run steps again in `program`.

    Raises PlanError unless they all come before the repeat, run in all trips of a loop around, and nothing views their
    results, or writes over what they read.
    """
    made = {t for number in repeat.steps if number < len(program.steps) for t in program.steps[number].writes}
    late = any(number >= repeat.before for number in repeat.steps) or repeat.before >= len(program.steps)
    late = late or any(_changes(program, program.steps[number]) for number in repeat.steps)
    if late or any(view.source in made for view in program.views):
        raise PlanError(f"Steps {repeat.steps} of '{program.name}' cannot be run again before step {repeat.before}.")
    moved = moved_steps(program, repeat) if repeat.move else frozenset()
    tensors, buffers = list(program.tensors), list(program.buffers)
    again: dict[int, int] = {}
    copies = []
    for number in sorted(repeat.steps):
        step = program.steps[number]
        for tensor in () if number in moved else step.writes:
            what = program.tensors[tensor]
            again[tensor] = len(tensors)
            tensors.append(replace(what, buffer=len(buffers)))
            buffers.append(Buffer(f"{program.buffers[what.buffer_number].name}_again", what.nbytes))
        reads, writes = (tuple(again.get(t, t) for t in group) for group in (step.reads, step.writes))
        copies.append(replace(step, reads=reads, writes=writes))
    rest = [replace(step, reads=tuple(again.get(t, t) for t in step.reads)) for step in program.steps[repeat.before :]]
    early = (step for number, step in enumerate(program.steps[: repeat.before]) if number not in moved)
    return replace(program, steps=(*early, *copies, *rest), tensors=tuple(tensors), buffers=tuple(buffers))


def _changes(program: Program, step: Step) -> bool:
    """Return whether a step may do something else later: not all trips run it, or what it uses is overwritten by that time."""
    buffers = set(program.buffers_of(step.reads + step.writes))
    tenants = {
        t
        for t in (*(port.tensor for port in program.inputs), *(t for each in program.steps for t in each.writes))
        if program.tensors[t].buffer in buffers
    }
    return step.guard is not None or len(tenants) > len({program.tensors[t].buffer for t in tenants})


def moved_steps(program: Program, repeat: Repeat) -> frozenset[int]:
    """Return the steps of a repeat with no earlier reader: run at both places, the first run would be for nothing."""
    moved: set[int] = set()
    read = {port.tensor for port in program.outputs}
    for number in range(repeat.before - 1, -1, -1):
        step = program.steps[number]
        if number in repeat.steps and not read & set(step.writes):
            moved.add(number)
        else:
            read.update(step.reads)
    return frozenset(moved)


def work_of(program: Program, splits: Mapping[str, Splits]) -> int:
    """Count the iterations of the innermost loops of all steps."""
    return sum(splits[step.kernel].work for step in program.steps)


@dataclass(frozen=True)
class RepeatResult:
    """Program after repeats, in order, and its best partition.

    `refused` says that some repeats were not tried for the work they take. `tried` counts the steps of the programs
    tried.
    """

    program: Program
    repeats: tuple[Repeat, ...]
    path: Partition
    refused: bool = False
    tried: int = 0


@dataclass
class _Tries:
    """Budget of steps that may still be partitioned: a deterministic stand-in for time."""

    left: int
    refused: bool = False

    def allows(self, program: Program) -> bool:
        self.left -= len(program.steps)
        return self.left >= 0


def best_repeats(
    program: Program,
    splits: Mapping[str, Splits],
    work: int,
    alignment: int = ALIGNMENT,
    steps: int = TRIED_STEPS,
    known: KnownForms | None = None,
) -> RepeatResult:
    """Search for repeats that lower the peak, within `work` more iterations in all.

    Programs of `steps` steps together are tried. Lowers the bytes allowed, a little or by half: a path is made possible
    by repeats, one after the other, each at the step that blocks it. `known` are regions measured before, for this
    alignment.
    """
    if known is None:
        known = KnownForms(alignment)  # a repeat changes few of the regions: the others are measured once
    best = RepeatResult(program, (), best_partition(program, splits, alignment, known))
    low = Partitioner(program, splits, alignment).unavoidable
    tries = _Tries(steps)
    parts = EASIEST
    while best.path.nbytes - low > PRECISION * best.path.nbytes and tries.left > 0:
        middle = best.path.nbytes - max(1, (best.path.nbytes - low) // parts)
        found = _within(program, splits, middle, work, known, tries)
        if found is not None:
            best = found
        elif parts == 2:
            low = middle + 1
        parts = EASIEST if found is not None else 2
    return replace(best, refused=tries.refused, tried=steps - max(0, tries.left))


def _within(
    program: Program, splits: Mapping[str, Splits], most: int, work: int, known: KnownForms, tries: _Tries
) -> RepeatResult | None:
    """Find repeats for a path of `most` bytes; None if there are none, or the tries are used up."""
    repeats: list[Repeat] = []
    paths = Partitioner(program, splits, known.alignment, known)
    path = paths.within(most)
    while not path.complete:
        left = len(program.steps) - path.reached
        best = None
        for repeat in dict.fromkeys(_candidates(paths, path.reached)):
            cost = _cost(program, splits, repeat)
            tries.refused = tries.refused or cost > work
            if cost > work or not tries.allows(program):
                continue
            if best is not None and best[0] <= (0, cost):
                continue  # no repeat takes the path further than to the end
            after = repeat_steps(program, repeat)
            known.forget()
            tried = Partitioner(after, splits, known.alignment, known)
            further = tried.within(most)
            rank = (len(after.steps) - further.reached, cost)
            if rank[0] < left and (best is None or rank < best[0]):
                best = rank, repeat, after, tried, further, cost
        if best is None:
            return None
        _, repeat, program, paths, path, cost = best
        work -= cost
        repeats.append(repeat)
    return RepeatResult(program, tuple(repeats), coarser(paths, path))


def _cost(program: Program, splits: Mapping[str, Splits], repeat: Repeat) -> int:
    """Count the iterations that a repeat adds."""
    again = set(repeat.steps) - moved_steps(program, repeat)
    return sum(splits[program.steps[number].kernel].work for number in again)


def _candidates(paths: Partitioner, blocked: int) -> Iterator[Repeat]:
    """Yield repeats of tensors kept over the steps that block a path, the largest first."""
    program = paths.program
    for at in range(max(0, blocked - 1), min(blocked + 2, len(program.steps))):
        over = [b for b, birth in enumerate(paths.births) if 0 <= birth <= at and paths.deaths[b] > at + 1]
        for buffer in sorted(over, key=lambda b: (-paths.sizes[b], b))[:3]:
            readers = [n for n, step in enumerate(program.steps) if n > at and buffer in program.buffers_of(step.reads)]
            for before in readers[:READERS]:
                for smaller in WORTH_KEEPING:
                    found = _chain(paths, buffer, at, before, smaller)
                    if found is not None:
                        yield found


def _chain(paths: Partitioner, buffer: int, at: int, before: int, smaller: int) -> Repeat | None:
    """Return the steps that make `buffer` again for its reader `before`; None if that is impossible.

    `buffer` is kept over step `at`. The steps read only buffers that are still alive, or small.
    """
    program = paths.program
    writers = {b: n for n, step in enumerate(program.steps) for b in program.buffers_of(step.writes)}
    if buffer in program.output_buffers():
        return None
    steps: set[int] = set()
    waiting = [buffer]
    while waiting:
        number = writers.get(waiting.pop())
        if number is None or number > at or len(steps) == LONGEST:
            return None
        steps.add(number)
        for needed in program.buffers_of(program.steps[number].reads):
            there = paths.deaths[needed] > before or paths.births[needed] < 0
            if not there and paths.sizes[needed] * smaller > paths.sizes[buffer] and writers.get(needed) not in steps:
                waiting.append(needed)
    made = {t for number in steps for t in program.steps[number].writes}
    if any(view.source in made for view in program.views):
        return None
    found = Repeat(tuple(sorted(steps)), before)
    return replace(found, move=bool(moved_steps(program, found)))
