"""Describe the devices: the catalogue, each target's C toolchain, and its emulator.

Public faces: `get_target`, `load_catalogue`, `native_target`, `how_to_run`, and `zig_cc` with its companions.
"""

from .boards import emulated_board
from .catalogue import Catalogue, get_target, load_catalogue
from .emulator import Runner, emulator_command, how_to_run
from .libc import bare_target, host_libc, program_libc
from .machine import Machine
from .native import native_target
from .target import Target
from .toolchain import strip_debug, toolchain_version, zig_ar, zig_cc, zig_link

__all__ = [
    "Catalogue",
    "Machine",
    "Runner",
    "Target",
    "bare_target",
    "emulated_board",
    "emulator_command",
    "get_target",
    "host_libc",
    "how_to_run",
    "load_catalogue",
    "native_target",
    "program_libc",
    "strip_debug",
    "toolchain_version",
    "zig_ar",
    "zig_cc",
    "zig_link",
]
