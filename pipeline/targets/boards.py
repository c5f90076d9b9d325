"""Find the board whose emulator runs a device's images."""

from __future__ import annotations

from dataclasses import replace

from .catalogue import get_target
from .memory import place_on
from .target import Target


def emulated_board(target: Target) -> Target:
    """Return a device's core on the board that an emulator has for it: its clock, its emulator, and room for its memories.

    The device itself, if it names no such board, or has a runner. Raises TargetError for an unknown one.
    """
    if target.emulated_on is None or target.runner:
        return target
    board = get_target(target.emulated_on)
    return replace(
        target,
        name=board.name,
        memories=place_on(target.memories, board.memories),
        mhz=board.mhz,
        emulator=board.emulator,
    )
