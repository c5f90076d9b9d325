"""Exponentials and what is made of them, written as arithmetic that LLVM turns into vector instructions.

A call of expf works on one element at a time, and takes 3 to 5 ns of each: over an image that is more than the
convolution before it. These take a few instructions for a whole vector, and are as exact as a C library's to within
a unit or two in the last place of a float32 (tanh, erf: of the largest result, 1).

    exp(x) = 2**n · e**r      n = round(x / ln 2), |r| <= ln 2 / 2; e**r by a polynomial    (Cephes, `expf`)
    sigmoid(x) = 1 / (1 + exp(-x))
    tanh(x) = sign(x) · (1 - exp(-2 |x|)) / (1 + exp(-2 |x|))
    erf(x) = x · P(x²) / Q(x²), constant beyond ±4                                            (Eigen, `erf`)
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, Var
from tvm.tirx import Let, PrimFunc, Select

_LOG2_E = 1.44269504088896341
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
#: beyond these, e**x is no normal float32
_LARGEST, _SMALLEST = 88.7228317, -87.3365402
_ERF_P = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
    -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_Q = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02,
)  # fmt: skip


def with_vector_math(kernel: PrimFunc) -> PrimFunc:
    """`kernel` without calls of those functions on float32. Others, and other dtypes, stay as they are."""

    def written(call: Call) -> Expr:
        name = getattr(call.op, "name", "")
        if name not in _FUNCTIONS or str(call.ty.dtype) != "float32":
            return call
        return _FUNCTIONS[name](call.args[0])

    return tvm_ffi.structural_map(kernel, (Call, written), order="post")


def _exp(x: Expr) -> Expr:
    return _with(x, _exp_of)


def _exp_of(x: Expr) -> Expr:
    def power(clamped: Expr) -> Expr:
        # 127 is the bias of a float's exponent, which makes what is truncated positive
        def of(biased: Expr) -> Expr:
            n = (biased - 127).astype("float32")
            two = tirx.reinterpret("float32", tirx.shift_left(biased, _int(23)))

            def scaled(r: Expr) -> Expr:
                return (_polynomial(_EXP, r) * r * r + r + _float(1)) * two

            return _with(clamped - n * _float(_LN2_HIGH) - n * _float(_LN2_LOW), scaled)

        shifted = (clamped * _float(_LOG2_E) + _float(127.5)).astype("int32")
        return _with(tirx.min(shifted, _int(254)), of)  # 255 is the exponent of infinity

    # in this form, what is not a number goes through
    within = Select(x < _float(_SMALLEST), _float(_SMALLEST), Select(x > _float(_LARGEST), _float(_LARGEST), x))
    large = Select(x > _float(_LARGEST), _float(inf), _float(0))
    return Select(x < _float(_SMALLEST), _float(0), _with(within, power) + large)


def _sigmoid(x: Expr) -> Expr:
    return _float(1) / (_float(1) + _exp(_float(0) - x))


def _tanh(x: Expr) -> Expr:
    def of(x: Expr) -> Expr:
        def ratio(small: Expr) -> Expr:
            return (_float(1) - small) / (_float(1) + small)

        size = _with(_exp(Select(x < _float(0), x, _float(0) - x) * _float(2)), ratio)
        return _with(size, lambda size: Select(x < _float(0), _float(0) - size, size))

    return _with(x, of)


def _erf(x: Expr) -> Expr:
    def of(x: Expr) -> Expr:
        return _with(x * x, lambda square: x * _polynomial(_ERF_P, square) / _polynomial(_ERF_Q, square))

    return _with(x, lambda x: _with(Select(x < _float(-4), _float(-4), Select(x > _float(4), _float(4), x)), of))


def _polynomial(coefficients: tuple[float, ...], x: Expr) -> Expr:
    """Horner's rule; the coefficient of the highest power first."""
    value = _float(coefficients[0])
    for each in coefficients[1:]:
        value = value * x + _float(each)
    return value


def _with(value: Expr, use: Callable[[Expr], Expr]) -> Expr:
    """`use` of `value`, which is computed once."""
    name = Var("value", value.ty)
    return Let(name, value, use(name))


def _float(value: float) -> Expr:
    return tirx.const(value, "float32")


def _int(value: int) -> Expr:
    return tirx.const(value, "int32")


_FUNCTIONS: dict[str, Callable[[Expr], Expr]] = {
    f"{dialect}.{name}": function
    for dialect in ("tirx", "prim", "tir")
    for name, function in {"exp": _exp, "sigmoid": _sigmoid, "tanh": _tanh, "erf": _erf}.items()
}
