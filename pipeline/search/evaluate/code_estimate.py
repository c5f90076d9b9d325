"""Estimate the code of a library before it is built: each distinct kernel is compiled once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from tvm.tirx import PrimFunc

from ...codegen.elf import read_object
from ...codegen.functions.merge_kernels import merge_identical_kernels
from ...codegen.objects import build_object
from ...codegen.symbols import unused_sections
from ...kernels.lower.lower import Lowered
from ...support.temporary_folder import scratch_folder
from ...targets import Target
from ...tir.memoise import ByStructure

#: bytes of the C source without any step, and of a step's call: measured
_BASE, _STEP = 480, 45
_THREADS = 2


def code_of_calls(steps: int) -> int:
    """Return the bytes of code of a library of so many steps without its kernels."""
    return _BASE + _STEP * steps


class CodeEstimate:
    """Estimate text and read-only data of libraries for one target, with the bytes of each kernel cached."""

    def __init__(self, target: Target):
        self._target = target
        self._known: ByStructure[int] = ByStructure()

    def of(self, lowered: Lowered) -> int:
        """Return the bytes of code of a lowered program with specialised kernels."""
        lowered = merge_identical_kernels(lowered)
        new = {name: kernel for name, kernel in lowered.kernels.items() if self._known.get(kernel) is None}
        if new:
            self._compile(new)
        return code_of_calls(sum(1 for _ in lowered.program.calls())) + sum(
            self._known.get(each) or 0 for each in lowered.kernels.values()
        )

    def _compile(self, kernels: Mapping[str, PrimFunc]) -> None:
        with scratch_folder() as folder, ThreadPoolExecutor(_THREADS) as threads:  # LLVM releases Python's lock
            sizes = threads.map(
                lambda number, kernel: self._size(kernel, folder / f"{number}.o"), count(), kernels.values()
            )
            for kernel, size in zip(kernels.values(), sizes):
                self._known.put(size, kernel)

    def _size(self, kernel: PrimFunc, path: Path) -> int:
        build_object({"kernel": kernel}, self._target, path)
        found = read_object(path.read_bytes())
        return found.read_only_bytes(*unused_sections([found]))
