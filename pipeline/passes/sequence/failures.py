"""Distinguish the failure of a pass, which costs a candidate, from a bug, which ends the run."""

from __future__ import annotations

import traceback
from pathlib import Path

import tvm
import tvm_ffi

from ...errors import ModelError, PassfitError, SequenceError
from ...support.strictness import strict

# Ctrl-C in Python code that TVM called stays what it is: else it comes back as a RuntimeError, a failure like others.
tvm_ffi.register_error("KeyboardInterrupt", KeyboardInterrupt)

#: refusals of ours, errors only TVM raises, and resources that a candidate may not exceed
_ALWAYS = (ModelError, SequenceError, MemoryError, RecursionError, tvm.error.InternalError, tvm.error.OpError)
_OURS = str(Path(__file__).parents[2])
_TVM = tuple(str(Path(package.__file__).parent) for package in (tvm, tvm_ffi))
#: of files that TVM's frames name where its error crossed into Python: C++ and Cython
_COMPILED = (".cc", ".cpp", ".h", ".hpp", ".pxi", ".pyx", "<unknown>")


class PassFailure(ModelError):
    """A pass that cannot be applied to a graph, or whose successors cannot; `reason` names the error and its last line."""

    def __init__(self, error: Exception):
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        self.reason = f"{type(error).__name__}: {lines[-1] if lines else type(error).__name__}"
        super().__init__(self.reason)


def failure_of(error: BaseException) -> PassFailure | None:
    """Return the failure that `error`, just caught, stands for; None where it is a bug, or no Exception.

    An error of TVM or LLVM is a failure, whatever its type: its innermost frame among theirs and ours is theirs.
    Python code of ours that TVM calls back has the innermost frame itself. Unless `strict`, a bug costs the candidate too;
    a full disk never does.
    """
    if isinstance(error, PassFailure):
        return error
    if not isinstance(error, Exception):
        return None
    counts = (
        isinstance(error, _ALWAYS)
        or _is_raised_in_tvm(error)
        or not (strict() or isinstance(error, OSError | PassfitError))
    )
    return PassFailure(error) if counts else None


def _is_raised_in_tvm(error: Exception) -> bool:
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    for file in reversed(frames):
        if file.startswith(_TVM) or file.endswith(_COMPILED):
            return True
        if file.startswith(_OURS):
            return False
    return False
