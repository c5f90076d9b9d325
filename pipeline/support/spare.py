"""Compute what a result can do without: a failure costs that part, and is said on stderr."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from ..errors import reason_of
from .strictness import strict

Part = TypeVar("Part")
_LOG = logging.getLogger("passfit")


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
