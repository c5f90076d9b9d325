"""Check the loading of a shared library, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from ..support.children import run

#: functions of the header, without the model's prefix
EXPORTS = ("input", "output", "run", "error", "bind")
_TIMEOUT_SECONDS = 120
#: RTLD_NOW binds every symbol at once; RTLD_LAZY would end the process at the first call of a missing one
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
    """Return the loader's reason to refuse lib<identifier>.so, or one of its functions; None if it loads."""
    functions = [f"{identifier}_{name}" for name in EXPORTS]
    command = [sys.executable, "-I", "-S", "-c", _LOAD, str(library.resolve()), *functions]
    try:
        done = run(command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"loading it did not finish in {_TIMEOUT_SECONDS} s"
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return f"loading it ended with {signal.Signals(-done.returncode).name}"
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return reason.replace(f"{library.resolve()}: ", "")  # keep the message independent of the folder
