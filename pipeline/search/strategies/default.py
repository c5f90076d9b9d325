"""`tvm-default`: TVM's own sequence only, planned and scheduled by passfit."""

from __future__ import annotations

from ..evaluate.candidates import Candidate
from .trace import Trace


def tvm_default(trace: Trace, seed: int) -> None:
    """Evaluate TVM's default; `seed` is unused."""
    trace.evaluate(Candidate())
