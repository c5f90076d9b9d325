"""Convolutions of integers with channels last: the kernel, its schedule by a rule, and their results on the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tvm
from tvm import te
from tvm.tirx import PrimFunc

from passfit.codegen.objects import build_module
from passfit.frontend.relax.integer.quantity import Quantity
from passfit.frontend.relax.integer.sums import Requantisation, Sum, Window, convolution
from passfit.kernels.rewrite.channels_last import with_channels_last
from passfit.kernels.rules.rule import RuleResult
from passfit.kernels.schedule.candidates import RULE_WORKSPACE
from passfit.targets import get_target, how_to_run
from passfit.tir.row_window import row_window
from passfit.tir.workspace import workspace_bytes

from ...programs import HOST

#: processors to run kernels on, without LLVM's optimisations: any, and those with pairs that this machine has
PROCESSORS = [
    HOST,
    *(t.llvm_config() | HOST for t in map(get_target, ("x86-64", "x86-64-v4")) if how_to_run(t).native),
]
MACHINES = [get_target(name).machine for name in ("x86-64", "x86-64-v4")]


def fit_pads(
    size: tuple[int, int], taps: tuple[int, int], dilations: tuple[int, int], pads: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return pads less than the reach of the taps; None where no window fits the padded data."""
    reach = [(tap - 1) * dilation + 1 for tap, dilation in zip(taps, dilations)]
    pads = tuple(min(pad, extent - 1) for pad, extent in zip(pads, reach * 2))
    return pads if all(extent + pads[n] + pads[n + 2] >= reach[n] for n, extent in enumerate(size)) else None


def conv(
    channels: int, filters: int, size: tuple[int, int], taps: tuple[int, int], *, strides: tuple[int, int] = (1, 1),
    dilations: tuple[int, int] = (1, 1), pads: tuple[int, int, int, int] = (0, 0, 0, 0), zero: int = 3, dtype: str = "int8",
    groups: int = 1, last: Sequence[int] = (0, 4), batch: int = 1,
) -> PrimFunc:  # fmt: skip
    """Convolve by weights with a multiplier and a bias for each channel; parameters in `last` have channels last."""
    x = te.placeholder((batch, channels, *size), dtype, "x")
    w = te.placeholder((filters, channels // groups, *taps), "int8", "w")
    multiplier, bias = te.placeholder((filters, 1, 1), "float32", "m"), te.placeholder((filters, 1, 1), "int32", "b")
    form = Sum(
        (Quantity(zero), Quantity(0)), Requantisation(Quantity(place=2), Quantity(-5), "int8", Quantity(place=3))
    )
    window = Window(strides, dilations, pads[:2], pads[2:], groups)
    y = convolution(x, w, multiplier, bias, form=form, window=window)
    kernel = te.create_prim_func([x, w, multiplier, bias, y], index_dtype_override="int64")
    return with_channels_last(kernel, frozenset(last), frozenset({1}))[0]


def operands_of(kernel: PrimFunc, seed: int) -> list[np.ndarray]:
    """Draw operands: many bytes are the least, so that products are the largest."""
    random = np.random.default_rng(seed)
    found = []
    for param in kernel.params[-5:-1]:
        shape, dtype = [int(each) for each in param.ty.shape], str(param.ty.dtype)
        if dtype == "float32":
            found.append(random.uniform(0.0001, 0.004, shape).astype(dtype))
            continue
        low, high = (-1000, 1000) if dtype == "int32" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        values = random.integers(low, high, shape, endpoint=True)
        found.append(np.where(random.random(shape) < 0.2, low, values).astype(dtype))
    return found


def runner(kernel: PrimFunc, processor: dict) -> Callable[[Sequence[np.ndarray], int | None], np.ndarray]:
    """Build a kernel once; the function runs it on operands, and from a first row if it is a window."""
    function = build_module({"f": kernel}, processor)["f"]
    shape = [int(each) for each in kernel.params[-1].ty.shape]

    def run(operands: Sequence[np.ndarray], first: int | None) -> np.ndarray:
        result = tvm.runtime.tensor(np.full(shape, 77, "int8"))
        function(*(() if first is None else (first,)), *map(tvm.runtime.tensor, operands), result)
        return result.numpy()

    return run


def assert_exact(
    kernel: PrimFunc,
    found: Sequence[RuleResult],
    seed: int = 0,
    rows: Sequence[int] = (),
    processors: Sequence[dict] = PROCESSORS,
) -> None:
    """Compare the only schedule with the kernel; `rows` are first rows of a window of one."""
    (only,) = found
    assert workspace_bytes(only.kernel) <= (only.workspace or 0) <= RULE_WORKSPACE
    operands = operands_of(kernel, seed)
    packed = list(operands)
    for each in only.repacks:
        number = each.parameter - bool(rows)
        packed[number] = each.apply(operands[number])
    whole = runner(kernel, PROCESSORS[0])
    expected = {first: whole(operands, first) for first in rows or (None,)}
    for processor in processors:
        ours = runner(only.kernel, processor)
        for first, result in expected.items():
            np.testing.assert_array_equal(ours(packed, first), result)


def row_of(kernel: PrimFunc) -> PrimFunc:
    """Return the kernel of one row of a result with channels last."""
    return row_window(kernel, 1, 1)
