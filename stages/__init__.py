"""Run one DVC stage per module: read params.yaml, call passfit, write files."""

from __future__ import annotations

import sys
from types import TracebackType

#: exit code after Ctrl-C: 128 + SIGINT
INTERRUPTED = 130


def _end(kind: type[BaseException], error: BaseException, place: TracebackType | None) -> None:
    """End the process of a stage with one line after Ctrl-C, also while its modules are loaded."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, place)
        return
    sys.stderr.write("passfit: interrupted.\n")
    raise SystemExit(INTERRUPTED)


sys.excepthook = _end
