"""Estimate the cycles of executed instructions on microcontroller cores, by class of instruction.

    block of instructions, its runs and jumps ─► class of each ─► cycles at least, likely, at most

Sources, by core. M4: Arm Cortex-M4 TRM (DDI 0439), tables 3-1 and 7-1. M0+: Cortex-M0+ TRM (DDI 0484), table 3-1, with the fast
multiplier. M33: no table is published; that of the M4, at least a tenth less, as some pairs of short instructions issue
together. M7 and M55: no table is published either; M7 by measured pairs (M. Owen, Cortex-M7 instruction cycle counts,
quinapalus.com), M55 by its pipeline of four stages, single issue, low-overhead loops as branches; its vectors take two cycles, one of which
the next one overlaps if it is of another kind (Arm, Helium Programmer's Guide, 'Beats': two of four a cycle). rv32imc: ESP32-C3 TRM, ch. 1, a
core of four stages and single issue; its manual has no table.

At least: perfect pairing, shortest division, no wait. At most: no pairing, longest division, every line of code waits for flash.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

#: bytes that flash delivers at once, on the boards of the catalogue: 128 bits
_LINE = 16
_REGISTER = re.compile(r"\b(?:[rsdq]\d+|sb|sl|fp|ip|sp|lr|[ast]\d+|zero|ra|gp|tp)\b")
_VECTOR = re.compile(r"\bq\d")
_RANGE = re.compile(r"\{([^}]*)\}")


class Cycles(NamedTuple):
    """Cycles of a run: at least, likely and at most."""

    least: float
    likely: float
    most: float

    def __add__(self, other: Cycles) -> Cycles:  # type: ignore[override]
        return Cycles(*(one + two for one, two in zip(self, other, strict=True)))

    def times(self, factor: float) -> Cycles:
        """Return the cycles of `factor` runs."""
        return Cycles(*(each * factor for each in self))


@dataclass(frozen=True)
class Block:
    """Instructions from the address `first` to `end`, as text: they ran `runs` times, and `jumps` times went on elsewhere."""

    first: int
    end: int
    runs: int
    jumps: int
    text: tuple[str, ...]


@dataclass(frozen=True)
class CoreTimings:
    """Cycles of a core by class of instruction, each at least, likely and at most.

    `rows` are tried in order: a pattern of mnemonics, the cycles of one, and those for each register of a list. `jump` is added by a
    jump, `load_stall` and `float_stall` where an instruction reads the result of a load, or of the floating-point unit, just before.
    With `pipelined` a load or store just behind another takes a cycle less. `pairs` tells whether two independent instructions may
    issue at once; at least, all take `paired` of their cycles.
    """

    rows: tuple[tuple[re.Pattern[str], Cycles, float], ...]
    jump: Cycles
    load_stall: Cycles = Cycles(0, 0, 0)
    float_stall: Cycles = Cycles(0, 0, 0)
    pipelined: bool = False
    pairs: bool = False
    paired: float = 1.0


def _rows(*rows: tuple[str, tuple[float, float, float], float]) -> tuple[tuple[re.Pattern[str], Cycles, float], ...]:
    return tuple((re.compile(pattern), Cycles(*cycles), each) for pattern, cycles, each in rows)


_ONE = (1, 1, 1)
_M4 = _rows(
    (r"it[te]*$", (0, 0.5, 1), 0),
    (r"v(div|sqrt)", (14, 14, 14), 0),
    (r"v(n?ml[as]|fn?m[as])", (3, 3, 3), 0),
    (r"v(ldm|stm|push|pop)", _ONE, 1),
    (r"v(ldr|str)", (1, 2, 2), 0),
    (r"v", _ONE, 0),
    (r"(ldm|stm|push|pop|ldrd|strd)", _ONE, 1),
    (r"ldr", (2, 2, 2), 0),
    (r"str", (1, 1, 2), 0),
    (r"[us]div", (2, 7, 12), 0),
    (r"", _ONE, 0),
)
_M0 = _rows((r"(ldm|stm|push|pop)", _ONE, 1), (r"(ldr|str)", (2, 2, 2), 0), (r"", _ONE, 0))
_M7 = _rows(
    (r"it[te]*$", (0, 0, 1), 0),
    (r"v(div|sqrt)", (14, 16, 18), 0),
    (r"v(n?ml[as]|fn?m[as])", (1, 1, 3), 0),
    (r"v?(ldm|stm|push|pop)", (0, 1, 1), 0.5),
    (r"[us]div", (2, 7, 12), 0),
    (r"", _ONE, 0),
)
_M55 = _rows(
    # QEMU reads loads and stores of vectors as those of coprocessors, and some other instructions not at all
    (r".*\.q$|ldc|stc|\.byte", (1, 1.5, 2), 0),
    (r"it[te]*$", (0, 0, 1), 0),
    (r"v(div|sqrt)", (14, 15, 16), 0),
    (r"v?(ldm|stm|push|pop|ldrd|strd)", _ONE, 0.5),
    (r"[us]div", (2, 7, 12), 0),
    (r"", _ONE, 0),
)
_RV32 = _rows((r"(div|rem)u?$", (2, 17, 33), 0), (r"", _ONE, 0))
_TIMINGS = {
    "cortex-m0plus": CoreTimings(_M0, Cycles(1, 1, 2)),
    "cortex-m4": CoreTimings(_M4, Cycles(1, 2, 3), float_stall=Cycles(0, 1, 1), pipelined=True),
    "cortex-m33": CoreTimings(_M4, Cycles(1, 2, 3), float_stall=Cycles(0, 1, 1), pipelined=True, paired=0.9),
    "cortex-m7": CoreTimings(_M7, Cycles(0, 0.5, 8), Cycles(0, 1, 2), Cycles(0, 2, 3), pairs=True),
    "cortex-m55": CoreTimings(_M55, Cycles(0, 1, 3), Cycles(0, 1, 2), Cycles(0, 1, 2)),
    "generic-rv32": CoreTimings(_RV32, Cycles(1, 2, 3), Cycles(0, 1, 1)),
}


def core_timings(cpu: str) -> CoreTimings | None:
    """Return the timings of a core, in words of LLVM; None where they are not known."""
    return _TIMINGS.get(cpu)


def cycles_of(blocks: Iterable[Block], core: CoreTimings, wait_states: int = 0) -> Cycles:
    """Return the cycles of executed blocks.

    `wait_states` are those of a read of the flash that holds the code: at most, each line of it waits, as if nothing cached it.
    """
    total = Cycles(0, 0, 0)
    for block in blocks:
        straight = _straight(block.text, core)
        fetched = -(-(block.end - block.first) // _LINE) * (1 + wait_states)
        once = Cycles(straight.least, straight.likely, max(straight.most, fetched))
        total += once.times(block.runs) + core.jump.times(block.jumps)
    return total


def _straight(text: Sequence[str], core: CoreTimings) -> Cycles:
    """Return the cycles of one run through a block, without its jump."""
    total = Cycles(0, 0, 0)
    before, free = None, False
    for line in text:
        now = _instruction(line)
        cycles = _row(now.mnemonic, core, now.registers)
        depends = before is not None and bool(before.writes & now.reads)
        if depends and before is not None and before.unit in ("float", "load"):
            cycles += core.float_stall if before.unit == "float" else core.load_stall
        if core.pipelined and before is not None and now.single and before.single:
            cycles = Cycles(*(max(1.0, each - 1) for each in cycles))
        if core.pairs:
            # the second of two issues with the first, unless it needs its result or the same unit
            together = free and not depends and before is not None and (before.unit != now.unit or now.unit == "alu")
            cycles = Cycles(cycles.least / 2, max(0.0, cycles.likely - together), cycles.most)
            free = not together
        total += cycles
        before = now
    return Cycles(total.least * core.paired, total.likely, total.most)


class _Instruction(NamedTuple):
    mnemonic: str
    writes: frozenset[str]
    reads: frozenset[str]
    unit: str
    registers: int

    @property
    def single(self) -> bool:
        """Return whether it loads or stores one integer register."""
        return self.unit in ("load", "store") and not self.registers and not self.mnemonic.startswith("v")


@lru_cache(maxsize=1 << 16)
def _instruction(line: str) -> _Instruction:
    """Parse an instruction as QEMU disassembles it: `vmla.f32 s0, s1, s2`, `ldm.w r3!, {r1, r2}`, `lw a0, 4(sp)`."""
    mnemonic, _, operands = line.partition(" ")
    mnemonic = mnemonic.removesuffix(".w") + (".q" if _VECTOR.search(operands) else "")
    listed = _RANGE.search(operands)
    registers = len(listed[1].split(",")) if listed else 2 if mnemonic in ("ldrd", "strd") else 0
    names = _REGISTER.findall(operands)
    stores = mnemonic.startswith(("str", "vstr", "stm", "vstm", "push", "vpush", "cmp", "vcmp", "b", "sw", "sh", "sb"))
    written = frozenset(() if stores or not names else names[:2] if registers == 2 else names[:1])
    # an instruction that accumulates reads what it writes
    read = frozenset(names if stores or re.match(r"v?f?n?ml[as]|vfm|sml|uml", mnemonic) else names[1:])
    if mnemonic.startswith("v") and not mnemonic.startswith(("vldr", "vstr", "vldm", "vstm", "vpush", "vpop")):
        unit = "float"
    elif re.match(r"(v?ldr|v?ldm|v?pop|l[bhw]u?$)", mnemonic):
        unit = "load"
    elif re.match(r"(v?str|v?stm|v?push|s[bhw]$)", mnemonic):
        unit = "store"
    elif re.match(r"(s?mul|ml|sm|um|us?mul|[us]div)", mnemonic):
        unit = "product"
    else:
        unit = "branch" if re.match(r"(b|cb|tb|j|ret)", mnemonic) and not mnemonic.startswith(("bic", "bf")) else "alu"
    return _Instruction(mnemonic, written, read, unit, registers)


def _row(mnemonic: str, core: CoreTimings, registers: int) -> Cycles:
    """Return the cycles of an instruction by the first row that its mnemonic fits."""
    for pattern, cycles, each in core.rows:
        if pattern.match(mnemonic):
            return cycles + Cycles(*[each * registers] * 3)
    raise AssertionError("the last row takes every instruction")


def by_function(blocks: Iterable[Block], functions: Mapping[int, str]) -> dict[str, list[Block]]:
    """Group blocks by the function that holds them; `functions` are names by first address."""
    starts = sorted(functions)
    found: dict[str, list[Block]] = {}
    for block in blocks:
        at = bisect_right(starts, block.first) - 1
        if at >= 0:
            found.setdefault(functions[starts[at]], []).append(block)
    return found
