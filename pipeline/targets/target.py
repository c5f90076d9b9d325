"""Describe a target: the device a library is compiled for."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from ..errors import ConfigError, did_you_mean
from .dot_products import DOT_PRODUCTS, dot_products
from .machine import WIDE_REGISTERS, WIDE_STACK, Machine, machine_of
from .memory import Kind, Memory, select_kind

Optimisation = Literal["size", "balanced", "speed"]
#: forbidden values in data: a run fails, takes the nearest allowed ones, or trusts its inputs
IndexChecks = Literal["fail", "clamp", "off"]

#: features spelled by their parts. From "+v" TVM makes loops over vectors of unknown length, which keep accumulators in
#: memory: 14 times the instructions (counted for mtcnn-rnet)
_PARTS = {"+v": ("+zve64d", "+zvl128b")}
#: weight of code against time, and LLVM's level for it. Level 3 unrolls loops twice as far as level 2, for up to 1.7 times
#: the code and 0 to 3 % of the time on x86-64, and 9 to 18 % of the instructions elsewhere; level 1 vectorises no loop, for 5 % of the code and 1.5 times the time. LLVM's other
#: options, TVM's `cl-opt`, belong to the process: set for one library, they leaked into the next
_LLVM_LEVELS = {"size": 2, "balanced": 3, "speed": 3}
_BALANCED_LEVELS = {"x86_64": 2}
#: bytes of ram that a search leaves for the stack, without and with an operating system. Measured: 72 to 696, 140 to 7,024
_BARE_STACK, _LINUX_STACK = 768, 8192
_FAMILY = re.compile(r"[a-z]+(?:\d+(?=[a-z-]))?")
#: most threads: more than devices have cores
MOST_THREADS = 64

#: bytes of vectors that stay in the nearest cache of processors with AVX-512, most of which have 48 KiB
_WIDE_NEAR = 40960
#: names of processors with AVX-512 at full rate, in words of LLVM
_WITH_AVX512 = frozenset({"x86-64-v4", "skylake-avx512", "cascadelake", "icelake-server", "sapphirerapids", "znver5"})
#: names of processors with AVX2
_WITH_AVX2 = _WITH_AVX512 | {"x86-64-v3", "haswell", "skylake", "alderlake", "znver1", "znver2", "znver3", "znver4"}


def has_avx512(architecture: str, cpu: str, features: Collection[str]) -> bool:
    """Return whether a processor, in words of LLVM, has AVX-512 at full rate."""
    return architecture == "x86_64" and ("+avx512bw" in features or cpu in _WITH_AVX512)


@dataclass(frozen=True)
class Target:
    """Device with its capacities: `ram` and `flash` are its own, in bytes, not a budget.

    `triple`, `cpu`, `features`, `float_abi` and `abi` are LLVM's words and choose TVM's code; `zig_target` chooses
    the C toolchain and libc. `weights` tells how the device reads them: "in-place" from flash or from the mapped
    program file, or "copied" to RAM first. `emulator` is a qemu command, with options if it needs any.
    A device without an operating system has `memories`, and `ram` and `flash` are the sums of each kind. It runs images;
    those of a device without an emulator of its own are linked for the board `emulated_on`, which runs its instructions. A device
    on the desk has a `runner` instead, the words of a command: see `desk.py`. `mhz` is the clock of its core.
    `source` names the origin of these facts. `threads`, `opt` and `index_checks` are choices, not facts: how many threads
    run a library's loops, the weight of its code's size against its speed, and its answer to values that operators forbid.
    """

    name: str
    triple: str
    cpu: str
    zig_target: str
    ram: int
    flash: int
    description: str
    source: str
    features: tuple[str, ...] = ()
    float_abi: str | None = None
    abi: str | None = None
    weights: Literal["in-place", "copied"] = "in-place"
    alignment: int = 64
    emulator: str | None = None
    memories: tuple[Memory, ...] = ()
    mhz: int | None = None
    emulated_on: str | None = None
    runner: tuple[str, ...] = ()
    threads: int = 1
    opt: Optimisation = "balanced"
    index_checks: IndexChecks = "fail"

    @property
    def machine(self) -> Machine:
        """Return the processor as schedule rules see it."""
        x86 = self.architecture == "x86_64"
        pairs = x86 and ("+avx2" in self.features or self.cpu in _WITH_AVX2)
        found = machine_of(self.architecture, self.features)
        if has_avx512(self.architecture, self.cpu, self.features):
            found = replace(
                found, lanes=16, registers=WIDE_REGISTERS, keep_tap_loops=False, l1_bytes=_WIDE_NEAR, stack=WIDE_STACK
            )
        dots = dot_products(self.architecture, self.cpu, self.features) if pairs or not x86 else ()
        return replace(found, threads=self.threads, compact=self.opt == "size", pmaddwd=pairs, dots=dots)

    @property
    def zig_cpu(self) -> str:
        """Return cpu and features in words of zig, such as `cortex_m4+vfp4d16sp`: MVE is for kernels (codegen/bare/helium.py)."""
        unknown = frozenset[str]().union(*(row.features for row in DOT_PRODUCTS if not row.zig))
        known = [each for each in self.features if each not in unknown]
        features = "".join(each[0] + each[1:].replace("-", "_").replace(".", "_") for each in known)
        return self.cpu.replace("-", "_") + re.sub(r"\+mve(_fp)?", "-mve_fp-mve", features)

    @property
    def bare(self) -> bool:
        """Return whether the device has no operating system, and so no libc: LLVM's system is `none`."""
        return "none" in self.triple.split("-")

    @property
    def family(self) -> str:
        """Return the letters that its name begins with, and a number that more follows: `stm32`, `nrf`, `rpi`."""
        begins = _FAMILY.match(self.name)
        return begins[0] if begins else self.name

    @property
    def stack_reserve(self) -> int:
        """Return the bytes of ram a search leaves for the stack, which is measured when the library runs."""
        return _BARE_STACK if self.bare else _LINUX_STACK

    def with_threads(self, threads: int) -> Target:
        """Return the device with libraries run by `threads` threads.

        Raises ConfigError if the number is out of range, or the target has no POSIX threads.
        """
        if threads < 1 or threads > MOST_THREADS:
            raise ConfigError(f"threads is {threads}.", f"Give a number from 1 to {MOST_THREADS}.")
        if threads > 1 and "linux" not in self.triple.split("-"):
            raise ConfigError(
                f"threads is {threads}, but the target '{self.name}' ({self.triple}) has no POSIX threads.",
                "Leave threads out there.",
            )
        return replace(self, threads=threads)

    def with_opt(self, opt: str | None) -> Target:
        """Return the device with libraries built for `size`, `balanced` or `speed`; None keeps the device's own choice.

        Raises ConfigError for other words.
        """
        if opt is None:
            return self
        if opt not in _LLVM_LEVELS:
            raise ConfigError(f"opt is '{opt}'.", f"Give one of {', '.join(_LLVM_LEVELS)}.")
        return replace(self, opt=cast("Optimisation", opt))

    def with_index_checks(self, checks: str) -> Target:
        """Return the device with libraries that `fail` or `clamp` at forbidden values, or do neither (`off`).

        Raises ConfigError for other words.
        """
        if checks not in get_args(IndexChecks):
            raise ConfigError(f"index-checks is '{checks}'.", f"Give one of {', '.join(get_args(IndexChecks))}.")
        return replace(self, index_checks=cast("IndexChecks", checks))

    def with_rooms(self, rooms: Mapping[str, int]) -> Target:
        """Return the device with libraries that use no more bytes of some memories than given, by name.

        Raises ConfigError for a memory it lacks.
        """
        names = [each.name for each in self.memories]
        for name in rooms:
            if name not in names:
                hint = (
                    did_you_mean(name, names)
                    if names
                    else "A device with an operating system has no memories by name: limit ram or flash."
                )
                raise ConfigError(f"The target '{self.name}' has no memory '{name}'.", hint)
        return (
            replace(self, memories=tuple(replace(each, room=rooms.get(each.name, each.room)) for each in self.memories))
            if rooms
            else self
        )

    def usable(self, kind: Kind) -> int:
        """Return the bytes of ram or flash that a library may use: no more than the rooms in its memories."""
        capacity = self.ram if kind == "ram" else self.flash
        return (
            min(capacity, sum(each.usable for each in select_kind(self.memories, kind))) if self.memories else capacity
        )

    def llvm_config(self) -> dict:
        """Return the dict for `tvm.target.Target` to build libraries: `tvm_config` with LLVM's level for `opt`."""
        level = _LLVM_LEVELS[self.opt]
        if self.opt == "balanced":
            level = _BALANCED_LEVELS.get(self.architecture, level)
        return self.tvm_config() | {"opt-level": level}

    def tvm_config(self) -> dict:
        """Return the dict for `tvm.target.Target`: facts alone, the rest as TVM has it."""
        config: dict = {"kind": "llvm", "mtriple": self.triple, "mcpu": self.cpu}
        if self.features:
            config["mattr"] = [each for word in self.features for each in _PARTS.get(word, (word,))]
        if self.float_abi:
            config["mfloat-abi"] = self.float_abi
        if self.abi:
            config["mabi"] = self.abi
        if self.architecture == "thumb":
            config["vector-width"] = 128  # what TVM assumes, and warns of, for an architecture that it does not know
        return config

    @property
    def architecture(self) -> str:
        """Return the first word of the triple without its version: x86_64, aarch64, arm, riscv64, riscv32; thumb for Cortex-M."""
        word = self.triple.split("-")[0]
        return next((each for each in ("armv", "thumb") if word.startswith(each)), word).removesuffix("v")
