"""Fuse neighbouring axes that always occur together: longer loops for vectors, and more sizes for tiles.

    result[c, y, x] = max(data[c, y, x] + bias[c], 0)            y, x: one axis of 49 instead of two of 7
    conv 1×1: result[f, y, x] += data[c, y, x] * weight[f, c]     the same: a product of matrices

Two neighbouring dimensions of a buffer are fused if every access walks them by the same two axes, and these axes are
used in no other way. The memory layout does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod

from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, PrimFunc

from ...tir.expressions import parts, replaced
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import (
    accesses,
    analyzer_of,
    axis_like,
    blocks_of,
    change_nest,
    exchange_params,
    int64,
    kernel_of,
    move_accesses,
    reshaped,
    simplify_indices,
    stores_of,
)
from ...tir.switches import switchable

#: a buffer and a dimension of it, to fuse with the next
_Pair = tuple[Var, int]


@switchable
def flatten_axes(kernel: PrimFunc, kept: frozenset[int] = frozenset()) -> PrimFunc:
    """Fuse such axes of an unscheduled `kernel`; return it as it is without any, or for another form.

    The parameters at the positions `kept` keep their shapes.
    """
    try:
        blocks = [_simplified(block) for block in blocks_of(kernel)]
    except NoMatch:
        return kernel
    joints = _joints(blocks, [kernel.params[number] for number in sorted(kept)])
    if not joints:
        return kernel
    shapes = {buffer: _merged_shape(buffer, joints) for buffer in _buffers(blocks)}
    made = {buffer: buffer if shape is None else reshaped(buffer, shape) for buffer, shape in shapes.items()}
    nests = [_nest(block, joints, made) for block in blocks]
    params = [made.get(param, param) for param in kernel.params]
    own = [made[buffer] for buffer in _buffers(blocks) if not any(buffer.same_as(param) for param in kernel.params)]
    return kernel_of(params, nests, own, kernel.attrs)


def with_shapes_of(original: PrimFunc, flat: PrimFunc, scheduled: PrimFunc) -> PrimFunc:
    """Restore the parameter shapes of `original` in `scheduled`, a schedule of `flat`."""
    if flat.same_as(original):
        return scheduled
    shapes = {
        scheduled.params[number]: [int(extent) for extent in one.ty.shape]
        for number, (one, other) in enumerate(zip(original.params, flat.params))
        if len(one.ty.shape) != len(other.ty.shape)
    }
    if not shapes:
        return scheduled
    made = {param: reshaped(param, shape) for param, shape in shapes.items()}
    return exchange_params(scheduled, made, lambda flat, indices: _spread(flat, shapes[flat], indices))


def _spread(flat: Var, shape: Sequence[int], indices: Sequence[Expr]) -> list[Expr]:
    """Return the indices of the same element in the unfused shape.

    Of fused dimensions, the last index runs past the end of its line: the same place in memory, and simple for LLVM.
    """
    found: list[Expr] = []
    for extent, index in zip(flat.ty.shape, indices):
        group = [shape[len(found)]]
        while prod(group) < int(extent):
            group.append(shape[len(found) + len(group)])
        found += [*(int64(0) for _ in group[1:]), index]
    return [*found, *(int64(0) for _ in shape[len(found) :])]


def _simplified(block: SBlock) -> SBlock:
    """Simplify the indices of a block."""
    analyzer = analyzer_of(block.iter_vars)
    if block.init is not None and not isinstance(block.init, BufferStore):
        raise NoMatch("the initial value is not a single store")
    return simplify_indices(block, analyzer)


@lru_cache(1 << 8)
def _accesses(block: SBlock) -> list[tuple[Var, list[Expr]]]:
    return list(accesses(block))


def _buffers(blocks: Sequence[SBlock]) -> list[Var]:
    return list(dict.fromkeys(buffer for block in blocks for buffer, _ in _accesses(block)))


def _joints(blocks: Sequence[SBlock], kept: Sequence[Var]) -> set[_Pair]:
    """Find the dimensions to fuse with the next: all accesses walk both by two axes that are fused too."""
    # by numbers: comparing TVM objects is slow
    axis_number = {axis.var: number for number, axis in enumerate(axis for block in blocks for axis in block.iter_vars)}
    extents = [int(axis.dom.extent) for block in blocks for axis in block.iter_vars]
    buffers = _buffers(blocks)
    shapes = [[int(extent) for extent in buffer.ty.shape] for buffer in buffers]
    buffer_number = {buffer: number for number, buffer in enumerate(buffers)}
    accesses = {
        (buffer_number[buffer], tuple(axis_number.get(index) if isinstance(index, Var) else None for index in indices))
        for block in blocks
        for buffer, indices in _accesses(block)
    }
    axes = {(axis_number[one], axis_number[other]) for block in blocks for one, other in _neighbours(block)}
    pairs = {
        (number, dim)
        for number, buffer in enumerate(buffers)
        for dim in range(len(shapes[number]) - 1)
        if not any(buffer.same_as(each) for each in kept)
    }
    for buffer, indices in accesses:
        partly = [index is None or extents[index] != extent for index, extent in zip(indices, shapes[buffer])]
        pairs -= {(buffer, dim) for dim in range(len(indices) - 1) if partly[dim] or partly[dim + 1]}
    of_axis: dict[int | None, list[tuple[int, int]]] = {
        axis: [pair for pair in axes if axis in pair] for pair in axes for axis in pair
    }
    before = None
    while before != (len(pairs), len(axes)):
        before = len(pairs), len(axes)
        for buffer, indices in accesses:
            pairs -= {(buffer, dim) for dim in range(len(indices) - 1) if indices[dim : dim + 2] not in axes}
        for buffer, indices in accesses:
            axes -= {
                pair for index in indices for pair in of_axis.get(index, ()) if not _stays(pair, indices, buffer, pairs)
            }
    return {(buffers[number], dim) for number, dim in pairs}


def _neighbours(block: SBlock) -> Iterator[tuple[Var, Var]]:
    """Yield axis pairs of one kind that index side by side and occur nowhere else."""
    otherwise = _used_otherwise(block)
    kinds = {axis.var: int(axis.iter_type) for axis in block.iter_vars if axis.var not in otherwise}
    for _, indices in _accesses(block):
        for one, other in pairwise(indices):
            if one in kinds and other in kinds and kinds[one] == kinds[other] and not one.same_as(other):
                yield one, other


def _stays(pair: tuple[int, int], indices: Sequence[int | None], buffer: int, pairs: set[tuple[int, int]]) -> bool:
    """Return whether neither axis of a pair is an index without the other."""
    ones = [dim for dim, index in enumerate(indices) if index == pair[0]]
    others = [dim - 1 for dim, index in enumerate(indices) if index == pair[1]]
    return ones == others and all((buffer, dim) in pairs for dim in ones)


def _used_otherwise(block: SBlock) -> set[Var]:
    """Return the axes that occur other than as a plain index."""

    def found(expr: object) -> Iterator[Var]:
        if isinstance(expr, Var):
            yield expr
        for part in expr.indices if isinstance(expr, TensorLoad) else parts(expr):
            if not (isinstance(expr, TensorLoad) and isinstance(part, Var)):
                yield from found(part)

    written = [index for store in stores_of(block) for index in store.indices if not isinstance(index, Var)]
    return {var for each in (*written, *(store.value for store in stores_of(block))) for var in found(each)}


def _merged_shape(buffer: Var, joints: set[_Pair]) -> list[int] | None:
    groups = _dimensions(buffer, joints)
    if len(groups) == len(buffer.ty.shape):
        return None
    return [prod(int(buffer.ty.shape[dim]) for dim in group) for group in groups]


def _dimensions(buffer: Var, joints: set[_Pair]) -> list[list[int]]:
    """Group the dimensions of a buffer: those that are fused."""
    groups: list[list[int]] = []
    for dim in range(len(buffer.ty.shape)):
        if (buffer, dim - 1) in joints:
            groups[-1].append(dim)
        else:
            groups.append([dim])
    return groups


def _nest(block: SBlock, joints: set[_Pair], made: dict[Var, Var]) -> object:
    """Rebuild the block by its fused axes: the first axis of a group takes all its extents."""
    follows: dict[Var, Var] = {}
    for buffer, indices in _accesses(block):
        for group in _dimensions(buffer, joints):
            for dim in group[:-1]:
                follows[indices[dim]] = indices[dim + 1]
    second = set(follows.values())
    extents = {axis.var: int(axis.dom.extent) for axis in block.iter_vars}
    axes, values = [], {}
    for axis in block.iter_vars:
        if axis.var in second:
            continue
        extent, last = extents[axis.var], axis.var
        while last in follows:
            last = follows[last]
            extent *= extents[last]
        new = axis_like(axis, extent)
        axes.append(new)
        values[axis.var] = new.var

    def placed(buffer: Var, indices: Sequence[Expr]) -> list[Expr]:
        return [indices[group[0]] for group in _dimensions(buffer, joints)]

    return change_nest(block, axes, lambda store: replaced(move_accesses(store, made, placed), values))
