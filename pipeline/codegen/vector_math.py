"""Expand exp, sigmoid, tanh and erf into arithmetic that LLVM vectorises.

A call of expf computes one element in 3 to 5 ns: over an image, that is more than the convolution before it. These
expansions take a few instructions for a whole vector. They match a C library to within one or two units in the last
place of a float32 (tanh: seven; erf: of the largest result, 1).

    exp(x) = 2**n · e**r      n = round(x / ln 2), |r| <= ln 2 / 2; e**r by a polynomial    (Cephes, `expf`)
    sigmoid(x) = 1 / (1 + exp(-x))
    tanh(x) = x · P(x²) / Q(x²), constant beyond ±7.9, x within ±4e-4                           (Eigen, `ptanh`)
    erf(x) = x · P(x²) / Q(x²), constant beyond ±4                                            (Eigen, `erf`)

Values used more than once go through a register: a buffer of one vector, kept in a register by LLVM. A `Let` would be
substituted for its variable wherever TVM analyses its uses, and nested functions, as in the cells of an LSTM, would
take hours. Registers are written by statements before the reading one, and TVM's vectoriser does not support them: the
kernel must be vectorised already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, Op, register_op_attr
from tvm.tirx import AllocBuffer, Bind, BufferStore, IfThenElse, Let, PrimFunc, Select, SeqStmt, Stmt

from ..tir.expressions import collect, is_choice
from ..tir.loop_nests import with_fields
from .expand.half_conversions import NARROW, WIDEN, narrow, widen
from .expand.shuffle import expand_operators

_LOG2_E = 1.44269504088896341
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
#: of least relative error, 3.6e-9, if the last two are 1
_EXP = (1.381454054e-3, 8.368745446e-3, 4.166838899e-2, 1.666652113e-1, 4.999999404e-1, 1.0, 1.0)
#: 1.5 · 2**23; the low nine bits of this float are 0
_ROUND = 12582912.0
#: range of x with a normal float32 e**x
_LARGEST, _SMALLEST = 88.7228317, -87.3365402
_ERF_P = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
    -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_Q = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02,
)  # fmt: skip

#: beyond, tanh is 1 in float32; within, it is x
_TANH_FLAT, _TANH_LINEAR = 7.90531110763549805, 4e-4
_TANH_P = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
    6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
_TANH_Q = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)

#: erf under a name of our own, as TVM's vectoriser does not vectorise its own erf; call effect 1 is "pure"
_ERF = "passfit.erf"
register_op_attr(_ERF, "TVectorizable", True)
register_op_attr(_ERF, "TCallEffectKind", 1)


def ready_for_vectors(kernel: PrimFunc) -> PrimFunc:
    """Replace functions in a kernel, before vectorisation, by ones TVM's vectoriser supports."""
    return kernel if collect(kernel.body, Let) else _rename(kernel, "tirx.erf", _ERF)


def expand_vector_math(kernel: PrimFunc) -> PrimFunc:
    """Expand calls of these functions on float32 in a lowered, vectorised kernel; keep all others."""

    def rewrite(stmt: BufferStore | Bind) -> Stmt:
        # a variable bound inside the expression is not available before its statement
        if not any(map(_function, collect(stmt.value, Call))) or collect(stmt.value, Let):
            return stmt
        registers = _Registers()
        value = registers.rewrite(stmt.value)
        return SeqStmt([*registers.stmts, with_fields(stmt, value=value)])

    kernel = kernel.with_body(tvm_ffi.structural_map(kernel.body, ((BufferStore, Bind), rewrite)))
    return _rename(kernel, _ERF, "tirx.erf")


def _rename(kernel: PrimFunc, function: str, other: str) -> PrimFunc:
    """Replace calls of `function` on float32 by calls of `other`."""

    def rename(call: Call) -> Call:
        return Call(Op.get(other), call.args, ret_ty=call.ty) if str(call.ty.dtype).startswith("float32") else call

    return expand_operators(kernel, {function: rename})


