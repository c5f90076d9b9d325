"""Write the sums of four products of bytes (tir/operators/quads.py) by NEON's instructions.

    smull  v.8h, w01, x01       products of two channels for four filters, int16
    smlsl  v.8h, w23, x23       less those of two others
    sadalp total.4s, v.8h       neighbours added up in int32

16 products in three instructions (XNNPACK, the kernels c2s4 "mlal"; here with any int8, see tir/operators/quads.py). Written as
vectors that LLVM knows: on other targets the same numbers come out.
"""

from __future__ import annotations

from functools import partial

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Call, Expr, TensorLoad
from tvm.tirx import Broadcast, PrimFunc, Ramp

from ...tir.operators.quads import BYTE, COUPLE, DOTS, NEIGHBOURS, PICKED, QUADS
from ..bare.arm_dsp import has_smlad, smlad_products
from ..bare.helium import has_vectors
from .neon import add_neighbours, intrinsics_of, less_products, neighbour_sums
from .shuffle import expand_operators, take

#: lanes of one step of sums
_LANES = 4


def expand_quad_products(kernel: PrimFunc) -> PrimFunc:
    """Expand the operators of tir/operators/quads.py in a lowered, vectorised kernel, by its attribute `target`."""
    neon = intrinsics_of(kernel)
    dots = smlad_products if has_smlad(kernel) else partial(_dots, native=neon == "aarch64")
    sums = {
        QUADS: lambda call: _sum(*call.args, neon=neon),
        DOTS: lambda call: (
            partial(_vector_dots, mve=has_vectors(kernel))
            if call.args[1].ty.dtype.lanes > call.ty.dtype.lanes
            else dots
        )(*call.args),
    }
    bytes_ = {COUPLE: _couple, NEIGHBOURS: _neighbours, BYTE: _byte, PICKED: _picked}
    return expand_operators(kernel, sums | bytes_)


def _couple(call: Call) -> Expr:
    low, high = call.args
    lanes, bits = low.ty.dtype.lanes, low.ty.dtype.bits
    if lanes > 1:
        joined = _interleave(low, high)
        if joined is not None:
            return tirx.reinterpret(call.ty.dtype, joined)
        if lanes == _LANES and bits == 8:  # LLVM knows no vectors of four bytes
            low, high = (
                tirx.reinterpret("int8x8", Broadcast(tirx.reinterpret("int32", each), 2)) for each in (low, high)
            )
            places = [place for lane in range(lanes) for place in (lane, 2 * lanes + lane)]
            joined = take([low, high], places)
            return tirx.reinterpret(call.ty.dtype, joined)
        places = [place for lane in range(lanes) for place in (lane, lanes + lane)]
        return tirx.reinterpret(call.ty.dtype, take([low, high], places))
    wide = call.ty.dtype
    mask, shift = tirx.const((1 << bits) - 1, wide), tirx.const(bits, wide)
    return tirx.bitwise_or(tirx.bitwise_and(low.astype(wide), mask), tirx.shift_left(high.astype(wide), shift))


def _interleave(low: Expr, high: Expr) -> Expr | None:
    """Join the values of even and odd elements into one expression; return None for other pairs."""
    if isinstance(low, TensorLoad) and isinstance(high, TensorLoad) and low.source.same_as(high.source):
        one, other = low.indices[-1], high.indices[-1]
        if not isinstance(one, Ramp) or not isinstance(other, Ramp) or int(one.stride) != 2 or int(other.stride) != 2:
            return None
        if not tvm_ffi.structural_equal(
            sym.Analyzer().simplify(other.base - one.base), tirx.const(1, one.base.ty.dtype)
        ):
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


def _neighbours(call: Call) -> Expr:
    first, lanes = call.args[0], call.ty.dtype.lanes
    assert isinstance(first, TensorLoad)
    start, size = first.indices[-1], call.ty.dtype.bits * lanes // first.ty.dtype.bits
    if isinstance(start, Ramp):
        assert int(start.stride) == len(call.args), "neighbours leave gaps"
        start = start.base
    indices = [*first.indices[:-1], Ramp(start, tirx.const(1, start.ty.dtype), size)]
    return tirx.reinterpret(call.ty.dtype, tirx.BufferLoad(first.source, indices))


