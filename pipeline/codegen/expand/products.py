"""Write the operators for sums of products (tir/operators) by a target's instructions.

    PAIRS(w, x) = w0 · (low half of x) + w1 · (high half of x)      w0, w1: two int8 in an int16; halves of x, an int32: int16
    FOURS(s, w, x) = s + w0 · x0 + w1 · x1 + w2 · x2 + w3 · x3      four int8 and four uint8, each in an int32
    DOTS(s, w, x) = s + w0 · x0 + w1 · x1 + w2 · x2 + w3 · x3       int8 alone
    HALVES(s, w, x, n) = s + w0 · x[n] + w2 · x[n + 1] + w1 · x[n + 2] + w3 · x[n + 3]      int16 in memory
    COUPLES(s, x, y) = s + x0 · y0 + x1 · y1      two int16, the halves of an int32, each

    smull  v.8h, w01, x01       QUADS and RUNS: products of eight bytes, int16
    smlsl  v.8h, w23, x23       less those of eight others
    sadalp total.4s, v.8h       neighbours added up in int32
    addp                        TOTALS: four sums of four runs each become one number each, by three

16 products in three instructions (XNNPACK, the kernels c2s4 and c16 "mlal"; here with any int8, see tir/operators/quads.py).
Written as vectors that LLVM knows: on other targets the same numbers come out. An instruction for FOURS or
DOTS is a row of targets/dot_products.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad
from tvm.target.codegen import target_has_features
from tvm.tirx import Broadcast, IntImm, PrimFunc, Ramp

from ...targets.dot_products import DOT_PRODUCTS
from ...tir.lowering.kernel_target import architecture_of, target_of
from ...tir.operators.moved import MOVED
from ...tir.operators.pairs import COUPLES, FOURS, HALVES, PAIRS
from ...tir.operators.quads import BYTE, COUPLE, DOTS, NEIGHBOURS, PICKED, QUADS
from ...tir.operators.runs import RUN, RUNS, SUMS, TOTALS
from ..bare.arm_dsp import has_smlad, smlad, smlad_halves, smlad_products
from ..bare.helium import has_vectors
from .lane_moves import byte, couple, move, neighbours, picked
from .neon import add_neighbours, intrinsics_of, neighbour_sums, product
from .shuffle import concat, expand_operators, load_lanes, split, take

#: vpmaddwd by its lanes, and the features that have it
_PMADDWD = {8: ("llvm.x86.avx2.pmadd.wd", ("avx2",)), 16: ("llvm.x86.avx512.pmaddw.d.512", ("avx512bw",))}
#: lanes of one step of sums
_LANES = 4
#: function of what the target has, and a call
Writer = Callable[["Instructions", Call], Expr]


class Instructions(NamedTuple):
    """Instructions that a kernel's target has: those of `dots` by the dtype of values, and by lanes."""

    neon: str | None
    smlad: bool
    mve: bool
    pmaddwd: dict[int, str]
    dots: Mapping[str, dict[int, str]]


def expand_products(kernel: PrimFunc) -> PrimFunc:
    """Expand these operators in a lowered, vectorised kernel, by its attribute `target`."""

    @cache  # at the first operator: LLVM is asked for each feature, and most kernels have no operator
    def has() -> Instructions:
        architecture, dots = architecture_of(kernel), {"int8": dict[int, str](), "uint8": dict[int, str]()}
        for row in DOT_PRODUCTS:
            if row.architecture == architecture:
                dots[row.values] |= _available(row.intrinsics, kernel)
        return Instructions(
            intrinsics_of(kernel), has_smlad(kernel), has_vectors(kernel), _available(_PMADDWD, kernel), dots
        )

    return expand_operators(kernel, {name: partial(_write, write, has) for name, write in WRITERS.items()})


def _write(write: Writer, has: Callable[[], Instructions], call: Call) -> Expr:
    return write(has(), call)


def _available(instructions: Mapping[int, tuple[str, tuple[str, ...]]], kernel: PrimFunc) -> dict[int, str]:
    """Return the instructions, by their lanes, of which the kernel's target has a feature."""
    target = target_of(kernel)
    return {
        lanes: name
        for lanes, (name, features) in instructions.items()
        if name and target is not None and any(target_has_features(each, target) for each in features)
    }


