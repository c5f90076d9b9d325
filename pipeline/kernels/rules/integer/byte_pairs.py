"""Sum products of bytes by pairs of taps: two products fit into an int16, of any weights and values.

    Σ w · (x − zero) = start + Σ (w0 · x0 − w1 · ~x1)        start = −zero · Σ w − Σ w1

A pair is from -32512 to 32640, while w0 · x0 + w1 · x1 would reach 32768. NEON multiplies eight bytes and takes eight
others off (smull, smlsl), then adds int16 to int32 (saddw): see tir/operators/quads.py for sums along lanes.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import reduce

from tvm import tirx
from tvm.ir import Expr
from tvm.tirx import IntImm

from ....tir.expressions import is_choice

#: the bit that is the sign of an int8, 128 of an uint8; all bits
_SIGN, _ALL = 0x80, 0xFF


def sum_of(values: Iterable[Expr]) -> Expr:
    """Add up expressions, from the first one on."""
    return reduce(operator.add, values)


def sum_of_bytes(terms: Sequence[tuple[Expr, Expr]], zero: int) -> Expr:
    """Return the int32 sum of weights, int8, times values, int8 or uint8, less their zero point: at most 256 terms."""
    shift, flipped = (128, _SIGN) if str(terms[0][1].ty.dtype) == "uint8" else (0, 0)
    weights = [weight.astype("int16") for weight, _ in terms]
    start = sum_of(weights).astype("int32") * tirx.const(shift - zero, "int32")
    if len(terms) > 1:
        start = start - sum_of(weights[1::2]).astype("int32")
    total = start
    for n in range(0, len(terms), 2):
        pair = weights[n] * _flipped(terms[n][1], flipped)
        if n + 1 < len(terms):
            pair = pair - weights[n + 1] * _flipped(terms[n + 1][1], flipped ^ _ALL)
        total = total + pair.astype("int32")
    return total


def sum_of_products(terms: Sequence[tuple[Expr, Expr]]) -> Expr:
    """Return the int32 sum of weights, int8, times values, int16."""
    return sum_of([value.astype("int32") * weight.astype("int16").astype("int32") for weight, value in terms])


def _flipped(value: Expr, bits: int) -> Expr:
    """Return a byte with these bits flipped, as an int8, in int16."""
    signed = _signed(value)
    mask = bits - 256 if bits & _SIGN else bits
    return (tirx.bitwise_xor(signed, tirx.const(mask, "int8")) if bits else signed).astype("int16")


def _signed(value: Expr) -> Expr:
    """Return a byte as an int8 of the same bits; TVM refuses to convert a constant beyond 127."""
    if str(value.ty.dtype) == "int8":
        return value
    if is_choice(value):
        condition, one, other = value.args
        return tirx.if_then_else(condition, _signed(one), _signed(other))
    if isinstance(value, IntImm):
        return tirx.const(int(value) - 256 * (int(value) > 127), "int8")
    return value.astype("int8")
