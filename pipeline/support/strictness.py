"""Let a defect of passfit end a run, as in CI, or cost one plan, or one dispensable part."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TypeVar

from ..errors import reason_of

#: environment variable, since workers and stages are processes of their own
STRICT = "PASSFIT_STRICT"

Part = TypeVar("Part")
_LOG = logging.getLogger("passfit")


def strict() -> bool:
    """Return whether `--strict` was given, or PASSFIT_STRICT=1 is set."""
    return os.environ.get(STRICT, "") not in ("", "0")


def be_strict() -> None:
    """Make defects errors, in this process and its children."""
    os.environ[STRICT] = "1"


def spare(
    name: str, compute: Callable[[], Part], instead: Callable[[str], Part], but: type[Exception] | None = None
) -> Part:
    """Return `compute()`; if it fails, log why `name` is missing, and return `instead` of that reason.

    For comparisons, baselines and remarks, which are no reason to lose a library. Errors of the kind `but` are raised, and
    all where `strictness` says so.
    """
    try:
        return compute()
    except Exception as error:  # whatever it is: the library is there without this part
        if strict() or (but is not None and isinstance(error, but)):
            raise
        reason = reason_of(error)
        _LOG.warning("%s is not available: %s", name, reason)
        return instead(reason)
