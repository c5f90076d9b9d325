"""Convert QLinearConv, QLinearMatMul, ConvInteger and MatMulInteger nodes into calls of their kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tvm import relax

from .quantity import Operands, Quantity, extents
from .sums import Requantisation, Sum, Window, convolution, product

#: operators converted here: TVM lacks all but MatMulInteger, for which it copies both operands to int32
INTEGER = frozenset({"ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"})
#: TVM's OpPatternKind of reductions that take what follows them into their kernel; it knows those of floats only
_OUT_FUSIBLE = 4
_Inputs = Sequence["relax.Expr | None"]


def convert_integer(builder: relax.BlockBuilder, op: str, inputs: _Inputs, attributes: Mapping[str, Any]) -> relax.Expr:
    """Emit the kernel of a node. Raises ValueError for scales and zero points of forms ONNX does not define."""
    given = [*inputs, *[None] * (9 - len(inputs))]
    of_result: list[Any] = []
    if op.startswith("QLinear"):
        x, x_scale, x_zero, w, w_scale, w_zero, *of_result = given
    else:
        x, w, x_zero, w_zero = given[:4]
    convolves = "Conv" in op
    operands = Operands(builder, x, w)
    of_x, of_w = _per_filter(w) if convolves else (_per_row(x, w), _per_column(x, w))
    zeros = operands.quantity(x_zero, of_x) or Quantity(0), operands.quantity(w_zero, of_w) or Quantity(0)
    to = None
    if of_result:
        y_scale, y_zero, bias = of_result
        multiplier = operands.multiplier((x_scale, w_scale, y_scale), (of_x, of_w, ()))
        zero = operands.quantity(y_zero, ()) or Quantity(0)
        to = Requantisation(multiplier, zero, str(y_zero.ty.dtype), operands.quantity(bias, of_w))
    form = Sum(zeros, to)
    kernel: Callable[..., Any] = partial(product, form=form)
    if convolves:
        kernel = partial(convolution, form=form, window=_window(x, w, attributes))
    call = builder.call_te(
        kernel, *operands.given, primfunc_name_hint=op.lower(), primfunc_attrs={"op_pattern": _OUT_FUSIBLE}
    )
    return builder.emit(call)


def _per_filter(w: relax.Expr) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of quantities of x and of w, aligned with the last dimensions of the result."""
    return (), (extents(w)[0], *[1] * (len(w.ty.shape) - 2))


def _per_row(a: relax.Expr, b: relax.Expr) -> tuple[int, ...]:
    outer = extents(a)[:-1]
    return (*outer, 1) if len(b.ty.shape) > 1 else outer


def _per_column(a: relax.Expr, b: relax.Expr) -> tuple[int, ...]:
    outer, last = extents(b)[:-2], extents(b)[-1:] if len(b.ty.shape) > 1 else ()
    return (*outer, 1, *last) if len(a.ty.shape) > 1 else (*outer, *last)


def _window(x: relax.Expr, w: relax.Expr, attributes: Mapping[str, Any]) -> Window:
    taps, sizes = extents(w)[2:], extents(x)[2:]
    strides = tuple(attributes.get("strides") or [1] * len(taps))
    dilations = tuple(attributes.get("dilations") or [1] * len(taps))
    pads = list(attributes.get("pads") or [0] * (2 * len(taps)))
    automatic = attributes.get("auto_pad", "NOTSET")
    automatic = automatic.decode() if isinstance(automatic, bytes) else automatic
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        missing = [
            max(0, (-(-size // stride) - 1) * stride + (extent - 1) * dilation + 1 - size)
            for size, stride, extent, dilation in zip(sizes, strides, taps, dilations, strict=True)
        ]
        less, more = [each // 2 for each in missing], [each - each // 2 for each in missing]
        pads = less + more if automatic == "SAME_UPPER" else more + less
    elif automatic == "VALID":
        pads = [0] * (2 * len(taps))
    before, after = pads[: len(taps)], pads[len(taps) :]
    return Window(strides, dilations, tuple(before), tuple(after), int(attributes.get("group", 1)))
