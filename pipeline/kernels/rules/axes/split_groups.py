"""Give the groups of a grouped convolution an axis of their own, so that filters of a group form tiles.

    y[f] += x[f / 8 · 4 + c] · w[f, c]                 f moves both operands: nothing stays in registers

    y[g, i] += x[g · 4 + c] · w[g, i, c]               i moves the weight alone, and runs along vectors

The memory of all tensors stays as it is; a weight is repacked group by group (see weights/repack.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, FloorDiv, IntImm, PrimFunc

from ....tir.expressions import loads, parts, replaced
from ....tir.index_grid import Unknown
from ....tir.loop_nests import (
    analyzer_of,
    axis_like,
    blocks_of,
    int64,
    kernel_of,
    nest_of,
    reshaped,
    simplified,
)
from ...weights.repack import Repack
from .exchange_params import exchange_params


@dataclass(frozen=True)
class Grouped:
    """Kernel with an axis of `inner` elements split off; `dimensions` are the split ones, by position of a parameter."""

    kernel: PrimFunc
    inner: int
    dimensions: tuple[tuple[int, int], ...]

    def joined(self, scheduled: PrimFunc, repacks: Sequence[Repack]) -> tuple[PrimFunc, tuple[Repack, ...]] | None:
        """Return the schedule of the split kernel for the true shapes, and its repacks group by group.

        None if a weight was repacked along another dimension than filters of a group.
        """
        packed, split = {repack.parameter: repack for repack in repacks}, dict(self.dimensions)
        if any(number in split and repack.dimension != split[number] + 1 for number, repack in packed.items()):
            return None
        made, places = {}, {}
        for number, dimension in self.dimensions:
            if number not in packed:
                param = scheduled.params[number]
                shape = [int(extent) for extent in param.ty.shape]
                shape[dimension : dimension + 2] = [shape[dimension] * self.inner]
                made[param], places[param] = reshaped(param, shape), dimension

        def placed(buffer: Var, indices: Sequence[Expr]) -> list[Expr]:
            at = places[buffer]
            return [*indices[:at], indices[at] * self.inner + indices[at + 1], *indices[at + 2 :]]

        return exchange_params(scheduled, made, placed), tuple(
            replace(repack, dimension=split[number], inner=self.inner) if number in split else repack
            for number, repack in packed.items()
        )


def split_groups(kernel: PrimFunc) -> Grouped | None:
    """Split the axis of filters by groups; None for an unscheduled kernel of another form."""
    try:
        blocks = blocks_of(kernel)
        found = next((each for block in blocks for each in [_grouped_axis(block)] if each is not None), None)
        return None if found is None else _split(kernel, blocks, *found)
    except Unknown:
        return None


def _grouped_axis(block: SBlock) -> tuple[Var, int, int] | None:
    """Find the buffer and dimension a reduction writes by group, and the filters of a group, more than one."""
    if block.init is None:
        return None
    for number, index in enumerate(block.body.indices):
        for load in loads(block.body.value):
            for quotient in _quotients(load.indices):
                inner = int(quotient.b) if quotient.a.same_as(index) and isinstance(quotient.b, IntImm) else 1
                if inner > 1 and int(block.body.buffer.ty.shape[number]) % inner == 0:
                    return block.body.buffer, number, inner
    return None


def _quotients(exprs: Sequence[Expr]) -> list[FloorDiv]:
    found = []
    for expr in exprs:
        found += [expr] if isinstance(expr, FloorDiv) else []
        found += _quotients([part for part in parts(expr) if not isinstance(expr, TensorLoad)])
    return found


def _split(kernel: PrimFunc, blocks: Sequence[SBlock], buffer: Var, dimension: int, inner: int) -> Grouped | None:
    extent = int(buffer.ty.shape[dimension])
    dims, axes = {(buffer, dimension)}, set()
    accesses = [access for block in blocks for access in _accesses(block)]
    before = 0
    while before != len(dims):
        before = len(dims)
        for other, indices in accesses:
            for number, index in enumerate(indices):
                if (other, number) in dims:
                    if not isinstance(index, Var):
                        return None
                    axes.add(index)
                if isinstance(index, Var) and index in axes:
                    dims.add((other, number))
    split = dict(dims)
    if len(split) != len(dims) or any(int(other.ty.shape[number]) != extent for other, number in dims):
        return None
    made = {
        other: reshaped(other, [*map(int, other.ty.shape[:number]), extent // inner, inner, *map(int, other.ty.shape[number + 1 :])])
        for other, number in split.items()
    }
    nests = []
    for block in blocks:
        own, values, halves = [], {}, {}
        for axis in block.iter_vars:
            if axis.var in axes:
                if int(axis.dom.extent) != extent:
                    return None
                pair = axis_like(axis, extent // inner), axis_like(axis, inner)
                own += pair
                halves[axis.var] = (pair[0].var, pair[1].var)
                values[axis.var] = pair[0].var * int64(inner) + pair[1].var
            else:
                own.append(axis_like(axis, int(axis.dom.extent)))
                values[axis.var] = own[-1].var
        analyzer = analyzer_of(own)

        def placed(other: Var, indices: Sequence[Expr], halves=halves, values=values, analyzer=analyzer) -> list[Expr]:
            found: list[Expr] = []
            for number, index in enumerate(indices):
                if other in split and split[other] == number:
                    found += halves[index]
                else:
                    found.append(simplified(analyzer, replaced(index, values)))
            return found

        def load(each: TensorLoad, placed=placed) -> TensorLoad:
            return tirx.BufferLoad(made.get(each.source, each.source), placed(each.source, each.indices))

        def store(each: BufferStore | None, placed=placed, load=load, values=values) -> BufferStore | None:
            if each is None:
                return None
            value = replaced(tvm_ffi.structural_map(each.value, [(TensorLoad, load)]), values)
            return BufferStore(made.get(each.buffer, each.buffer), value, placed(each.buffer, each.indices))

        nests.append(nest_of(own, block.name_hint, store(block.body), store(block.init)))
    buffers = [made.get(each, each) for each in kernel.body.block.alloc_buffers]
    params = [made.get(param, param) for param in kernel.params]
    numbers = tuple((n, split[param]) for n, param in enumerate(kernel.params) if param in split)
    return Grouped(kernel_of(params, nests, buffers, kernel.attrs), inner, numbers)


def _accesses(block: SBlock) -> list[tuple[Var, list[Expr]]]:
    stores = [block.body] if block.init is None else [block.init, block.body]
    found = [(store.buffer, list(store.indices)) for store in stores]
    return found + [(load.source, list(load.indices)) for store in stores for load in loads(store.value)]
