"""Propose fusion barriers around the peak: calls to keep out of kernels that extend lifetimes.

A fused kernel keeps the operands of all its parts alive until it runs. Candidates are the kernel at the peak, and the
last readers of the buffers alive there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...memory import lifetimes, live_bytes
from ...passes.graph.fuse_operators import FuseOperators
from ...passes.graph.fusion_barriers import groups
from ...passes.sequence.apply import rearranged
from ...passes.sequence.sequence import specs_of
from ...program import Program
from ..evaluate.candidates import Candidate
from ..evaluate.evaluation import Evaluation
from ..evaluate.scoring import Scorer


def around_peak(scorer: Scorer, candidate: Candidate, found: Evaluation) -> Iterator[Candidate]:
    """Yield `candidate` with one fusion barrier more, per call in a kernel holding the peak.

    `found` is the evaluation of `candidate`.
    """
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
    if len(members) != len(program.steps):  # a dead call has no step
        return []
    ordered = rearranged(program, found.passes)
    steps = [program.steps.index(ordered.steps[number]) for number in _holding(ordered)]
    return list(dict.fromkeys(call for step in steps if len(members[step]) > 1 for call in members[step]))


def _holding(program: Program) -> list[int]:
    """Return the peak step, then the later last readers of buffers alive there.

    A program all of whose copies were removed has no steps.
    """
    if not program.steps:
        return []
    lives = lifetimes(program)
    alive = live_bytes(program)
    peak = alive.index(max(alive))
    later = [life.end - 1 for life in lives if life.start <= peak < life.end]
    return [peak, *sorted({step for step in later if peak < step < len(program.steps)})]
