"""Split the bodies of loops whose values take much compared with their operands and results: a region in a loop.

    loop of 60 trips    operands and results 983 kB, values 82 kB ──► split-rows{steps=0.2-0.3}: 23 kB

These passes come before all others of a plan. They change no step number but in the bodies they split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ...kernels.rewrite.splittable import splits_of
from ...memory.liveness import aligned
from ...memory.streaming.group_rows import coarser
from ...memory.streaming.partitioner import Partitioner, StreamedSteps
from ...passes.program.in_body import program_at, spell_path
from ...passes.program.split import CHANNELS, SplitChannels, SplitPass, SplitRows
from ...program import Loop, Program, Splits, Step
from ...program.bodies import Path, loops_of
from ...program.form import form_key
from ...program.workspaces import add_workspaces, workspaces_of_loops
from ..evaluate.scoring import Arrangement, Scorer, Specs
from .stored_splits import stored_partition

#: part of the bytes of a loop's operands and results that its values may take: fewer are hardly worth their time
PART = 64


def body_splits(scorer: Scorer, specs: Specs, alignment: int) -> Arrangement:
    """Return the passes that split loop bodies after module passes, inner ones first."""
    found: tuple[SplitPass, ...] = ()
    for path, _ in loops_of(scorer.lowered(specs).program):
        lowered, _ = scorer.begun(specs, found)
        planned = scorer.planned(lowered)[0].program
        body = _find_body(lowered.program, planned, path)
        if body.values * PART > body.around:
            program = _as_shared(body, planned)
            splits = splits_of(replace(lowered, program=program))
            regions = _regions(program, splits, body, alignment)
            found += tuple(split_pass(program, each, path) for each in reversed(regions))
    return found


class _Body(NamedTuple):
    """Body of a loop before it is planned and after, and bytes: of all that is outside, of operands and results, of values."""

    program: Program
    planned: Program
    outside: frozenset[int]
    around: int
    values: int


def _find_body(program: Program, planned: Program, path: Path) -> _Body:
    """Find the body of the loop at a path in a program; its plan is found by names, as planned steps have another order."""
    given, around = program, planned
    for number in path:
        loop, around = given.steps[number], planned
        own = next(step for step in around.steps if step.kernel == loop.kernel)
        assert isinstance(loop, Loop) and isinstance(own, Loop)
        outside, given, planned = loop.outside, loop.body, own.body
    nbytes = sum(aligned(around.buffers[buffer].nbytes) for buffer in around.buffers_of((*own.reads, *own.results)))
    values = sum(around.tensors[tensor].nbytes for tensor in own.writes[len(own.results) :])
    return _Body(program_at(program, path, ""), planned, outside, nbytes, values)


def _as_shared(body: _Body, planned: Program) -> Program:
    """Return a body with the plan's operands in place, and its loops' workspaces."""
    sharing = {step.kernel: (step.in_place, step.copies) for _, step, _ in planned.calls()}

    def shared(_: Program, step: Step) -> Step:
        in_place, copies = sharing.get(step.kernel, ((), ()))
        return replace(step, in_place=in_place, copies=copies)

    return add_workspaces(body.program.with_calls(shared), workspaces_of_loops(body.planned))


def _regions(program: Program, splits: Mapping[str, Splits], body: _Body, alignment: int) -> tuple[StreamedSteps, ...]:
    """Return the regions with the fewest bytes of values in a body, or few enough."""
    best = stored_partition(form_key(program, splits), program, splits, alignment)
    assert best is not None
    paths = Partitioner(program, splits, alignment)
    most = sum(paths.sizes[buffer] for buffer in body.outside) + body.around // PART
    if best.regions and most > best.nbytes:
        best = coarser(paths, replace(paths.within(most), nbytes=most))
    return best.regions


def split_pass(program: Program, region: StreamedSteps, above: Path = ()) -> SplitPass:
    """Return the pass that makes a region in a program: the main one, or the body of the loop at the path `above`."""
    steps = f"{spell_path(above, region.first)}-{spell_path(above, region.last)}"
    shape = program.tensors[program.steps[region.first].writes[0]].shape
    if region.axis == CHANNELS and len(shape) > 2:
        return SplitChannels(steps, region.group, region.in_place)
    return SplitRows(steps, region.axis, region.group, region.in_place)
