"""Model the cycles of kernels: a roofline over operations, with the latency of dependent sums.

    statement:  max(arithmetic / rate, loads / rate, stores / rate, all / width, steps of a sum × latency,
                    bytes from beyond a cache / its bandwidth)
    kernel:     max(sum of its statements, bytes of operands and results / bandwidth) + call
                the bandwidth of the second cache in a loop whose tensors fit it

Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009; the ceilings are those of instruction-level parallelism. A
model ranks candidates of one model on one target. It is not a clock: caches, prefetching and register spills are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

#: bytes of the cache next to a core, on every core here
FIRST_CACHE = 32 << 10


@dataclass(frozen=True)
class StatementWork:
    """Hold the instructions of a statement in one call of its kernel.

    `arithmetic`, `loads` and `stores` are vector instructions, or scalar ones where nothing is vectorized. `control` are
    those of the loops around. `chain` counts dependent steps of all sums one after the other, `steps` those of one sum.
    `refilled` are the bytes that loads bring into the first cache, `missed` into the last once more.
    """

    arithmetic: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    control: float = 0.0
    chain: float = 0.0
    steps: int = 1
    refilled: float = 0.0
    missed: float = 0.0

    @property
    def instructions(self) -> float:
        return self.arithmetic + self.loads + self.stores + self.control


@dataclass(frozen=True)
class KernelWork:
    """Hold the statements of a kernel, and the bytes of its operands and results."""

    statements: tuple[StatementWork, ...]
    nbytes: int


@dataclass(frozen=True)
class Core:
    """Rates of a processor core, per cycle: vector instructions by kind, and of all kinds.

    `latency` is the cycles of a dependent multiply-add; `window` the instructions in flight, which run side by side if
    independent. `cached` and `memory` are sustained bytes per cycle, of the last cache, with `cache` bytes, and beyond;
    `refill` is that into the first cache, of FIRST_CACHE bytes, from a second one of `second` bytes. `call` is the cycles of
    a kernel's call.
    """

    arithmetic: float
    loads: float
    stores: float
    width: float
    latency: float
    window: float
    cache: int
    cached: float
    memory: float
    refill: float
    call: float = 50.0
    second: int = 0


#: by architecture, a typical core of the catalogue: Haswell, Cortex-A72, Cortex-A8, Cortex-M4, a core of rv32imc, SiFive U74.
#: Sources: Fog, Instruction
#: tables (2022); Intel, Optimization Reference Manual (2023), sustained bandwidths; Arm, Cortex-A72 Software Optimization
#: Guide (2015); Cortex-A8 TRM, ch. 16; Cortex-M4 TRM, ch. 3.3; SiFive, U74 manual (21G1)
CORES = {
    "x86_64": Core(2, 2, 1, 4, latency=5, window=192, cache=8 << 20, cached=18, memory=4, refill=48, second=1 << 20),
    "aarch64": Core(1, 1, 1, 3, latency=7, window=128, cache=1 << 20, cached=8, memory=2, refill=8),
    "arm": Core(0.5, 1, 1, 2, latency=9, window=8, cache=1 << 18, cached=8, memory=1, refill=4),
    "thumb": Core(1, 0.5, 1, 1, latency=2, window=1, cache=1 << 18, cached=4, memory=4, refill=4, call=20),
    "riscv32": Core(1, 0.5, 1, 1, latency=1, window=1, cache=1 << 18, cached=4, memory=4, refill=4, call=20),
    "riscv64": Core(1, 1, 1, 2, latency=5, window=8, cache=1 << 20, cached=8, memory=2, refill=8),
}
_OTHER = CORES["aarch64"]


def core_of(architecture: str) -> Core:
    """Return the core of an architecture; one of the middle for an unknown one."""
    return CORES.get(architecture, _OTHER)


def kernel_cycles(work: KernelWork, core: Core, near: bool = False) -> float:
    """Return the cycles of one call of a kernel; `near` if its operands are in the second cache, from a trip before."""
    moved = work.nbytes / max(core.refill, core.cached) if near else least_cycles(0, work.nbytes, core)
    return max(sum(_statement_cycles(each, core) for each in work.statements), moved) + core.call


def least_cycles(arithmetic: float, nbytes: int, core: Core) -> float:
    """Return the least cycles for so many instructions of arithmetic, and for bytes read and written."""
    return max(arithmetic / core.arithmetic, nbytes / (core.cached if nbytes <= core.cache else core.memory))


def _statement_cycles(work: StatementWork, core: Core) -> float:
    in_flight = 1.0
    if work.chain:  # sums shorter than the window overlap
        in_flight = max(1.0, core.window * work.chain / (work.instructions * work.steps))
    return max(
        work.arithmetic / core.arithmetic,
        work.loads / core.loads,
        work.stores / core.stores,
        work.instructions / core.width,
        work.chain * core.latency / in_flight,
        work.refilled / core.refill,
        work.missed / core.memory,
    )
