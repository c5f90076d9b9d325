"""Choose whether a defect of passfit ends a run, as in CI, or costs one plan."""

from __future__ import annotations

import os

#: environment variable, since workers and stages are processes of their own
STRICT = "PASSFIT_STRICT"


def strict() -> bool:
    """Return whether `--strict` was given, or PASSFIT_STRICT=1 is set."""
    return os.environ.get(STRICT, "") not in ("", "0")


def be_strict() -> None:
    """Make defects errors, in this process and its children."""
    os.environ[STRICT] = "1"