class _Registers:
    """Statements computed before the current one, in order. Equal calls are computed once: a leaky ReLU names its operand thrice.

    `around` are the calls that were computed before a branch.
    """

    def __init__(self, around: Sequence[tuple[Call, Expr]] = ()) -> None:
        self.stmts: list[Stmt] = []
        self._computed = list(around)

    def rewrite(self, expr: Expr) -> Expr:
        """Return `expr` with registers in place of function calls; `stmts` compute them."""

        def call(call: Call) -> Expr:
            if function := _function(call):
                known = next((value for other, value in self._computed if tvm_ffi.structural_equal(other, call)), None)
                if known is None:
                    known = self.keep(function(self.keep(self.rewrite(call.args[0])), self))
                    self._computed.append((call, known))
                return known
            return self._choice(call) if is_choice(call) else call

        return tvm_ffi.structural_map(expr, (Call, call), order="pre")

    def keep(self, value: Expr) -> Expr:
        """Keep `value` in a register, to compute it once; return the load."""
        register = tirx.decl_buffer([1], value.ty.dtype, "register")
        zero = tirx.const(0, "int32")
        self.stmts += [AllocBuffer(register), BufferStore(register, value, [zero])]
        return tirx.BufferLoad(register, [zero])

    def _choice(self, choice: Call) -> Expr:
        """Expand a choice; compute only the branch taken, since the other may read out of bounds."""
        condition, *branches = choice.args
        condition = self.rewrite(condition)
        then, otherwise = _Registers(self._computed), _Registers(self._computed)
        values = [registers.rewrite(value) for registers, value in zip((then, otherwise), branches, strict=True)]
        for registers, holds in ((then, condition), (otherwise, tirx.Not(condition))):
            self.stmts += [each for each in registers.stmts if isinstance(each, AllocBuffer)]
            if stores := [each for each in registers.stmts if not isinstance(each, AllocBuffer)]:
                self.stmts.append(IfThenElse(holds, stores[0] if len(stores) == 1 else SeqStmt(stores), None))
        return Call(choice.op, [condition, *values], ret_ty=choice.ty)


def _function(call: Any) -> Callable[[Expr, _Registers], Expr] | None:
    """Return the expansion of `call`; None if it stays a call."""
    function = _FUNCTIONS.get(getattr(call.op, "name", "")) if isinstance(call, Call) else None
    return function if function and (str(call.ty.dtype).startswith("float32") or call.op.name == NARROW) else None


def _exp(x: Expr, registers: _Registers) -> Expr:
    # floats this large are whole numbers: the addition rounds, and the low bits are n
    rounded = registers.keep(x * _LOG2_E + _ROUND)
    n = registers.keep(rounded - _ROUND)
    r = registers.keep(x - n * _LN2_HIGH - n * _LN2_LOW)
    power, bits = _polynomial(_EXP, r), str(x.ty.dtype).replace("float", "int")
    # only n is left in the place of the exponent
    exponent = tirx.shift_left(tirx.reinterpret(bits, rounded), tirx.const(23, bits))
    scaled = tirx.reinterpret(x.ty.dtype, tirx.reinterpret(bits, power) + exponent)
    # this form propagates NaN
    return Select(x < _like(x, _SMALLEST), _like(x, 0), Select(x <= _like(x, _LARGEST), scaled, x + _like(x, inf)))


def _sigmoid(x: Expr, registers: _Registers) -> Expr:
    return 1.0 / (1.0 + _exp(registers.keep(0.0 - x), registers))


def _tanh(x: Expr, registers: _Registers) -> Expr:
    low, high = _like(x, -_TANH_FLAT), _like(x, _TANH_FLAT)
    within = registers.keep(Select(x < low, low, Select(x > high, high, x)))
    square = registers.keep(within * within)
    curved = within * _polynomial(_TANH_P, square) / _polynomial(_TANH_Q, square)
    return Select(square < _like(x, _TANH_LINEAR**2), within, curved)


def _erf(x: Expr, registers: _Registers) -> Expr:
    low, high = _like(x, -4), _like(x, 4)
    x = registers.keep(Select(x < low, low, Select(x > high, high, x)))
    square = registers.keep(x * x)
    return x * _polynomial(_ERF_P, square) / _polynomial(_ERF_Q, square)


def _polynomial(coefficients: tuple[float, ...], x: Expr) -> Expr:
    """Evaluate a polynomial by Horner's rule; coefficients from the highest power down."""
    value = _like(x, coefficients[0])
    for each in coefficients[1:]:
        value = value * x + each
    return value


def _like(x: Expr, value: float) -> Expr:
    """Return `value` in every lane of `x`'s type."""
    return tirx.const(value, x.ty.dtype)


#: expansions by function; their `x` may be used more than once
_FUNCTIONS: dict[str, Callable[[Expr, _Registers], Expr]] = {
    "tirx.exp": _exp, "tirx.sigmoid": _sigmoid, "tirx.tanh": _tanh, _ERF: _erf,
    WIDEN: lambda x, registers: widen(x, registers.keep), NARROW: lambda x, registers: narrow(x, registers.keep),
}  # fmt: skip
