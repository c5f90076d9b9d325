"""Decide the mapping type of each kernel operand from its accesses in TIR, never from a name.

    for i, j: y[i, j] = x[j, i] + b[j]          x: shuffle      b: one-to-many
    for i, k: y[i] += x[i, k] * w[k]            x, w: many-to-many

Indices that are mixed-radix numbers of the axes are decided symbolically, others by evaluating all of them. The
kernel is as legalised, unscheduled; its internal element-wise blocks are inlined first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tvm_ffi
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.sym import detect_linear_equation
from tvm.tirx import IntImm, IterVar, PrimFunc

from ..program import DTYPE_BYTES
from ..program.mapping import Access, BlockAccesses, KernelAccesses, MappingType
from .expressions import loads, operations_of, uses
from .in_place.analysis import flat_shift, masked_loads, takes_address
from .index_grid import GridLoop, NoMatch, chunks
from .inlining import inlined
from .loop_nests import blocks_of, simple
from .memoise import memoise_by_structure
from .stores import Store

#: most iterations of a block evaluated one by one; a larger one counts as reading elements several times
_MOST_ITERATIONS = 1 << 24


@memoise_by_structure
def accesses_of(kernel: PrimFunc) -> KernelAccesses | None:
    """Read all accesses of an unscheduled kernel with one result, its last parameter.

    None for a kernel of another form: several results, stores at computed places, opaque calls.
    """
    try:
        flat = inlined(kernel)
        blocks = blocks_of(flat)
        return _read(flat, blocks)
    except NoMatch:
        return None


def is_injective(indices: Sequence[Expr], axes: Sequence[IterVar]) -> bool:
    """Return whether no two iterations have the same `indices`, as far as linear indices show it.

    True if every index is a mixed-radix number of axes, and each axis is in one index.
    """
    axes = [axis for axis in axes if int(axis.dom.extent) > 1]
    used: list[int] = []
    for index in indices:
        taken = _mixed_radix(index, axes)
        if taken is None:
            return False
        used += taken
    return sorted(used) == list(range(len(axes)))


def _mixed_radix(index: Expr, axes: Sequence[IterVar]) -> list[int] | None:
    """Return the numbers of the axes in `index`, None unless it is a mixed-radix number.

    That is a sum of axis·stride, each stride greater than the sum of all smaller terms.
    """
    coefficients = detect_linear_equation(index, [axis.var for axis in axes])
    if len(coefficients) != len(axes) + 1:
        return None
    strides = [int(each) for each in list(coefficients)[:-1]]
    terms = sorted((stride, int(axes[number].dom.extent), number) for number, stride in enumerate(strides) if stride)
    reach = 1
    for stride, extent, _ in terms:
        if stride < reach:
            return None
        reach = stride * (extent - 1) + reach
    return [number for _, _, number in terms]


def _read(kernel: PrimFunc, blocks: Sequence[SBlock]) -> KernelAccesses:
    params = list(kernel.params)
    if not blocks or not all(hasattr(param.ty, "shape") for param in params):
        raise NoMatch("a parameter is not a buffer")
    numbers: dict[Var, int] = {param: number for number, param in enumerate(params[:-1])}
    found: list[BlockAccesses] = []
    for block in blocks:
        if block.body.buffer in numbers:
            raise NoMatch("a buffer is written twice")
        found.append(_block(block, numbers))
        numbers[block.body.buffer] = len(params) - 1 + len(found) - 1
    if not blocks[-1].body.buffer.same_as(params[-1]):
        raise NoMatch("the last block does not write the result")
    return KernelAccesses(len(params) - 1, tuple(found))


def _block(block: SBlock, numbers: dict[Var, int]) -> BlockAccesses:
    written, axes = block.body.buffer, _axes(block)
    store = Store(
        written, list(block.body.indices), block.body.value,
        tuple(GridLoop(axis.var, 0, int(axis.dom.extent)) for axis in block.iter_vars), (), (),
    )  # fmt: skip
    if takes_address(store):
        raise NoMatch("a store takes an address")
    forms: list[tuple[TensorLoad, tuple, int]] = []
    for load, masks in masked_loads(store):
        if load.source.same_as(written):
            continue  # the running value of a reduction
        if load.source not in numbers:
            raise NoMatch("a buffer is read before it is written")
        alike = next((n for n, (other, _, _) in enumerate(forms) if _same(load, other)), None)
        if alike is None:
            forms.append((load, masks, 1))
        else:
            forms[alike] = (forms[alike][0], (), forms[alike][2] + 1)
    sources = [load.source for load, _, _ in forms]
    accesses = tuple(
        Access(numbers[load.source], _mapping(block, store, load, masks, sources), _dims(block, load, axes), count)
        for load, masks, count in forms
    )
    extents = tuple(1 if axis is None else int(axis.dom.extent) for axis in axes)
    itemsize = DTYPE_BYTES.get(str(written.ty.dtype))
    if itemsize is None:
        raise NoMatch("the result has no plain dtype")
    return BlockAccesses(
        extents, len(written.ty.shape), itemsize, operations_of(store.value), block.init is not None, accesses
    )


def _axes(block: SBlock) -> list[IterVar | None]:
    """Return the axis of each dimension written, None for a constant index, and the summed axes."""
    left = list(block.iter_vars)
    axes: list[IterVar | None] = []
    for index, extent in zip(block.body.indices, block.body.buffer.ty.shape):
        axis = next((each for each in left if each.var.same_as(index)), None)
        if axis is None and not (isinstance(index, IntImm) and int(extent) == 1):
            raise NoMatch("a block writes at a computed place")
        if axis is not None:
            if int(axis.dom.extent) != int(extent):
                raise NoMatch("a block writes part of its buffer")
            left.remove(axis)
        axes.append(axis)
    if left and block.init is None and any(int(each.dom.extent) > 1 for each in left):
        raise NoMatch("a block writes an element twice")
    return axes + left


def _dims(block: SBlock, load: TensorLoad, axes: Sequence[IterVar | None]) -> tuple[frozenset[int], ...]:
    return tuple(
        frozenset(number for number, axis in enumerate(axes) if axis is not None and uses(index, axis.var))
        for index in simple(block, load.indices)
    )


def _mapping(block: SBlock, store: Store, load: TensorLoad, masks: tuple, sources: Sequence[Var]) -> MappingType:
    summed = [axis for axis in block.iter_vars if block.init is not None and not _selects(block, axis)]
    if any(uses(index, axis.var) for axis in summed for index in load.indices):
        return MappingType.MANY_TO_MANY
    if sum(load.source.same_as(each) for each in sources) > 1:
        return MappingType.MANY_TO_MANY  # several elements meet in one result
    if any(loads(index) for index in load.indices):
        return MappingType.SHUFFLE  # places come from data
    source, result = _shape(load.source), _shape(store.buffer)
    if np.prod(source) == np.prod(result) and flat_shift([(store, load, masks)]) == 0:
        return MappingType.ONE_TO_ONE if source == result else MappingType.REORGANISE
    if is_injective(simple(block, load.indices), block.iter_vars) or _reads_once(store, load, masks):
        return MappingType.SHUFFLE
    return MappingType.ONE_TO_MANY


def _selects(block: SBlock, axis: IterVar) -> bool:
    return any(axis.var.same_as(index) for index in block.body.indices)


def _reads_once(store: Store, load: TensorLoad, masks: tuple) -> bool:
    """Return whether no element is read by two iterations, by evaluating all indices."""
    if store.iterations > _MOST_ITERATIONS:
        return False
    seen = np.zeros(int(np.prod(_shape(load.source))), dtype=bool)
    count = 0
    try:
        for grid in chunks(store.loops, store.bindings):
            (places,) = grid.select(masks, grid.flat(load.indices, load.source))
            count += places.size
            seen[places] = True
    except (NoMatch, IndexError):
        return False
    return count == int(seen.sum())


def _same(one: TensorLoad, other: TensorLoad) -> bool:
    return one.source.same_as(other.source) and all(map(tvm_ffi.structural_equal, one.indices, other.indices))


def _shape(buffer: Var) -> list[int]:
    return [int(extent) for extent in buffer.ty.shape]
