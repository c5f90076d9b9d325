"""Measure the peak of one core for a target that runs here: multiply-adds, and reads from caches and memory."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ...support.temporary_folder import scratch_folder
from ...targets import Target, zig_cc

#: bytes read again and again: of the two nearest caches, the last one, and memory
SIZES = (16 << 10, 512 << 10, 16 << 20, 256 << 20)
#: seconds a measurement takes, in turns of which the best counts
_TURNS, _SECONDS = 5, 0.05
_SOURCE = """
typedef float vector __attribute__((vector_size(4 * LANES), aligned(4)));
float products(long times) {
    vector acc[12], one = {0}, two = {0};
    for (int n = 0; n < 12; n++) acc[n] = one + (float)n;
    __asm__ volatile("" : "+CLASS"(one), "+CLASS"(two));
    for (long n = 0; n < times; n++) {
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++) acc[i] += one * two;
        __asm__ volatile("" : "+CLASS"(one), "+CLASS"(two));
    }
    vector sum = acc[0];
    for (int n = 1; n < 12; n++) sum += acc[n];
    return sum[0];
}
float reads(const float *data, long count, long times) {
    vector sum[8] = {0};
    for (long n = 0; n < times; n++) {
        for (long i = 0; i + 8 * LANES <= count; i += 8 * LANES)
#pragma GCC unroll 8
            for (int j = 0; j < 8; j++) sum[j] += *(const vector *)(data + i + j * LANES);
        __asm__ volatile("" : : : "memory");
    }
    return (sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7])[0];
}
"""


@dataclass(frozen=True)
class Peak:
    """Best rates of one core: `flops` in float operations a second, `bytes` a second by size of the data read."""

    flops: float
    bytes: dict[int, float]

    def seconds(self, flops: int, moved: int) -> float:
        """Return the least time of an operator that reads and writes `moved` bytes: its roofline."""
        rate = next((self.bytes[size] for size in SIZES if moved <= size), self.bytes[SIZES[-1]])
        return max(flops / self.flops, moved / rate)


def measure_peak(target: Target) -> Peak:
    """Measure this machine with the instructions of `target`, which it runs natively. Raises ToolchainError."""
    lanes = target.machine.lanes
    with scratch_folder() as folder:
        (folder / "peak.c").write_text(_SOURCE.replace("CLASS", _vector_class(target)), encoding="ascii")
        cpu = target.cpu.replace("-", "_")
        options = ["-O3", "-shared", "-fPIC", "-nostdlib", "-ffast-math", f"-mcpu={cpu}", f"-DLANES={lanes}"]
        zig_cc([*options, "peak.c", "-o", "peak.so"], target, folder)
        library = ctypes.CDLL(str(folder / "peak.so"))
    library.products.restype = library.reads.restype = ctypes.c_float
    count = 1_000_000
    flops = count * 12 * lanes * 2 / _least(lambda: library.products(ctypes.c_long(count)))
    rates = {}
    for size in SIZES:
        times = max(1, (64 << 20) // size)
        arguments = (ctypes.c_float * (size // 4))(), ctypes.c_long(size // 4), ctypes.c_long(times)
        rates[size] = size * times / _least(partial(library.reads, *arguments))
    return Peak(flops, rates)


def _vector_class(target: Target) -> str:
    """Return the letter of the vector registers in inline assembly; that of memory for others."""
    return {"x86_64": "x", "aarch64": "w"}.get(target.architecture, "m")


def _least(run: Callable[[], object]) -> float:
    run()
    least, end = float("inf"), time.perf_counter() + _TURNS * _SECONDS
    while time.perf_counter() < end:
        started = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - started)
    return least
