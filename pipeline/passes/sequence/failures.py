"""List the exceptions of a pass that cost one candidate."""

from __future__ import annotations

import tvm

from ...errors import ModelError

#: exceptions of a TVM pass on an unsuitable graph; each costs one candidate, never the search
FAILURES = (
    tvm.error.InternalError, ModelError, ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip
