"""Declare the operators for sums of four products of bytes, and of vectors of these; codegen/expand/products.py writes them for a target."""

from collections.abc import Sequence

from tvm.ir import Call, Expr, TensorLoad

from ..expressions import collect
from .declare import call, declare

QUADS, COUPLE, NEIGHBOURS = declare("passfit.quads"), declare("passfit.couple"), declare("passfit.neighbours")
BYTE, PICKED, DOTS = declare("passfit.byte"), declare("passfit.picked"), declare("passfit.dots")
#: the integer of two of them
_TWICE = {"int8": "int16", "uint8": "int16", "int16": "int32"}


def quads(total: Expr, weights: tuple[Expr, Expr], values: tuple[Expr, Expr]) -> Call:
    """Add four products: total + w0·x0 + w1·x1 - w2·x2 - w3·x3, an int32.

    `weights` and `values` are two int16 each, of two int8, the first in the low byte. On some targets an int16 holds
    w0 · x0 - w2 · x2: it is from -32512 to 32640, while a sum of two products would reach 32768.
    """
    return call(QUADS, "int32", total, *weights, *values)


def dots(total: Expr, weights: Expr, values: Expr) -> Call:
    """Add the products of four int8 each, both factors int32 of four bytes; or of all int8 of two vectors."""
    return call(DOTS, "int32", total, weights, values)


def picked(lane: Expr, words: Sequence[Expr], places: Sequence[int], dtype: str) -> Call:
    """Return an integer of bytes of int32 `words`, by their places: in a vectorised loop of four, the next ones per lane."""
    return call(PICKED, dtype, lane, len(words), *words, *places)


def couple(low: Expr, high: Expr) -> Call:
    """Return two integers of one dtype side by side in one of twice the size."""
    return call(COUPLE, _TWICE[str(low.ty.dtype)], low, high)


def neighbours(*loads: Expr) -> Call:
    """Return two or four loads, neighbours in memory, as one integer.

    In a vectorised loop the bytes have to fill the vector without gaps.
    """
    return call(NEIGHBOURS, f"int{loads[0].ty.dtype.bits * len(loads)}", *loads)


def vector_of(*loads: Expr) -> Call:
    """Return loads, neighbours in memory, as one vector: not in a vectorised loop."""
    return call(NEIGHBOURS, f"{loads[0].ty.dtype}x{len(loads)}", *loads)


def joined_loads(value: object) -> dict[int, int]:
    """Map the loads of all `neighbours` in a value, by hash, to the elements read at once: 0 for those that come along."""
    found = filter(is_joined, collect(value, Call))
    return {hash(load): 0 if number else len(call.args) for call in found for number, load in enumerate(call.args)}


def is_joined(call: Call) -> bool:
    """Return whether a call is `neighbours` of loads alone: one load itself."""
    loads = all(isinstance(each, TensorLoad) for each in call.args)
    return getattr(call.op, "name", "") == NEIGHBOURS and loads


def byte(word: Expr, place: Expr, dtype: str) -> Call:
    """Return byte `place` of an int32, the lowest first, as `dtype`."""
    return call(BYTE, dtype, word, place)