def _pairs(has: Instructions, call: Call) -> Expr:
    """Return one instruction for vectors of as many lanes as it has, else two products."""
    weights, halves = call.args
    lanes = weights.ty.dtype.lanes
    if lanes in has.pmaddwd:
        pairs = f"int16x{2 * lanes}"
        wide = tirx.reinterpret(f"int8x{2 * lanes}", weights).astype(pairs)
        return tirx.call_llvm_pure_intrin(f"int32x{lanes}", has.pmaddwd[lanes], tirx.reinterpret(pairs, halves), wide)
    dtype, short, byte_ = (_vector(kind, lanes) for kind in ("int32", "int16", "int8"))
    low = halves.astype(short).astype(dtype) * weights.astype(byte_).astype(dtype)
    high = tirx.shift_right(weights, tirx.const(8, short)).astype(dtype)
    return low + tirx.shift_right(halves, tirx.const(16, dtype)) * high


def _halves(has: Instructions, call: Call) -> Expr:
    total, weights, first, moved, whole = call.args
    if has.smlad:
        return smlad_halves(total, weights, first, int(moved), bool(whole))
    for place, number_ in enumerate((0, 2, 1, 3)):
        value = tirx.BufferLoad(first.source, [*first.indices[:-1], first.indices[-1] + (int(moved) + place)])
        total = total + _bits(weights, 8 * number_, 8) * value.astype("int32")
    return total


def _couples(has: Instructions, call: Call) -> Expr:
    total, one, other = call.args
    return smlad(total, one, other) if has.smlad else sum_of_parts(total, one, other, 16)


def _dots(has: Instructions, call: Call) -> Expr:
    """Add products of int8, four to each int32; or of all lanes of two vectors, by vmlava."""
    total, weights, values = call.args
    bytes_ = weights.ty.dtype.lanes
    if bytes_ == total.ty.dtype.lanes:
        return _fours(has, call, "int8")
    bits = 128 // bytes_ if has.mve else 32
    one, other = (each.astype(f"int{bits}x{bytes_}") for each in (weights, values))
    if has.mve:
        plain = [tirx.const(0, "int32")] * 3  # signed, added, not exchanged
        name = f"llvm.arm.mve.vmldava.v{bytes_}i{bits}"
        return tirx.call_llvm_pure_intrin("int32", name, *plain, total, one, other)
    return total + tirx.call_llvm_pure_intrin("int32", f"llvm.vector.reduce.add.v{bytes_}i32", one * other)


def _fours(has: Instructions, call: Call, dtype: str = "uint8") -> Expr:
    """Add products of four bytes, values of a dtype, to each int32: by smlad, or by the widest instruction that divides the lanes."""
    total, weights, values = call.args
    lanes, signed = total.ty.dtype.lanes, dtype == "int8"
    if has.smlad:
        return smlad_products(*call.args, signed=signed)
    width = max((each for each in has.dots[dtype] if lanes % each == 0), default=0)
    if not width:
        return sum_of_parts(total, weights, values, 8, signed)
    parts, order = [], (weights, values) if signed else (values, weights)
    for sums, *factors in zip(*(split(each, width) for each in (total, *order))):
        both = [tirx.reinterpret(f"int8x{4 * width}", each) for each in factors]
        parts.append(tirx.call_llvm_pure_intrin(f"int32x{width}", has.dots[dtype][width], sums, *both))
    return concat(parts, lanes)


def _quads(has: Instructions, call: Call) -> Expr:
    total, one, other, x, y = call.args
    lanes = total.ty.dtype.lanes
    if lanes % _LANES:
        for first in (0, 8):
            w, x_, v, y_ = (_bits(each.astype(_vector("int32", lanes)), first, 8) for each in (one, x, other, y))
            total = total + w * x_ - v * y_
        return total
    products = []
    for first in range(0, lanes, _LANES):
        w, x_, v, y_ = (_bytes_of(each, first) for each in (one, x, other, y))
        products.append(product(w, x_, has.neon) - product(v, y_, has.neon))
    if has.neon == "arm":
        sums = split(total, _LANES)
        return concat([add_neighbours(*each, has.neon) for each in zip(sums, products)], lanes)
    # added at once: else LLVM spills more
    return total + concat([neighbour_sums(each, has.neon) for each in products], lanes)