def _byte(call: Call) -> Expr:
    word, place = call.args
    lanes = call.ty.dtype.lanes
    if lanes == 4 and isinstance(word, Broadcast) and isinstance(place, Ramp) and int(place.base) == 0:
        return tirx.reinterpret(call.ty.dtype, word.value)
    shift = place.astype("int32" if lanes == 1 else f"int32x{lanes}") * 8
    return tirx.shift_right(word, shift).astype(call.ty.dtype)


def _picked(call: Call) -> Expr:
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


def _sum(total: Expr, one: Expr, other: Expr, x: Expr, y: Expr, *, neon: str | None) -> Expr:
    lanes = total.ty.dtype.lanes
    if lanes % _LANES:
        products = [_bytes_product(w, v, shift) for w, v in ((one, x), (other, y)) for shift in (0, 8)]
        return total + products[0] + products[1] - products[2] - products[3]
    parts = []
    for first in range(0, lanes, _LANES):
        w, x_, v, y_ = (_bytes_of(each, first) for each in (one, x, other, y))
        parts.append((_part(total, first), less_products(w, x_, v, y_, neon)))
    if neon == "arm":
        return _concat([add_neighbours(*each, neon) for each in parts])
    return total + _concat(
        [neighbour_sums(products, neon) for _, products in parts]
    )  # added at once: else LLVM spills more


def _dots(total: Expr, weights: Expr, values: Expr, *, native: bool) -> Expr:
    """Add four products of bytes to each int32, by sdot if `native`."""
    lanes = total.ty.dtype.lanes
    if not native or lanes % _LANES:
        products = [_bytes_product(weights, values, shift) for shift in (0, 8, 16, 24)]
        return total + products[0] + products[1] + products[2] + products[3]
    parts = []
    for first in range(0, lanes, _LANES):
        factors = [tirx.reinterpret("int8x16", _part(each, first)) for each in (weights, values)]
        parts.append(
            tirx.call_llvm_pure_intrin(
                f"int32x{_LANES}", "llvm.aarch64.neon.sdot.v4i32.v16i8", _part(total, first), *factors
            )
        )
    return _concat(parts)


def _vector_dots(total: Expr, weights: Expr, values: Expr, *, mve: bool) -> Expr:
    """Add the products of two vectors of bytes, by vmlava if the target has `mve`."""
    lanes = weights.ty.dtype.lanes
    bits = 128 // lanes if mve else 32
    factors = [each.astype(f"int{bits}x{lanes}") for each in (weights, values)]
    if mve:
        plain = [tirx.const(0, "int32")] * 3  # signed, added, not exchanged
        return tirx.call_llvm_pure_intrin("int32", f"llvm.arm.mve.vmldava.v{lanes}i{bits}", *plain, total, *factors)
    return total + tirx.call_llvm_pure_intrin("int32", f"llvm.vector.reduce.add.v{lanes}i32", factors[0] * factors[1])


def _part(total: Expr, first: int) -> Expr:
    if total.ty.dtype.lanes == _LANES:
        return total
    if isinstance(total, Broadcast):
        return Broadcast(total.value, _LANES)
    return take([total], range(first, first + _LANES))


def _concat(parts: list[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else take(parts, range(_LANES * len(parts)))


def _bytes_product(weight: Expr, value: Expr, shift: int) -> Expr:
    def byte(each: Expr) -> Expr:
        lanes = each.ty.dtype.lanes
        dtype = "int32" if lanes == 1 else f"int32x{lanes}"
        wide = each.astype(dtype)
        return tirx.shift_right(tirx.shift_left(wide, tirx.const(24 - shift, dtype)), tirx.const(24, dtype))

    return byte(weight) * byte(value)


def _bytes_of(each: Expr, first: int) -> Expr:
    """Return the bytes of four lanes from `first` on."""
    count = 2 * _LANES
    if isinstance(each, Broadcast):
        return tirx.reinterpret(f"int8x{count}", Broadcast(each.value, _LANES))
    whole = tirx.reinterpret(f"int8x{2 * each.ty.dtype.lanes}", each)
    if each.ty.dtype.lanes == _LANES:
        return whole
    return take([whole], range(2 * first, 2 * first + count))
