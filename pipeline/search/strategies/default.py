"""`tvm-default`: TVM's own sequence and nothing else, planned and scheduled by passfit."""

from __future__ import annotations

from ..evaluate.candidates import Candidate
from .trace import Trace


def tvm_default(trace: Trace, seed: int) -> None:
    """`seed` is not used."""
    trace.evaluate(Candidate())
