"""Find the rows that stages of a fused kernel compute at a time, within bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tvm.ir import Var

from ...memory import ALIGNMENT
from ...memory.liveness import aligned
from ...program import DTYPE_BYTES
from ...tir.row_window import rows_of
from .divide_stages import Stage


@dataclass(frozen=True)
class RowWindows:
    """Rows of a kernel's values along an axis each; `count` at a time, `extent` together.

    Values not in `axes` are computed whole; of operands in `partly`, each window reads its part.
    """

    axes: dict[Var, int] = field(default_factory=dict)
    partly: frozenset[Var] = frozenset()
    count: int = 1
    extent: int = 1


def row_windows(stages: Sequence[Stage], held: int) -> RowWindows | None:
    """Find the rows to compute at a time: all if they may be held, else as many as the best axis allows."""
    between = [stage.result for stage in stages[:-1]]
    if sum(map(value_bytes, between)) <= held:
        return RowWindows()
    found = []
    for axis in range(len(stages[-1].result.ty.shape)):
        windows = _rows_along(stages, axis)
        if windows is None:
            continue
        rows = [each for each in between if each in windows.axes]
        whole = sum(value_bytes(each) for each in between if each not in windows.axes)
        counts = (n for n in range(windows.extent - 1, 0, -1) if windows.extent % n == 0)
        fitting = (n for n in counts if whole + sum(value_bytes(each, n, windows.extent) for each in rows) <= held)
        if rows and (count := next(fitting, None)) is not None:
            found.append(replace(windows, count=count))
    return min(found, key=lambda each: each.extent // each.count, default=None)


def _rows_along(stages: Sequence[Stage], axis: int) -> RowWindows | None:
    """Follow the rows of the result to all values they are computed from, one row from one; None if they do not."""
    result = stages[-1].result
    extent = int(result.ty.shape[axis])
    axes: dict[Var, int] = {result: axis}
    whole: set[Var] = set()
    partly: set[Var] = set()
    computed = {stage.result for stage in stages}
    for stage in reversed(stages):
        if stage.result in whole or stage.result not in axes:
            whole.update(stage.operands)
            continue
        rows = rows_of(stage.kernel, axes[stage.result])
        if rows is None:
            return None
        follows = dict(rows.operands)
        for number, operand in enumerate(stage.operands):
            found = follows.get(number)
            partly.update([operand] if found is not None else [])
            same = found is not None and found.low == tuple(range(extent)) and found.high == tuple(range(1, extent + 1))
            if found is not None and same and axes.setdefault(operand, found.axis) == found.axis:
                continue
            whole.add(operand)
    kept = {value: at for value, at in axes.items() if value not in whole and int(value.ty.shape[at]) == extent}
    return RowWindows(kept, frozenset(partly), 1, extent) if all(each in kept or each in whole for each in computed) else None


def value_bytes(buffer: Var, count: int = 1, extent: int = 1) -> int:
    size = math.prod(int(each) for each in buffer.ty.shape) * DTYPE_BYTES[str(buffer.ty.dtype)]
    return aligned(size // extent * count, ALIGNMENT)
