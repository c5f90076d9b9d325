"""Look for garbage in cycles rarely: compilers make many objects and few cycles."""

from __future__ import annotations

import gc

#: new objects before the youngest generation is collected, and collections of one generation before the next
_OBJECTS, _COLLECTIONS = 50_000, 20


def collect_rarely() -> None:
    """Raise the thresholds of Python's garbage collector in this process and its forks; call it from a program's start.

    With the usual ones, collections take 4 % of a search, most of them over TVM's own Python objects.
    """
    gc.set_threshold(_OBJECTS, _COLLECTIONS, _COLLECTIONS)