def _runs(has: Instructions, call: Call) -> Expr:
    sums, weights, values = call.args
    assert sums.ty.dtype.lanes == SUMS, "runs are vectors of four sums"
    added, taken = (product(_half(weights, half), _half(values, half), has.neon) for half in (0, 1))
    return add_neighbours(sums, added - taken, has.neon)


def _totals(has: Instructions, call: Call) -> Expr:
    first, lanes = call.args[0], call.ty.dtype.lanes
    assert isinstance(first, TensorLoad)
    at = first.indices[-1]
    assert isinstance(at, Ramp) and int(at.stride) == SUMS, "totals are vectors of fours"

    def sums(number_: int) -> Expr:
        return tirx.reinterpret("int32x4", load_lanes(first, at.base + number_ * SUMS, SUMS))

    parts = [_sum_each([sums(filter_ + n) for n in range(SUMS)], has.neon) for filter_ in range(0, lanes, SUMS)]
    return concat(parts, lanes)


def _sum_each(vectors: Sequence[Expr], neon: str | None) -> Expr:
    """Return the totals of four vectors of four."""
    one, other, third, fourth = vectors
    return _add_neighbours(_add_neighbours(one, other, neon), _add_neighbours(third, fourth, neon), neon)


def _add_neighbours(one: Expr, other: Expr, neon: str | None) -> Expr:
    """Add neighbours of two vectors of four: the results of the first come first."""
    if neon == "aarch64":
        return tirx.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.addp.v4i32", one, other)
    if neon == "arm":
        halves = [
            tirx.call_llvm_pure_intrin(
                "int32x2", "llvm.arm.neon.vpadd.v2i32", take([each], (0, 1)), take([each], (2, 3))
            )
            for each in (one, other)
        ]
        return take(halves, range(SUMS))
    even, odd = (take([one, other], range(first, 2 * SUMS, 2)) for first in (0, 1))
    return even + odd


def _half(run: Expr, half: int) -> Expr:
    first = half * RUN // 2
    return take([tirx.reinterpret(f"int8x{RUN}", run)], range(first, first + RUN // 2))


def _bytes_of(each: Expr, first: int) -> Expr:
    """Return the bytes of four lanes from `first` on."""
    count = 2 * _LANES
    if isinstance(each, Broadcast):
        return tirx.reinterpret(f"int8x{count}", Broadcast(each.value, _LANES))
    whole = tirx.reinterpret(f"int8x{2 * each.ty.dtype.lanes}", each)
    if each.ty.dtype.lanes == _LANES:
        return whole
    return take([whole], range(2 * first, 2 * first + count))


def sum_of_parts(total: Expr, one: Expr, other: Expr, bits: int, signed: bool = True) -> Expr:
    """Add the products of the parts of int32, of so many bits each."""
    for first in range(0, 32, bits):
        total = total + _bits(one, first, bits) * _bits(other, first, bits, signed)
    return total


def _bits(word: Expr, first: int, bits: int, signed: bool = True) -> Expr:
    """Return some bits of an int32, or of each lane, as a number."""
    dtype = str(word.ty.dtype)
    if isinstance(word, IntImm):  # TVM refuses constants that a shift takes out of their range
        found, half = int(word) >> first & (1 << bits) - 1, 1 << bits - 1
        return tirx.const((found ^ half) - half if signed else found, dtype)
    if not signed:
        return tirx.bitwise_and(tirx.shift_right(word, tirx.const(first, dtype)), tirx.const((1 << bits) - 1, dtype))
    left, right = (tirx.const(moved, dtype) for moved in (32 - bits - first, 32 - bits))
    return tirx.shift_right(tirx.shift_left(word, left), right)


def _vector(dtype: str, lanes: int) -> str:
    return str(tvm_ffi.dtype(dtype).with_lanes(lanes))


#: by operator
WRITERS: dict[str, Writer] = {
    PAIRS: _pairs, FOURS: _fours, HALVES: _halves, COUPLES: _couples, DOTS: _dots, QUADS: _quads,
    RUNS: _runs, TOTALS: _totals,
    COUPLE: couple, NEIGHBOURS: neighbours, BYTE: byte, PICKED: picked, MOVED: move,
}  # fmt: skip
