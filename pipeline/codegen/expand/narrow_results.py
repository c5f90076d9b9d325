"""Round requantised sums by instructions: to the nearest even, then narrower with saturation.

    AArch64     fcvtns                  int32 of float32, to the nearest even, saturated
                sqxtn, sqadd            int16 of int32, and the zero point, saturated
                sqxtn, sqxtun           int8 or uint8 of int16, saturated
    AVX2        vminps, vcvtps2dq       the same; too large a number would become the least, so its bound stays
                vpackssdw, vpaddsw      as sqxtn and sqadd
                vpacksswb, vpackuswb    as sqxtn and sqxtun
    MVE         vcvtn, vmin, vmax           the same; narrowed as they are stored

The same numbers as frontend/relax/integer/requantize.py gives: its bounds are those of the dtype, less the zero point.
"""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Call, Expr
from tvm.target.codegen import target_has_features
from tvm.tirx import Broadcast, PrimFunc

from ...tir.expressions import map_body
from ...tir.switches import switchable
from ..bare.helium import has_vectors
from .neon import intrinsics_of
from .shuffle import concat, constant, split, take

#: 1.5 × 2**23 and its bits: see requantize.py
_ROUND, _ROUND_BITS = 12582912.0, 0x4B400000
_LANES = 4
_SADD = "llvm.sadd.sat.v{}i16"
_BOUNDS = {"int8": (-128, 127), "uint8": (0, 255)}


@switchable
def expand_narrow_results(kernel: PrimFunc) -> PrimFunc:
    """Return a lowered, vectorised kernel whose requantised vectors take these instructions; the same one elsewhere."""
    narrow = _NARROW.get(_instructions_of(kernel) or "")
    if narrow is None:
        return kernel
    lanes, narrowed = narrow

    def replace(cast: tirx.Cast) -> Expr:
        parts = _parts(cast, lanes)
        return cast if parts is None else narrowed(*parts)

    return map_body(kernel, (tirx.Cast, replace))


def _instructions_of(kernel: PrimFunc) -> str | None:
    found = "mve" if has_vectors(kernel, floats=True) else intrinsics_of(kernel)
    return found or ("avx2" if target_has_features("avx2", kernel.attrs["target"]) else None)


def _parts(cast: tirx.Cast, each: int) -> tuple[tirx.Min, int, str] | None:
    """Return the bounded float, the zero point and the dtype of a requantised vector; None for other casts.

    Its lanes are a multiple of `each`.
    """
    dtype, _, lanes = str(cast.ty.dtype).partition("x")
    if dtype not in _BOUNDS or not lanes or int(lanes) % each or not isinstance(cast.value, (tirx.Add, tirx.Sub)):
        return None
    bits, shift = cast.value.a, constant(cast.value.b)
    if shift is None or not isinstance(bits, Call) or getattr(bits.op, "name", "") != "tirx.reinterpret":
        return None
    moved = bits.args[0]
    if not isinstance(moved, tirx.Add) or constant(moved.b) != _ROUND or not isinstance(moved.a, tirx.Max):
        return None
    low, least = moved.a.a, constant(moved.a.b)
    if not isinstance(low, tirx.Min) or not isinstance(low.a, tirx.Mul):
        return None
    zero = int(shift if isinstance(cast.value, tirx.Add) else -shift) + _ROUND_BITS
    bounds = tuple(bound - zero for bound in _BOUNDS[dtype])
    sums = any(
        isinstance(each, tirx.Cast) and str(each.value.ty.dtype).startswith("int32") for each in (low.a.a, low.a.b)
    )
    return (low, zero, dtype) if sums and (least, constant(low.b)) == bounds else None


def _narrow_by_neon(bounded: tirx.Min, zero: int, dtype: str) -> Expr:
    halves = []
    for part in split(bounded.a, _LANES):
        whole = tirx.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.fcvtns.v4i32.v4f32", part)
        halves.append(tirx.call_llvm_pure_intrin("int16x4", "llvm.aarch64.neon.sqxtn.v4i16", whole))
    narrow = "sqxtun" if dtype == "uint8" else "sqxtn"
    parts = []
    for number in range(0, len(halves), 2):
        pair = halves[number : number + 2]
        both = _add_zero(take([pair[0], pair[-1]], range(2 * _LANES)), zero, "llvm.aarch64.neon.sqadd.v8i16")
        parts.append(tirx.call_llvm_pure_intrin(f"{dtype}x8", f"llvm.aarch64.neon.{narrow}.v8i8", both))
    return concat(parts, bounded.ty.dtype.lanes)


def _narrow_by_avx2(bounded: tirx.Min, zero: int, dtype: str) -> Expr:
    narrow = "packuswb" if dtype == "uint8" else "packsswb"
    eights = [
        tirx.call_llvm_pure_intrin("int32x8", "llvm.x86.avx.cvt.ps2dq.256", part) for part in split(bounded, 2 * _LANES)
    ]
    parts = []
    for number in range(0, len(eights), 2):
        pair = eights[number : number + 2]
        if len(pair) == 1:
            halves = split(pair[0], _LANES)
            both = _add_zero(
                tirx.call_llvm_pure_intrin("int16x8", "llvm.x86.sse2.packssdw.128", *halves), zero, _SADD.format(8)
            )
            parts.append(tirx.call_llvm_pure_intrin(f"{dtype}x16", f"llvm.x86.sse2.{narrow}.128", both, both))
            continue
        # halves of both vectors in turns: fours of the results are put in order at the end
        both = _add_zero(
            tirx.call_llvm_pure_intrin("int16x16", "llvm.x86.avx2.packssdw", *pair), zero, _SADD.format(16)
        )
        halves = split(both, 2 * _LANES)
        turns = tirx.call_llvm_pure_intrin(f"{dtype}x16", f"llvm.x86.sse2.{narrow}.128", *halves)
        parts.append(take([turns], [four * _LANES + n for four in (0, 2, 1, 3) for n in range(_LANES)]))
    return concat(parts, bounded.ty.dtype.lanes)


def _add_zero(numbers: Expr, zero: int, name: str) -> Expr:
    """Add the zero point to vectors of int16, saturated."""
    lanes = numbers.ty.dtype.lanes
    zeros = Broadcast(tirx.const(zero, "int16"), lanes)
    return tirx.call_llvm_pure_intrin(f"int16x{lanes}", name, numbers, zeros) if zero else numbers


def _narrow_by_mve(bounded: tirx.Min, zero: int, dtype: str) -> Expr:
    parts = []
    for part in split(bounded.a, _LANES):
        nearest = tirx.const(0, "int32")  # of signed numbers
        whole = tirx.call_llvm_pure_intrin("int32x4", "llvm.arm.mve.vcvtn.v4i32.v4f32", nearest, part)
        least, most = (Broadcast(tirx.const(bound - zero, "int32"), _LANES) for bound in _BOUNDS[dtype])
        whole = tirx.min(tirx.max(whole, least), most) + Broadcast(tirx.const(zero, "int32"), _LANES)
        parts.append(whole.astype(f"{dtype}x{_LANES}"))
    return concat(parts, bounded.ty.dtype.lanes)


#: lanes of the vectors that each set of instructions takes, and how
_NARROW = {"aarch64": (_LANES, _narrow_by_neon), "mve": (_LANES, _narrow_by_mve), "avx2": (2 * _LANES, _narrow_by_avx2)}
