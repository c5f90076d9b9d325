"""Choose how this machine runs a target's program: natively, under an emulator, or not at all."""

from __future__ import annotations

import platform
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..errors import ToolchainError
from .desk import fill_in
from .machine import riscv_vector_bits
from .target import Target

_CPUINFO = Path("/proc/cpuinfo")
#: options for qemu to run an image: files of this machine by semihosting, and a clock of one nanosecond an instruction
_IMAGE_OPTIONS = (
    "-nographic", "-monitor", "none", "-serial", "none", "-semihosting-config", "enable=on,target=native", "-icount", "shift=0",
    "-kernel",
)  # fmt: skip
#: Debian's packages of emulators, by the beginning of a name, the first that fits
_PACKAGES = {"qemu-system-arm": "qemu-system-arm", "qemu-system": "qemu-system-misc", "": "qemu-user-static"}
#: flags of /proc/cpuinfo each level adds (x86-64 psABI, micro-architecture levels); Linux calls LZCNT `abm`, SSE3 `pni`
_LEVEL_FLAGS = (
    ("x86-64", ("cx8", "cmov", "fxsr", "mmx", "sse", "sse2")),
    ("x86-64-v2", ("cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3")),
    ("x86-64-v3", ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave")),
    ("x86-64-v4", ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
)
#: LLVM's features that Linux spells in another way
_FLAGS = {"avx512vnni": "avx512_vnni"}
#: "CPU part" of Arm Ltd. (implementer 0x41) → LLVM's cpu name
_ARM_PARTS = {"0xd03": "cortex-a53", "0xd08": "cortex-a72", "0xd07": "cortex-a57", "0xd0b": "cortex-a76"}


@dataclass(frozen=True)
class Runner:
    """Command prefix for running a program, or an image: empty for a native run, None if it cannot run here.

    That of a device on the desk is a whole command, to be filled in. `how` is footprint.json's word: "native", "qemu-aarch64",
    "the runner of my-board", or "not-run: <reason, next step>".
    """

    command: list[str] | None
    how: str

    @property
    def words(self) -> list[str]:
        """Return the command. Raises ToolchainError if there is none."""
        if self.command is None:
            raise ToolchainError(f"No program can run here: {self.how}.", "See `passfit targets` for those that can.")
        return self.command

    @property
    def native(self) -> bool:
        """Tell whether the program runs without an emulator."""
        return self.command == []


def how_to_run(target: Target) -> Runner:
    """Return how this machine runs programs of `target`; never fails."""
    if platform.system() != "Linux":
        return Runner(None, f"not-run: {platform.system()} cannot run Linux programs; run passfit on Linux")
    if target.runner:
        return _desk(target)
    why = _why_not_native(target)
    if not why:
        return Runner([], "native")
    if not target.emulator:
        return Runner(None, f'not-run: {why}, and no emulator is given; add emulator = "qemu-…" to the target')
    name, *options = shlex.split(target.emulator)
    for program in (f"{name}-static", name):
        path = shutil.which(program)
        if path:
            if target.bare:
                return Runner([path, *options, *_IMAGE_OPTIONS], f"{name} as {target.emulated_on or target.name}")
            return Runner([path, *options], name)
    package = next(package for start, package in _PACKAGES.items() if name.startswith(start))
    return Runner(None, f"not-run: {name} is not installed; install it with: apt-get install {package}")


def emulator_command(target: Target) -> list[str]:
    """Return the command of a target's own emulator, with its options; empty without one."""
    if not target.emulator or target.emulated_on:
        return []
    return [*shlex.split(target.emulator), *(_IMAGE_OPTIONS if target.bare else ())]


def _desk(target: Target) -> Runner:
    """Return the runner of a device on the desk, its words not filled in yet."""
    program = fill_in(target.runner[:1], {"python": sys.executable, "repo": str(Path.cwd())})[0]
    if shutil.which(program) is None:
        return Runner(
            None, f"not-run: '{program}' is not installed; install it, or correct the runner of {target.name}"
        )
    return Runner(list(target.runner), f"the runner of {target.name}")


def _why_not_native(target: Target) -> str:
    """Return the reason against a native run; empty if there is none.

    A native run needs the target's architecture and every feature its code may use.
    """
    machine = platform.machine()
    if target.bare:
        return "the device has no operating system"
    if target.architecture != machine:
        return f"the host is {machine}"
    flags, parts = _host_cpu()
    if machine == "x86_64":
        needed = _x86_flags(target)
        if needed is None:
            return f"the host features that {target.cpu} needs are not known"
        lacking = sorted(needed - flags)
        return f"the host lacks {', '.join(lacking)}" if lacking else ""
    if riscv_vector_bits(target.features):
        return "the length of the host's vectors is not known"
    if target.cpu in ("generic", "generic-rv64") or target.cpu in parts:
        return ""
    return f"the host is not a {target.cpu}"


def _x86_flags(target: Target) -> frozenset[str] | None:
    """Return the flags the target's level and `+features` need; None for a cpu that is not a psABI level."""
    needed: set[str] = set()
    for level, flags in _LEVEL_FLAGS:
        needed.update(flags)
        if level == target.cpu:
            words = (word[1:] for word in target.features if word.startswith("+"))
            needed.update(_FLAGS.get(word, word.replace(".", "_")) for word in words)
            return frozenset(needed)
    return None


@lru_cache(maxsize=1)
def _host_cpu() -> tuple[frozenset[str], frozenset[str]]:
    """Return the host's cpu flags, and on Arm the LLVM names of its cores."""
    flags: set[str] = set()
    parts: set[str] = set()
    for line in _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            flags.update(value.split())
        elif key.strip() == "CPU part":
            parts.add(_ARM_PARTS.get(value.strip(), value.strip()))
    return frozenset(flags), frozenset(parts)
