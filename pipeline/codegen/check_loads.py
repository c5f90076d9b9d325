"""Load a shared library in a process of its own, to know that a program which loads it finds every function."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

#: the functions of the header, after the model's prefix
EXPORTS = ("input", "output", "run", "error", "bind")
_TIMEOUT_SECONDS = 120
#: RTLD_NOW binds every symbol at once, where RTLD_LAZY would end the process at the first call of a missing one
_LOAD = """
import ctypes, os, sys
library, *functions = sys.argv[1:]
try:
    loaded = ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    for function in functions:
        getattr(loaded, function)
except (OSError, AttributeError) as error:
    sys.exit(str(error))
"""


def why_not_loadable(library: Path, identifier: str) -> str | None:
    """The loader's reason why this machine cannot load lib<identifier>.so with all its functions; None if it can."""
    functions = [f"{identifier}_{name}" for name in EXPORTS]
    command = [sys.executable, "-I", "-S", "-c", _LOAD, str(library.resolve()), *functions]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"loading it did not end in {_TIMEOUT_SECONDS} s"
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return f"loading it ended with {signal.Signals(-done.returncode).name}"
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return reason.replace(f"{library.resolve()}: ", "")  # a message must not depend on the folder
