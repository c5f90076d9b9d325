"""Join, load, pick and move lanes of vectors (tir/operators/quads.py, runs.py, moved.py) by shuffles."""

from __future__ import annotations

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Call, Expr, TensorLoad
from tvm.tirx import Broadcast, IntImm, Ramp

from .shuffle import load_lanes, take

#: lanes of a vector of bytes that LLVM does not know
_FOUR = 4


def couple(_has: object, call: Call) -> Expr:
    low, high = call.args
    lanes, bits = low.ty.dtype.lanes, low.ty.dtype.bits
    if lanes > 1:
        joined, gap = _interleave(low, high), lanes
        if joined is None:
            if lanes == _FOUR and bits == 8:  # LLVM knows no vectors of four bytes
                twice = (Broadcast(tirx.reinterpret("int32", each), 2) for each in (low, high))
                low, high = (tirx.reinterpret("int8x8", each) for each in twice)
                gap = 2 * lanes
            joined = take([low, high], [place for lane in range(lanes) for place in (lane, gap + lane)])
        return tirx.reinterpret(call.ty.dtype, joined)
    wide = call.ty.dtype
    mask, shift = tirx.const((1 << bits) - 1, wide), tirx.const(bits, wide)
    return tirx.bitwise_or(tirx.bitwise_and(low.astype(wide), mask), tirx.shift_left(high.astype(wide), shift))


def _interleave(low: Expr, high: Expr) -> Expr | None:
    """Join the values of even and odd elements into one expression; return None for other pairs."""
    if isinstance(low, TensorLoad) and isinstance(high, TensorLoad) and low.source.same_as(high.source):
        one, other = low.indices[-1], high.indices[-1]
        if not all(isinstance(each, Ramp) and int(each.stride) == 2 for each in (one, other)):
            return None
        apart = sym.Analyzer().simplify(other.base - one.base)
        if not isinstance(apart, IntImm) or int(apart) != 1:
            return None
        return tirx.BufferLoad(low.source, [*low.indices[:-1], Ramp(one.base, one.stride // 2, 2 * int(one.lanes))])
    if isinstance(low, Broadcast) and isinstance(high, Broadcast) and tvm_ffi.structural_equal(low, high):
        return Broadcast(low.value, 2 * int(low.lanes))
    if isinstance(low, tirx.Cast) and isinstance(high, tirx.Cast):
        value = _interleave(low.value, high.value)
        return None if value is None else value.astype(f"{str(low.ty.dtype).partition('x')[0]}x{value.ty.dtype.lanes}")
    for kind in (tirx.Add, tirx.Sub):
        if isinstance(low, kind) and isinstance(high, kind):
            one, other = _interleave(low.a, high.a), _interleave(low.b, high.b)
            return None if one is None or other is None else kind(one, other)
    return None


def neighbours(_has: object, call: Call) -> Expr:
    first, lanes = call.args[0], call.ty.dtype.lanes
    assert isinstance(first, TensorLoad)
    start, size = first.indices[-1], call.ty.dtype.bits * lanes // first.ty.dtype.bits
    if isinstance(start, Ramp):
        assert int(start.stride) == len(call.args), "neighbours leave gaps"
        start = start.base
    return tirx.reinterpret(call.ty.dtype, load_lanes(first, start, size))


def byte(_has: object, call: Call) -> Expr:
    word, place = call.args
    lanes = call.ty.dtype.lanes
    if lanes == 4 and isinstance(word, Broadcast) and isinstance(place, Ramp) and int(place.base) == 0:
        return tirx.reinterpret(call.ty.dtype, word.value)
    shift = place.astype("int32" if lanes == 1 else f"int32x{lanes}") * 8
    return tirx.shift_right(word, shift).astype(call.ty.dtype)


def picked(_has: object, call: Call) -> Expr:
    _, count, *rest = (each.value if isinstance(each, Broadcast) else each for each in call.args)
    words, places = rest[: int(count)], [int(each) for each in rest[int(count) :]]
    words += [words[0]] * (2 - len(words) if len(words) < 3 else -len(words) % 4)  # whole registers
    if len(words) == 2:  # two registers: a zip needs no joined one
        one, other = (tirx.reinterpret("int8x8", Broadcast(each, 2)) for each in words)
        moved = [place if place < 4 else place + 4 for place in places]
        return tirx.reinterpret(call.ty.dtype, take([one, other], moved))
    joined = take(words, range(len(words)))
    found = take([tirx.reinterpret(f"int8x{4 * len(words)}", joined)], places)
    return tirx.reinterpret(call.ty.dtype, found)


def move(_has: object, call: Call) -> Expr:
    vector, by = call.args
    assert isinstance(by, Broadcast), "the loop over the lanes is vectorised"
    lanes, before = vector.ty.dtype.lanes, int(by.value)
    places = (lane - before for lane in range(lanes))
    return take([vector, tirx.const(0, vector.ty.dtype)], (at if 0 <= at < lanes else lanes for at in places))
