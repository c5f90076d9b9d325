"""Write sums along runs of bytes (tir/operators/runs.py) by NEON's instructions.

    smull  v.8h, w[0:8], x[0:8]       products of eight neighbours, int16
    smlsl2 v.8h, w[8:16], x[8:16]     less those of the next eight
    sadalp sums.4s, v.8h              neighbours added up in int32
    addp                              four sums of four runs each become one number each, by three

16 products in three instructions without copies of a value (XNNPACK, the kernels c16 "mlal"). Written as vectors that
LLVM knows: on other targets the same numbers come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad
from tvm.tirx import Broadcast, IntImm, PrimFunc, Ramp

from ...tir.operators.runs import ACROSS, GROUP, RUN, RUNS, SUMS, TOTALS, TURNED
from .neon import add_neighbours, intrinsics_of, less_products, neighbour_sums, products_of
from .shuffle import expand_operators, take


def expand_byte_runs(kernel: PrimFunc) -> PrimFunc:
    """Expand the operators of tir/operators/runs.py in a lowered, vectorised kernel, by its attribute `target`."""
    neon = intrinsics_of(kernel)
    return expand_operators(kernel, {name: partial(write, neon=neon) for name, write in _WRITERS.items()})


def _runs(call: Call, neon: str | None) -> Expr:
    sums, weights, values = call.args
    assert sums.ty.dtype.lanes == SUMS, "runs are vectors of four sums"
    (w0, w1), (x0, x1) = ([_half(each, half) for half in (0, 1)] for each in (weights, values))
    return add_neighbours(sums, less_products(w0, x0, w1, x1, neon), neon)


def _half(run: Expr, half: int) -> Expr:
    first = half * RUN // 2
    return take([tirx.reinterpret(f"int8x{RUN}", run)], range(first, first + RUN // 2))


def _group(call: Call, neon: str | None) -> Expr:
    sums, weights, values, *rest = call.args
    numbers = list(map(_number, rest))
    factors = [
        (_half(_run(weights, half // 2), half % 2), _half(_run(values, run), half % 2))
        for half, run in zip(numbers[::2], numbers[1::2])
    ]
    products = products_of(factors, neon)
    first = isinstance(sums, Broadcast) and isinstance(sums.value, IntImm)
    return neighbour_sums(products, neon) if first and neon != "arm" else add_neighbours(sums, products, neon)


def _across(call: Call, neon: str | None) -> Expr:
    return _sum_each(list(call.args), neon)


def _number(operand: Expr) -> int:
    """Return a constant operand, which vectorised loops repeat."""
    return int(operand.value if isinstance(operand, Broadcast) else operand)


def _load_near(load: Expr, offset: int, lanes: int, step: int = 1) -> Expr:
    """Load neighbours at an offset from the first element of a vector, elements `step` apart."""
    assert isinstance(load, TensorLoad)
    at = load.indices[-1]
    assert isinstance(at, Ramp) and int(at.stride) == step, "a vector has another step"
    return tirx.BufferLoad(
        load.source, [*load.indices[:-1], Ramp(at.base + offset, tirx.const(1, at.base.ty.dtype), lanes)]
    )


def _run(load: Expr, number: int) -> Expr:
    """Load a run by its number, relative to the run of a load."""
    lanes = RUN * 8 // load.ty.dtype.bits
    return _load_near(load, number * lanes, lanes)


def _turn(call: Call, neon: str | None) -> Expr:
    load, place = call.args
    number, lanes = _number(place), load.ty.dtype.lanes
    assert lanes % SUMS == 0, "fours have gaps"
    whole = tirx.reinterpret(f"int32x{lanes * SUMS}", _load_near(load, -number, lanes * SUMS, SUMS))
    return take([whole], range(number, lanes * SUMS, SUMS))


def _totals(call: Call, neon: str | None) -> Expr:
    first, lanes = call.args[0], call.ty.dtype.lanes
    assert lanes % SUMS == 0, "totals are vectors of fours"

    def sums(number: int) -> Expr:
        return tirx.reinterpret("int32x4", _load_near(first, number * SUMS, SUMS, SUMS))

    parts = [_sum_each([sums(filter_ + n) for n in range(SUMS)], neon) for filter_ in range(0, lanes, SUMS)]
    return parts[0] if len(parts) == 1 else take(parts, range(lanes))


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


#: by operator
_WRITERS = {RUNS: _runs, TOTALS: _totals, GROUP: _group, ACROSS: _across, TURNED: _turn}
