"""Exceptions of a pass that cost one candidate."""

from __future__ import annotations

import tvm

from ...errors import ModelError

#: what a pass of TVM may raise on a graph it does not fit; each costs one candidate, never the search
FAILURES = (
    tvm.error.InternalError, ModelError, ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip
