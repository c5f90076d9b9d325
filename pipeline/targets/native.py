"""The target this machine itself is, where the catalogue knows it."""

from __future__ import annotations

from .catalogue import load_catalogue
from .emulator import how_to_run
from .target import Target


def native_target() -> Target | None:
    """passfit's own entry that runs here without an emulator, the first in the catalogue's order; None without one."""
    return next((target for target in load_catalogue().values() if how_to_run(target).native), None)
