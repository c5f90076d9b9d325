"""Rewrite a reduction to take its operand a few rows at a time: reduction split, the result as accumulator.

for c in 0…64: sum[f, y, x] += data[c, y, x] * weight[f, c];  result = max(sum + bias, 0)    the kernel
first ─► result[f, y, x] = (result or 0) + Σ data[first + c, y, x] * …                       a part of the sum
         result[f, y, x] = max(result + bias, 0)                                             once, after the last
"""

from __future__ import annotations

from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.ir import Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, PrimFunc, Stmt

from ...tir.expressions import COMBINED, loads, reads, replaced
from ...tir.index_grid import NoMatch
from ...tir.inlining import inlined
from ...tir.loop_nests import blocks_of, covers, fresh_axes, kernel_of, nest_of, simple, spatial_axes
from ...tir.row_window import RowDependence, RowNest, Span

_REDUCE = 2


@dataclass(frozen=True)
class PartialSum:
    """Kernels of a split reduction.

    `part` takes the number of the first row, the kernel's operands, the sum so far, and the result; `finish`, None
    without epilogue, takes the operands, the sum, and the result. The sum may alias the result.
    """

    part: PrimFunc
    finish: PrimFunc | None


def sums_over(kernel: PrimFunc, operand: int, axis: int) -> bool:
    """Return whether the kernel can take an operand's rows along `axis` one by one."""
    try:
        _Reduction(inlined(kernel)).along(operand, axis)
    except NoMatch:
        return False
    return True


def partial_sum(kernel: PrimFunc, operand: int, axis: int, count: int) -> PartialSum:
    """Split `kernel` by `count` rows of an operand along `axis`. Raises NoMatch if `sums_over` is false."""
    found = _Reduction(inlined(kernel))
    return PartialSum(found.part(found.along(operand, axis), count), found.finish())


class _Reduction:
    """Match a kernel of padding, one reduction, and at most one element-wise epilogue."""

    def __init__(self, kernel: PrimFunc):
        self.kernel = kernel
        blocks = blocks_of(kernel)
        reductions = [number for number, block in enumerate(blocks) if block.init is not None]
        if len(reductions) != 1 or len(blocks) - reductions[0] > 2:
            raise NoMatch("more than padding, a reduction and an epilogue")
        self.padding, self.total = blocks[: reductions[0]], blocks[reductions[0]]
        self.last = blocks[-1] if len(blocks) - reductions[0] == 2 else None
        self.sum = self.total.body.buffer
        combine = COMBINED.get(type(self.total.body.value).__name__)
        if combine is None or not covers(self.total):
            raise NoMatch("the reduction is not a sum, max or min over the whole buffer")
        self.combine = combine
        if self.last is not None and not self._is_elementwise(self.last):
            raise NoMatch("the epilogue is not element-wise")

    def _is_elementwise(self, block: SBlock) -> bool:
        """Return whether each result element depends on the same element of the sum alone."""
        store = block.body
        reads = [load.indices for load in loads(store.value) if load.source.same_as(self.sum)]
        one, other = self.sum.ty, store.buffer.ty
        alike = str(one.dtype) == str(other.dtype) and list(map(int, one.shape)) == list(map(int, other.shape))
        same = all(tvm_ffi.structural_equal(a, b) for at in reads for a, b in zip(at, store.indices))
        return alike and same and covers(block)

    def along(self, operand: int, axis: int) -> RowDependence:
        """Find how the buffers follow the rows of an operand."""
        param = self.kernel.params[operand]
        found = RowDependence(self.kernel)
        found.spans[self.sum] = Span(1, 0, 1)
        found.add(RowNest(self.total, self._row(param, axis)))
        for block in reversed(self.padding):
            found.follow(block)
        late = self.last is not None and reads(self.last.body.value, param)
        if not found.is_followed(param) or found.dims[param] != axis or late:
            raise NoMatch("the operand is needed whole")
        follows, extent = found.follows(param), int(param.ty.shape[axis])
        if follows.low != tuple(range(extent)) or follows.high != tuple(range(1, extent + 1)):
            raise NoMatch("the rows are not taken one by one")
        return found

    def _row(self, param: Var, axis: int) -> Var:
        """Find the reduction axis that walks the rows of the operand or its padded copy."""
        padded = [each.body for each in self.padding]
        sources = [param, *(each.buffer for each in padded if reads(each.value, param))]
        reduced = [each.var for each in self.total.iter_vars if int(each.iter_type) == _REDUCE]
        for load in loads(self.total.body.value):
            # a copy of another rank is not padding: it has no such axis
            if len(load.indices) == len(param.ty.shape) and any(load.source.same_as(source) for source in sources):
                index = simple(self.total, load.indices)[axis]
                for var in reduced:
                    if var.same_as(index):
                        return var
        raise NoMatch("the operand is not reduced along the axis")

    def part(self, found: RowDependence, count: int) -> PrimFunc:
        first = Var("first", "int64")
        nests, buffers = found.window(count, first)
        result = self.kernel.params[-1]
        before, after = (tirx.decl_buffer(result.ty.shape, result.ty.dtype, name) for name in ("so_far", "result"))
        added = self.sum
        if self.last is None:  # the sum is the result
            added = tirx.decl_buffer(result.ty.shape, result.ty.dtype, "part")
            nests = [replaced(nest, {result: added}) for nest in nests]
        own = [buffers.get(each, each) for each in found.written if not each.same_as(self.sum)]
        so_far = self._accumulate(first, before, added, after)
        params = [first, *(buffers.get(each, each) for each in self.kernel.params[:-1]), before, after]
        return kernel_of(params, [*nests, so_far], [*own, added], self.kernel.attrs)

    def _accumulate(self, first: Var, before: Var, added: Var, after: Var) -> Stmt:
        axes = spatial_axes([int(extent) for extent in after.ty.shape])
        at = [axis.var for axis in axes]
        so_far = tirx.if_then_else(first == 0, self.total.init.value, tirx.BufferLoad(before, at))
        return nest_of(axes, "accumulate", BufferStore(after, self.combine(so_far, tirx.BufferLoad(added, at)), at))

    def finish(self) -> PrimFunc | None:
        if self.last is None:
            return None
        axes, values = fresh_axes(self.last)
        store = replaced(self.last.body, values)
        *operands, result = self.kernel.params
        return kernel_of([*operands, self.sum, result], [nest_of(axes, "finish", store)], [], self.kernel.attrs)
