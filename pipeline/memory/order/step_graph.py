"""Build the dependency graph of a program's steps, with their buffer parts.

Sets of steps are ints used as bit sets: step i is in the set if bit i is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

from ...errors import PlanError
from ...program import Program
from ..liveness import ALIGNMENT, BufferParts, lives_of, sum_alive


@dataclass(frozen=True)
class StepGraph:
    """Dependencies and part sizes of a program, for schedulers.

    All sizes are bytes rounded up to the alignment; parts are liveness.Parts. `before[i]` are the steps that must run
    before step i, as a bit set; `after[i]` are the steps that wait for it directly. `touches[i]` are the parts step i
    reads or writes; `born[i]` are the parts it writes, inputs excluded. `touched_by[p]` are the steps that touch part
    p, as a bit set. `given` are the inputs, `kept` the outputs. `inputs` is the size of all inputs together, `unread`
    the size of the inputs that die after the first step, whichever it is. No order is below `least`.
    """

    before: tuple[int, ...]
    after: tuple[tuple[int, ...], ...]
    touches: tuple[tuple[int, ...], ...]
    born: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    touched_by: tuple[int, ...]
    given: frozenset[int]
    kept: frozenset[int]
    inputs: int
    unread: int
    least: int

    @property
    def ready(self) -> int:
        """Return the steps that can run first, as a bit set."""
        return sum(1 << step for step, needs in enumerate(self.before) if not needs)

    def ready_after(self, ready: int, step: int, done: int) -> int:
        """Return the steps that can run once `step`, one of `ready` and the last of `done`, has run."""
        ready ^= 1 << step
        for later in self.after[step]:
            if not self.before[later] & ~done:
                ready |= 1 << later
        return ready

    @cached_property
    def uses(self) -> list[list[tuple[int, int, bool, bool]]]:
        """List by step and part it touches: size, other users (bit set), may be its first use, may be its last."""
        return [
            [
                (self.sizes[p], self.touched_by[p] & ~(1 << step), p in self.born[step], p not in self.kept)
                for p in touches
            ]
            for step, touches in enumerate(self.touches)
        ]

    @cached_property
    def sharers(self) -> list[int]:
        """List by step the steps whose price may change when it runs, as bit sets."""
        return [reduce(or_, (others for _, others, _, _ in uses), 0) for uses in self.uses]

    def price(self, step: int, done: int) -> tuple[int, int]:
        """Return the allocation of `step` after the steps `done`, and its growth, in bytes.

        Inputs that nobody reads are alive at the first step, whichever it is: part of its allocation, and given back.
        """
        added = freed = 0
        left = ~done
        for size, others, first, last in self.uses[step]:
            if first and not others & done:
                added += size
            if last and not others & left:
                freed += size
        return (added if done else added + self.unread), added - freed

    def alive(self, order: Sequence[int]) -> list[int]:
        """Sum the bytes alive at each step of an order; one entry without steps.

        See liveness.live_bytes.
        """
        moments = max(1, len(order))
        touched = (self.touches[step] for step in order)
        return sum_alive(self.sizes, lives_of(len(self.sizes), self.given, touched, self.kept, moments), moments)


def step_graph(program: Program, alignment: int = ALIGNMENT) -> StepGraph:
    """Build the dependencies of the program, byte by byte.

    A reader comes after the writers of its bytes, a writer after their earlier writers and readers. Parts of a buffer
    that do not meet are independent.
    """
    parts = BufferParts(program, alignment)
    inputs = frozenset(parts.of([port.tensor for port in program.inputs]))
    outputs = frozenset(parts.of([port.tensor for port in program.outputs]))
    sizes = tuple(parts.sizes)
    touched_by = [0] * len(sizes)
    written: list[list[_Access]] = [[] for _ in program.buffers]
    read: list[list[_Access]] = [[] for _ in program.buffers]
    before: list[set[int]] = []
    touches, born = [], []
    for number, step in enumerate(program.steps):
        needs: set[int] = set()
        for buffer, low, high in _accesses(program, step.reads):
            needs.update(_meeting(written[buffer], low, high))
            read[buffer].append((low, high, number))
        for buffer, low, high in _accesses(program, step.writes):
            needs.update(_meeting(written[buffer], low, high), _meeting(read[buffer], low, high))
            written[buffer].append((low, high, number))
        before.append(needs - {number})
        touched = parts.of((*step.reads, *step.writes))
        for part in touched:
            touched_by[part] |= 1 << number
        touches.append(touched)
        born.append(tuple(part for part in parts.of(step.writes) if part not in inputs))
    after: list[list[int]] = [[] for _ in before]
    for number, needs in enumerate(before):
        for need in sorted(needs):
            after[need].append(number)
    held = sum(sizes[part] for part in inputs)
    floor = max((sum(sizes[part] for part in touched) for touched in touches), default=0)
    return StepGraph(
        before=tuple(sum(1 << need for need in needs) for needs in before),
        after=tuple(map(tuple, after)),
        touches=tuple(touches),
        born=tuple(born),
        sizes=sizes,
        touched_by=tuple(touched_by),
        given=inputs,
        kept=outputs,
        inputs=held,
        unread=sum(sizes[part] for part in inputs - outputs if not touched_by[part]),
        least=max(floor, held, sum(sizes[part] for part in outputs)),
    )


def ancestors(graph: StepGraph) -> list[int]:
    """Return the ancestors of each step as a bit set: every order runs them before it."""
    found: list[int] = []
    for before in graph.before:  # in the given order: each step comes after its dependencies
        found.append(reduce(or_, (found[step] for step in members(before)), before))
    return found


#: first byte, end, and the step that reads or writes them
_Access = tuple[int, int, int]


def _accesses(program: Program, tensors: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """List the buffer and half-open byte range of each tensor that is not a weight."""
    found = [program.tensors[tensor] for tensor in tensors]
    return [(each.buffer, each.offset, each.offset + each.nbytes) for each in found if each.buffer is not None]


def _meeting(accesses: list[_Access], low: int, high: int) -> list[int]:
    """List the steps that touch one of the bytes `[low, high)`.

    An empty range meets accesses of the same place, so that these keep their order.
    """
    return [step for start, end, step in accesses if (start < high and low < end) or (start, end) == (low, high)]


def check_order(program: Program, order: Sequence[int]) -> None:
    """Check that `order` is a permutation of the steps that keeps dependencies. Raises PlanError."""
    if sorted(order) != list(range(len(program.steps))):
        raise PlanError(f"The order of '{program.name}' is not a permutation of its {len(program.steps)} steps.")
    before = step_graph(program).before
    done = 0
    for step in order:
        missing = before[step] & ~done
        if missing:
            first = (missing & -missing).bit_length() - 1
            raise PlanError(
                f"The order of '{program.name}' runs step {step} ({program.steps[step].kernel}) before step {first} "
                f"({program.steps[first].kernel}), on which it depends."
            )
        done |= 1 << step


def members(steps: int) -> Iterator[int]:
    """Yield the members of a bit set, in order."""
    while steps:
        bit = steps & -steps
        steps ^= bit
        yield bit.bit_length() - 1
