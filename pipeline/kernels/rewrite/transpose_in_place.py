"""Turn a tensor in place, from planes to rows one after the other, or back: no second tensor is needed.

    planes c0: r0 r1 r2   c1: r0 r1 r2      ─►      rows r0: c0 c1   r1: c0 c1   r2: c0 c1

Rows of a plane are moved whole, along the cycles of the permutation, each begun at its least place (Windley, 1959).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, IfThenElse, PrimFunc, Stmt

from ...memory.streaming.growth import rows_first
from ...memory.streaming.region import Region
from ...program import Program, Step
from ...tir.loop_nests import buffer_of, int64, kernel_of, sequence
from ..schedule.candidates import as_it_is

_SERIAL, _VECTORIZED = 0, 2
#: elements moved at a time
_LANES = 16


def turns_of(row_before: Program, program: Program, region: Region, step: Step) -> dict[str, PrimFunc]:
    """Build the kernels of the steps that turn the operand, or the result, of `region`, merged as `step`; by name."""
    over = region.replacement
    if over is None or over.growth is None:
        return {}
    found = {}
    for each in program.steps:
        back = each.reads == (step.writes[step.in_place[0].write],) and each.writes == (over.result,)
        if back or (each.reads == over.operands and each.writes == (step.reads[step.in_place[0].read],)):
            axis = region.stage_of(row_before, over.result).axis if back else over.growth.axis
            what = program.tensors[over.result if back else over.operands[0]]
            found[each.kernel] = transpose_in_place(what.shape, axis, what.dtype, back)
    return found


def transpose_in_place(shape: Sequence[int], axis: int, dtype: str, back: bool) -> PrimFunc:
    """Build the kernel that turns rows along `axis` in place, or turns them `back`.

    Its operand is at its result's bytes.
    """
    outer, inner = (math.prod(shape[:axis]), shape[axis]) if not back else (shape[axis], math.prod(shape[:axis]))
    count, width = outer * inner, math.prod(shape[axis + 1 :])
    given, made = (shape, rows_first(shape, axis)) if not back else (rows_first(shape, axis), shape)
    operand, result = buffer_of("operand0", given, dtype), buffer_of("result0", made, dtype)
    held = buffer_of("held", [width], dtype)
    at, source = buffer_of("at", [1], "int64"), buffer_of("source", [1], "int64")
    first = Var("first", "int64")

    def value(of: Var) -> Expr:
        return tirx.BufferLoad(of, [int64(0)])

    def put(of: Var, what: Expr) -> Stmt:
        return BufferStore(of, what, [int64(0)])

    def row_before(place: Expr) -> Expr:
        return tirx.floormod(place * int64(inner), int64(count - 1))  # place of the row that belongs at `place`

    def at_row(row: Expr | None, place: Expr) -> list[Expr]:
        # one index for all axes: the tensor is compact
        return [place] if row is None else [*[int64(0)] * (len(made) - 1), row * int64(width) + place]

    def move_row(to: Var, to_row: Expr | None, of: Var, of_row: Expr | None) -> Stmt:
        whole = width - width % _LANES
        parts = [(0, whole, _LANES, _VECTORIZED)] * (whole > 0) + [(whole, width - whole, 1, _SERIAL)] * (whole < width)
        loops: list[Stmt] = []
        for start, extent, lanes, kind in parts:
            part, lane = Var("part", "int64"), Var("lane", "int64")
            place = int64(start) + part * int64(lanes) + lane
            store = BufferStore(to, tirx.BufferLoad(of, at_row(of_row, place)), at_row(to_row, place))
            loops.append(
                For(part, int64(0), int64(extent // lanes), _SERIAL, For(lane, int64(0), int64(lanes), kind, store))
            )
        return sequence(loops)

    follow = tirx.While(value(source) > first, put(source, row_before(value(source))))
    cycle = tirx.While(
        value(source) != first,
        sequence(
            [
                move_row(result, value(at), result, value(source)),
                put(at, value(source)),
                put(source, row_before(value(at))),
            ]
        ),
    )
    rotate = sequence([
        move_row(held, None, result, first), put(at, first), put(source, row_before(first)), cycle, move_row(result, value(at), held, None),
    ])  # fmt: skip
    body = sequence([put(source, row_before(first)), follow, IfThenElse(value(source).equal(first), rotate, None)])
    loop = For(first, int64(1), int64(max(count - 2, 0)), _SERIAL, body)
    kernel = kernel_of([operand, result], [loop], [held, at, source], None).with_attr("tirx.noalias", True)
    return as_it_is(kernel)
