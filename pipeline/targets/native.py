"""Find the catalogue's target for this machine."""

from __future__ import annotations

from .catalogue import load_catalogue
from .emulator import how_to_run
from .target import Target


def native_target() -> Target | None:
    """Return the first catalogue entry that runs here without an emulator; None if there is none.

    Only passfit's own entries count, in the catalogue's order.
    """
    return next((target for target in load_catalogue().values() if how_to_run(target).native), None)
