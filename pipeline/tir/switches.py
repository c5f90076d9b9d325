"""Switch transformations off by name, so that tests and benchmarks show their worth.

Results in memory or in the store do not depend on switches: use a new process, and a store of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TypeVar, cast

_Transformation = TypeVar("_Transformation", bound=Callable)

#: names of all transformations with a switch, as far as their modules are imported
SWITCHES: dict[str, Callable] = {}
#: names of those that have changed anything in this process
CHANGED: set[str] = set()
_off: set[str] = set()


def switchable(transformation: _Transformation) -> _Transformation:
    """Give a transformation a switch of its name; switched off, it returns its first argument."""
    name = transformation.__name__
    SWITCHES[name] = transformation

    @wraps(transformation)
    def switched(first, *others, **options):
        if not is_on(name):
            return first
        found = transformation(first, *others, **options)
        if found is not first:
            CHANGED.add(name)
        return found

    return cast(_Transformation, switched)


def is_on(name: str) -> bool:
    """Return whether the transformation of this name is not switched off."""
    return name not in _off


@contextmanager
def switched_off(*names: str) -> Iterator[None]:
    """Switch transformations off, by name, in this process."""
    added = set(names) - _off
    _off.update(added)
    try:
        yield
    finally:
        _off.difference_update(added)
