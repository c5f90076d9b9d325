"""Share memory between buffers: results in place of operands, and copies made unnecessary.

    x ──► relu ──► y             y takes over x's memory                      (in place)
    a ──┐
        ├─► concat ──► c         a and b are written where c has them,        (a copy that goes away)
    b ──┘                        and the concat has nothing left to do
    x ──► split ──► s, t         s and t are windows on x                     (the same, the other way round)

Every merge is legal, and is still refused if it costs more than it gives: it may rule out an order that was possible.
The gain is judged by the bound of the best cheap order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from ...program import Overlay, Program, Step, View
from ..liveness import ALIGNMENT, aligned
from ..order.best_order import orders_of
from ..order.step_graph import ancestors, step_graph
from .overlay import drop_empty_buffers, keeps_contents, overlay_operand, steps_accessing, tensors_on

#: cost of a program: bytes at the peak, kernels, bytes × steps; smaller is better
_Cost = tuple[int, int, int]
#: budget of moves × steps of the program: the time of a move grows with the steps
WORK = 20_000


@dataclass
class _Work:
    """Work budget of a search for merges.

    The largest buffers go first, so merges left out at its end are small.
    """

    alignment: int
    left: int

    def allows(self, program: Program) -> bool:
        self.left -= len(program.steps)
        return self.left >= 0


#: merges all buffers for one reason
_Kind = Callable[[Program, _Work], Program]


def share(program: Program, *, in_place: bool = True, copies: bool = True, alignment: int = ALIGNMENT) -> Program:
    """Merge buffers of `program`; the steps left keep their order. Deterministic. Weights stay as they are."""
    return drop_empty_buffers(merge_buffers(program, in_place=in_place, copies=copies, alignment=alignment))


def merge_buffers(program: Program, *, in_place: bool, copies: bool, alignment: int) -> Program:
    """Merge buffers of `program`, and leave empty ones in place.

    Early merges can rule out later ones: both kinds are tried first, and the better outcome is taken.
    """
    merges: list[Callable[[Program, _Work], Program]] = []
    merges += [_put_in_place] * in_place
    merges += [_remove_copies] * (copies and has_copies(program))
    found = [_merge_repeatedly(program, each, _Work(alignment, WORK)) for each in (merges, merges[::-1])[: len(merges)]]
    return min(found, key=lambda each: _cost(each, alignment), default=program)


def has_copies(program: Program) -> bool:
    """Return whether a step only copies, so that it may go away."""
    return any(step.copies for step in program.steps)


def _merge_repeatedly(program: Program, kinds: list[_Kind], work: _Work) -> Program:
    """Apply all kinds of merges in turn until nothing changes: a refused merge may pay off later."""
    before = None
    while program is not before:
        before = program
        for merge in kinds:
            program = merge(program, work)
    return program


def _put_in_place(program: Program, work: _Work) -> Program:
    """Put results in place of operands, if that is free or pays off."""
    earlier = ancestors(step_graph(program))
    cost: _Cost | None = None
    for number in _largest_first(program):
        step = program.steps[number]
        for overlay in step.in_place:
            merged = overlay_operand(program, step, overlay)
            if merged is None or merged is program:
                continue
            if not work.allows(program):
                return program
            if not _is_legal(merged, step.writes[overlay.write]):
                continue
            if _costs_nothing(program, number, overlay, earlier[number], work.alignment):
                program, cost = merged, None
                continue
            cost, less = cost or _cost(program, work.alignment), _cost(merged, work.alignment)
            if less < cost:
                program, cost = merged, less
    return program


def _remove_copies(program: Program, work: _Work) -> Program:
    """Remove copy kernels whose operands can be stored in the result at lower cost."""
    cost: _Cost | None = None
    for step in [program.steps[number] for number in _largest_first(program)]:
        if not step.copies:
            continue
        if not work.allows(program):
            return program
        merged = _remove_copy(program, step)
        if merged is None:
            continue
        cost, less = cost or _cost(program, work.alignment), _cost(merged, work.alignment)
        if less < cost:
            program, cost = merged, less
    return program


def _remove_copy(program: Program, step: Step) -> Program | None:
    """Lay all operands of a copy into its result and drop the step; None if that is illegal."""
    merged = program
    for overlay in step.copies:
        laid = overlay_operand(merged, step, overlay)
        if laid is None:
            return None
        merged = laid
    views = tuple(
        View(step.writes[overlay.write], step.reads[overlay.read], overlay.shift, elided=True)
        for overlay in step.copies
    )
    steps = tuple(each for each in merged.steps if each is not step)
    merged = replace(merged, steps=steps, views=merged.views + views)
    return merged if all(_is_legal(merged, write) for write in step.writes) else None


def _largest_first(program: Program) -> list[int]:
    """List the steps by bytes written, most first."""

    def bytes_written(number: int) -> int:
        return sum(program.tensors[tensor].nbytes for tensor in program.steps[number].writes)

    return sorted(range(len(program.steps)), key=lambda number: (-bytes_written(number), number))


def _is_legal(program: Program, tensor: int) -> bool:
    return keeps_contents(program, program.tensors[tensor].buffer_number)


def _costs_nothing(program: Program, number: int, overlay: Overlay, earlier: int, alignment: int) -> bool:
    """Return whether a merge is free: it rules out no order.

    The operand dies at the step and the result begins there, and both are whole buffers of one size. At that step there
    is then one buffer instead of two, and one everywhere else.
    """
    step = program.steps[number]
    read = program.tensors[step.reads[overlay.read]].buffer
    write = program.tensors[step.writes[overlay.write]].buffer
    assert read is not None and write is not None
    if aligned(program.buffers[read].nbytes, alignment) != aligned(program.buffers[write].nbytes, alignment):
        return False
    whole = ((step.reads[overlay.read], read), (step.writes[overlay.write], write))
    if any(program.tensors[tensor].nbytes != program.buffers[buffer].nbytes for tensor, buffer in whole):
        return False
    if read in program.output_buffers() or write in program.input_buffers():
        return False
    if steps_accessing(program, tensors_on(program, write))[0] != number:
        return False
    users = steps_accessing(program, tensors_on(program, read))
    return users[-1] == number and all(earlier >> user & 1 for user in users[:-1])


@lru_cache(1 << 10)
def _cost(program: Program, alignment: int) -> _Cost:
    """Return the cost of `program` in its best cheap order; refused merges are tried again in later rounds."""
    graph = step_graph(program, alignment)
    found = [graph.alive(order) for _, order in orders_of(graph)]
    return min((max(alive), len(program.steps), sum(alive)) for alive in found)
