"""Parametric actions around the peak: calls worth keeping out of the kernels that hold it up.

A fused kernel keeps everything its parts read alive until it runs. So the kernels to look into are the one that runs at
the peak, and those that what is alive there waits for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...memory import alive_bytes, lifetimes
from ...passes.base import ProgramPass
from ...passes.graph.fuse_operators import FuseOperators
from ...passes.graph.fusion_barriers import groups
from ...passes.sequence.sequence import specs_of
from ...program import Program
from ..evaluate.candidates import Candidate
from ..evaluate.evaluation import Evaluation
from ..evaluate.scoring import Scorer


def around_peak(scorer: Scorer, candidate: Candidate, found: Evaluation) -> Iterator[Candidate]:
    """`candidate` with one more call kept apart, for each call in a kernel that holds the peak of `found` up."""
    *before, fuse = candidate.tail
    if not isinstance(fuse, FuseOperators) or found.footprint is None:
        return
    for call in _calls_at_peak(scorer, candidate, found):
        kept = replace(fuse, keep="+".join(map(str, sorted({*fuse.kept, call}))))
        yield Candidate(candidate.prefix, (*before, kept))


def _calls_at_peak(scorer: Scorer, candidate: Candidate, found: Evaluation) -> list[int]:
    *before, fuse = candidate.passes
    assert isinstance(fuse, FuseOperators)
    members = groups(scorer.module(specs_of(before)), fuse.group)
    program = scorer.program(specs_of(candidate.passes))
    if len(members) != len(program.steps):  # a call whose result nobody needs has no step
        return []
    ordered = program
    for each in found.passes:
        if isinstance(each, ProgramPass):
            ordered = each.rearrange(ordered)
    steps = [program.steps.index(ordered.steps[number]) for number in _holding(ordered)]
    return list(dict.fromkeys(call for step in steps if len(members[step]) > 1 for call in members[step]))


def _holding(program: Program) -> list[int]:
    """The step at which most bytes are alive, then the last readers of what is alive there and read later.

    A program whose copies all went away has no steps.
    """
    if not program.steps:
        return []
    lives = lifetimes(program)
    alive = alive_bytes(program)
    peak = alive.index(max(alive))
    later = [life.end - 1 for life in lives if life.start <= peak < life.end]
    return [peak, *sorted({step for step in later if peak < step < len(program.steps)})]
