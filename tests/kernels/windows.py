"""Run single kernels on arrays: whole, and a few rows at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tvm

from passfit.kernels.lower.lower import Lowered
from passfit.kernels.rewrite.partial_sum import partial_sum, sums_over
from passfit.program import Rows
from passfit.tir.row_window import row_window, rows_of

from .programs import build


class Single:
    """Hold the only kernel of a program and its operands, weights included."""

    def __init__(self, lowered: Lowered, seed: int = 1):
        (step,) = lowered.program.steps
        self.kernel = lowered.kernels[step.kernel]
        generator = np.random.default_rng(seed)
        tensors = [lowered.program.tensors[t] for t in step.reads]
        self.operands = [generator.uniform(0.5, 9, each.shape).astype(each.dtype) for each in tensors]
        result = self.kernel.params[-1].ty
        self.shape, self.dtype = tuple(map(int, result.shape)), str(result.dtype)
        self.result = self.run(build({"f": self.kernel})["f"], self.operands)

    def run(
        self, function, operands: Sequence[np.ndarray], rows: tuple[int, int] | None = None, first: int | None = None
    ) -> np.ndarray:
        """Run a kernel on arrays; `rows` is the axis and number of rows of its result."""
        shape = list(self.shape)
        if rows is not None:
            shape[rows[0]] = rows[1]
        result = tvm.runtime.tensor(np.full(shape, 77, self.dtype))
        numbers = () if first is None else (first,)
        function(*numbers, *(tvm.runtime.tensor(np.array(each, order="C")) for each in operands), result)
        return result.numpy()

    def rows(self) -> list[Rows]:
        found = (rows_of(self.kernel, axis) for axis in range(len(self.shape)))
        return [each for each in found if each is not None]

    def sums(self) -> list[tuple[int, int]]:
        places = [(n, axis) for n, each in enumerate(self.operands) for axis in range(each.ndim)]
        return [(n, axis) for n, axis in places if sums_over(self.kernel, n, axis)]


def check_windows(single: Single) -> None:
    """Compare all row windows with the whole kernel; rows declared unneeded are overwritten with NaN or 99."""
    cases = [(rows, count) for rows in single.rows() for count in {1, max(1, rows.extent // 2)}]
    windows = {f"f{n}": row_window(single.kernel, rows.axis, count) for n, (rows, count) in enumerate(cases)}
    library = build(windows)
    for number, (rows, count) in enumerate(cases):
        axis = rows.axis
        for first in range(0, rows.extent - count + 1, count):
            needed = list(single.operands)
            for n, follows in rows.operands:
                assert follows.extent == needed[n].shape[follows.axis] and len(follows.low) == rows.extent
                low, high = min(follows.low[first : first + count]), max(follows.high[first : first + count])
                needed[n] = needed[n].copy()
                lines = np.moveaxis(needed[n], follows.axis, 0)
                lines[: max(0, low)] = lines[max(0, high) :] = np.nan if needed[n].dtype.kind == "f" else 99
            found = single.run(library[f"f{number}"], needed, (axis, count), first)
            wanted = np.moveaxis(np.moveaxis(single.result, axis, 0)[first : first + count], 0, axis)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, err_msg=f"row {first} of axis {axis}")


def check_sums(single: Single) -> None:
    """Check that partial sums accumulate to the result, each from its rows alone, on dirty memory."""
    cases = []
    for n, axis in single.sums():
        extent = single.operands[n].shape[axis]
        cases += [(n, axis, count) for count in (1, 2) if extent % count == 0]
    found = [partial_sum(single.kernel, *case) for case in cases]
    parts = {f"part{number}": each.part for number, each in enumerate(found)}
    finishes = {f"finish{number}": each.finish for number, each in enumerate(found) if each.finish is not None}
    library = build(parts | finishes)
    for number, (n, axis, count) in enumerate(cases):
        result = np.full(single.shape, np.nan if single.dtype.startswith("float") else 77, single.dtype)
        for first in range(0, single.operands[n].shape[axis], count):
            operands = list(single.operands)
            operands[n] = np.full_like(operands[n], np.nan)
            now, before = (np.moveaxis(each[n], axis, 0) for each in (operands, single.operands))
            now[first : first + count] = before[first : first + count]
            result = single.run(library[f"part{number}"], [*operands, result], first=first)
        if f"finish{number}" in finishes:
            operands[n] = np.full_like(operands[n], np.nan)
            result = single.run(library[f"finish{number}"], [*operands, result])
        scale = max(1.0, float(np.abs(single.result).max()))
        np.testing.assert_allclose(result, single.result, rtol=1e-5, atol=1e-5 * scale, err_msg=f"{(n, axis, count)}")
