"""Build kernels of integer convolutions and matrix products.

    sum = Σ (x − x's zero point) · (w − w's zero point)        int16 each, int32 the sum
    result = round((sum + bias) · multiplier) + y's zero point, saturated; or the sum itself

The arithmetic of QLinearConv and QLinearMatMul in ONNX, with float32 multipliers as in ONNX Runtime. Padding is 0 once
the zero point is subtracted. Operands are widened one by one: no copy of them is ever made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te, tirx
from tvm.ir import Expr

from .quantity import Quantity
from .requantize import to_integer


@dataclass(frozen=True)
class Requantisation:
    """Way from an int32 sum to a result of `dtype`."""

    multiplier: Quantity
    zero: Quantity
    dtype: str
    bias: Quantity | None = None


@dataclass(frozen=True)
class Sum:
    """Sum of products of operands 0 and 1, each less its zero point; int32 itself without `to`."""

    zeros: tuple[Quantity, Quantity]
    to: Requantisation | None = None


@dataclass(frozen=True)
class Window:
    """Windows of a convolution, a number for each spatial dimension; `before` and `after` are paddings."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    groups: int = 1


def convolution(*operands: te.Tensor, form: Sum, window: Window) -> te.Tensor:
    """Convolve x (batch, channels, …) with w (filters, channels of a group, …); zero points of w are per filter."""
    x, w = operands[:2]
    filters, inside, *extents = (int(extent) for extent in w.shape)
    batch, _, *sizes = (int(extent) for extent in x.shape)
    padded = _pad(x, form.zeros[0], operands, window)
    shape = [batch, filters]
    for size, extent, stride, dilation, before, after in zip(
        sizes, extents, window.strides, window.dilations, window.before, window.after, strict=True
    ):
        shape.append((size + before + after - (extent - 1) * dilation - 1) // stride + 1)
    taps = [te.reduce_axis((0, extent), name=f"k{number}") for number, extent in enumerate(extents)]
    channel = te.reduce_axis((0, inside), name="c")
    each = filters // window.groups

    def summed(n: Expr, f: Expr, *place: Expr) -> Expr:
        at = [
            i * stride + tap * dilation
            for i, tap, stride, dilation in zip(place, taps, window.strides, window.dilations)
        ]
        group = 0 if window.groups == 1 else f if each == 1 else tirx.floordiv(f, each)
        c = group if inside == 1 else channel if window.groups == 1 else group * inside + channel
        one = padded[(n, c, *at)] if padded is not x else _centre(x[(n, c, *at)], form.zeros[0], operands, ())
        other = _centre(w[(f, 0 if inside == 1 else channel, *taps)], form.zeros[1], operands, (n, f, *place))
        axes = [*([channel] if inside > 1 or not taps else []), *taps]
        return te.sum(one.astype("int32") * other.astype("int32"), axis=axes)

    return _result(te.compute(shape, summed, name="summed"), form, operands)


def product(*operands: te.Tensor, form: Sum) -> te.Tensor:
    """Multiply a (…, m, k) by b (…, k, n) like NumPy's matmul, vectors included."""
    a, b = operands[:2]
    rows, columns = (list(map(int, each.shape)) for each in (a, b))
    k = te.reduce_axis((0, rows[-1]), name="k")
    outer = max(len(rows), len(columns), 2) - 2
    sizes = [max(_extent(each[:-2], place - outer) for each in (rows, columns)) for place in range(outer)]
    shape = [*sizes, *rows[-2:-1], *(columns[-1:] if len(columns) > 1 else [])]

    def summed(*indices: Expr) -> Expr:
        batch = indices[:outer]
        m = indices[outer : outer + 1] if len(rows) > 1 else ()
        n = indices[len(indices) - 1 :] if len(columns) > 1 else ()
        one = a[(*_broadcast(batch, rows[:-2]), *m, k)]
        other = b[(*_broadcast(batch, columns[:-2]), k, *n)]
        one, other = (_centre(each, zero, operands, indices) for each, zero in zip((one, other), form.zeros))
        return te.sum(one.astype("int32") * other.astype("int32"), axis=[k])

    return _result(te.compute(shape, summed, name="summed"), form, operands)


def _extent(extents: Sequence[int], place: int) -> int:
    """Return the extent at a place counted from the end, 1 beyond the first."""
    return extents[place] if -place <= len(extents) else 1


def _broadcast(batch: Sequence[Expr], extents: Sequence[int]) -> list[Expr | int]:
    own = list(batch)[len(batch) - len(extents) :]
    return [index if extent > 1 else 0 for index, extent in zip(own, extents, strict=True)]


def _pad(x: te.Tensor, zero: Quantity, operands: Sequence[te.Tensor], window: Window) -> te.Tensor:
    """Return x less its zero point in int16, 0 around it; x itself if nothing is padded."""
    if not any((*window.before, *window.after)):
        return x
    batch, channels, *sizes = (int(extent) for extent in x.shape)
    shape = [size + before + after for size, before, after in zip(sizes, window.before, window.after, strict=True)]

    def padded(n: Expr, c: Expr, *place: Expr) -> Expr:
        at = [i - before if before else i for i, before in zip(place, window.before)]
        inside = [
            condition
            for i, size, before, after in zip(place, sizes, window.before, window.after)
            for condition in ([i >= before] if before else []) + ([i < size + before] if after else [])
        ]
        value = _centre(x[(n, c, *at)], zero, operands, ())
        return tirx.if_then_else(tirx.all(*inside), value, tirx.const(0, "int16"))

    return te.compute([batch, channels, *shape], padded, name="padded")


def _centre(value: Expr, zero: Quantity, operands: Sequence[te.Tensor], indices: Sequence[Expr]) -> Expr:
    """Return a number less its zero point, in int16: it is from -255 to 255."""
    wide = value.astype("int16")
    return wide if zero.is_zero else wide - zero.at(operands, indices, "int16")


def _result(sums: te.Tensor, form: Sum, operands: Sequence[te.Tensor]) -> te.Tensor:
    to = form.to
    if to is None:
        return sums

    def requantise(*indices: Expr) -> Expr:
        total = sums[indices]
        if to.bias is not None and not to.bias.is_zero:
            total = total + to.bias.at(operands, indices, "int32")
        value = total.astype("float32") * to.multiplier.at(operands, indices, "float32")
        zero = to.zero.at(operands, indices, "int32") if to.zero.place is not None else int(to.zero.number or 0)
        return to_integer(value, zero, to.dtype)

    return te.compute(sums.shape, requantise, name="requantised")
