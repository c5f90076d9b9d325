"""Declare the operators for sums of four products of bytes, and of vectors of these; codegen/expand/quad_products.py writes them for a target."""

from collections.abc import Sequence

from tvm.ir import Call, Expr, Op, PrimType, TensorLoad
from tvm.tirx import const

from ..expressions import collect
from . import declare

QUADS, COUPLE, NEIGHBOURS = "passfit.quads", "passfit.couple", "passfit.neighbours"
BYTE, PICKED, DOTS = "passfit.byte", "passfit.picked", "passfit.dots"
declare(QUADS, COUPLE, NEIGHBOURS, BYTE, PICKED, DOTS)
#: the integer of two of them
_TWICE = {"int8": "int16", "uint8": "int16", "int16": "int32"}


def quads(total: Expr, weights: tuple[Expr, Expr], values: tuple[Expr, Expr]) -> Call:
    """Add four products: total + w0·x0 + w1·x1 - w2·x2 - w3·x3, an int32.

    `weights` and `values` are two int16 each, of two int8, the first in the low byte. On some targets an int16 holds
    w0 · x0 - w2 · x2: it is from -32512 to 32640, while a sum of two products would reach 32768.
    """
    return Call(Op.get(QUADS), [total, *weights, *values], ret_ty=PrimType("int32"))


def dots(total: Expr, weights: Expr, values: Expr) -> Call:
    """Add the products of four int8 each, both factors int32 of four bytes; or of all int8 of two vectors."""
    return Call(Op.get(DOTS), [total, weights, values], ret_ty=PrimType("int32"))


def picked(lane: Expr, words: Sequence[Expr], places: Sequence[int], dtype: str) -> Call:
    """Return an integer of bytes of int32 `words`, by their places: in a vectorised loop of four, the next ones per lane."""
    numbers = [const(each, "int32") for each in (len(words), *places)]
    return Call(Op.get(PICKED), [lane, *numbers[:1], *words, *numbers[1:]], ret_ty=PrimType(dtype))


def couple(low: Expr, high: Expr) -> Call:
    """Return two integers of one dtype side by side in one of twice the size."""
    return Call(Op.get(COUPLE), [low, high], ret_ty=PrimType(_TWICE[str(low.ty.dtype)]))


def neighbours(*loads: Expr) -> Call:
    """Return two or four loads, neighbours in memory, as one integer.

    In a vectorised loop the bytes have to fill the vector without gaps.
    """
    return Call(Op.get(NEIGHBOURS), [*loads], ret_ty=PrimType(f"int{loads[0].ty.dtype.bits * len(loads)}"))


def vector_of(*loads: Expr) -> Call:
    """Return loads, neighbours in memory, as one vector: not in a vectorised loop."""
    return Call(Op.get(NEIGHBOURS), [*loads], ret_ty=PrimType(f"{loads[0].ty.dtype}x{len(loads)}"))


def joined_loads(value: object) -> dict[int, int]:
    """Map the loads of all `neighbours` in a value, by hash, to the elements read at once: 0 for those that come along."""
    found = filter(_is_joined, collect(value, Call))
    return {hash(load): 0 if number else len(call.args) for call in found for number, load in enumerate(call.args)}


def _is_joined(call: Call) -> bool:
    loads = all(isinstance(each, TensorLoad) for each in call.args)
    return getattr(call.op, "name", "") == NEIGHBOURS and loads


def byte(word: Expr, place: Expr, dtype: str) -> Call:
    """Return byte `place` of an int32, the lowest first, as `dtype`."""
    return Call(Op.get(BYTE), [word, place], ret_ty=PrimType(dtype))
