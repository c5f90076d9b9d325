"""Overlap the last two vectors of an axis whose extent the lanes do not divide.

    for n in 0…197: y[n] = Σ a[k] · b[k, n]         197 = 24 · 8 + 5: no vector of 8 lanes divides it

    for v in 0…25, lane in 0…8:                     wide: 200, scheduled like any other extent
        n = min(8 v, 189) + lane                    the last vector starts at 189, and computes 3 results again
        y[n] = Σ a[k] · b[k, n]

An axis shorter than a vector has two shorter ones: 13 filters are 8 and 8, three of them computed twice.

Nothing is read or written past the end of a tensor. A weight is repacked with the whole axis last, and grows by nothing;
if it is long, in blocks of vectors, of which the last overlap: lines of the cache hold no parts of two vectors.
Results that an operand of the same size might share memory with are left alone: they are written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, PrimFunc
from tvm.tirx.analysis import undefined_vars

from ....targets import Machine
from ....tir.expressions import loads, replaced
from ....tir.in_place.analysis import analyse_sharing
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import (
    accesses,
    blocks_of,
    change_nest,
    exchange_params,
    fresh_axes,
    int64,
    kernel_of,
    move_accesses,
    resized,
    stores_of,
)
from ...weights.repack import Repack
from .walked_dimensions import walked_dimensions

#: lanes of the shortest vectors: two of them cost less than single elements
_SHORTEST = 2
#: least extents of an axis that its last vector makes longer by one: a weight grows by no larger part in blocks
_BLOCKS = 16


@dataclass(frozen=True)
class Wide:
    """Kernel with one axis rounded up to whole vectors of `lanes`.

    `dimensions` are those of the parameters that the axis walks, by position of the parameter.
    """

    kernel: PrimFunc
    extent: int
    lanes: int
    dimensions: tuple[tuple[int, int], ...]

    @property
    def rounded(self) -> int:
        """Return the extent of the axis in whole vectors."""
        return self.extent + -self.extent % self.lanes

    @property
    def is_long(self) -> bool:
        """Return whether weights are repacked in blocks of whole vectors."""
        return _BLOCKS * (self.rounded - self.extent) <= self.extent

    def of(self, machine: Machine) -> Machine:
        """Return the machine with vectors of these lanes."""
        return replace(machine, lanes=self.lanes)

    def narrowed(self, scheduled: PrimFunc, repacks: Sequence[Repack]) -> tuple[PrimFunc, tuple[Repack, ...]] | None:
        """Return the schedule of the wide kernel for the true shapes, and its repacks.

        None if a weight that the axis walks was repacked along another dimension.
        """
        packed, made, places = {repack.parameter: repack for repack in repacks}, {}, {}
        for number, dimension in self.dimensions:
            param, repack = scheduled.params[number], packed.get(number)
            if repack is not None:
                if repack.dimension != dimension:
                    return None
                if self.is_long:
                    packed[number] = replace(repack, extent=self.extent, lanes=self.lanes)
                    continue
                packed[number] = replace(repack, width=self.extent)
                dimension = len(param.ty.shape) - 1
            made[param], places[param] = resized(param, dimension, self.extent), dimension

        def placed(buffer: Var, indices: Sequence[Expr]) -> list[Expr]:
            return [self._place(index) if n == places[buffer] else index for n, index in enumerate(indices)]

        return exchange_params(scheduled, made, placed), tuple(packed.values())

    def _place(self, index: Expr) -> Expr:
        """Return the element at a wide index: the last vector starts `lanes` before the end."""
        return tirx.min(index // self.lanes * self.lanes, int64(self.extent - self.lanes)) + index % self.lanes


def overlapped(
    kernel: PrimFunc, machine: Machine, scheduled: Callable[[PrimFunc, int], PrimFunc | None]
) -> PrimFunc | None:
    """Schedule `kernel`, which is unscheduled and flat, with the last vectors of one axis overlapping.

    `scheduled` takes the wide kernel and its lanes. None if it fits no axis, or if a result may share an operand's memory.
    """
    sharing = analyse_sharing(kernel)
    if sharing.in_place or sharing.copies:
        return None
    for wide in widened(kernel, machine, alone=True):
        made = scheduled(wide.kernel, wide.lanes)
        narrow = None if made is None else wide.narrowed(made, ())
        if narrow is not None:
            return narrow[0]
    return None


def widened(kernel: PrimFunc, machine: Machine, alone: bool = False) -> Iterator[Wide]:
    """Yield `kernel`, which is unscheduled and flat, with one axis of its result in whole vectors.

    Yields nothing for machines of single lanes, or of joined registers, whose shorter vectors cost less. The result of a
    kernel known to be `alone` shares no memory with operands.
    """
    if machine.lanes == 1 or machine.lmul > 1:
        return
    try:
        blocks = blocks_of(kernel)
    except NoMatch:
        return
    written = [param for param in kernel.params if any(block.body.buffer.same_as(param) for block in blocks)]
    if len(written) != 1:
        return
    (result,) = written
    for dimension, extent in enumerate(map(int, result.ty.shape)):
        lanes = _lanes(extent, machine)
        found = walked_dimensions(blocks, result, dimension) if lanes and extent % lanes else None
        if found is None or not _is_index(blocks, found[1]) or not (alone or not _may_share(kernel, blocks, result)):
            continue
        yield _wide(kernel, blocks, *found, extent, lanes)


def _lanes(extent: int, machine: Machine) -> int:
    """Return the lanes of the longest vectors shorter than `extent`; 0 if they are too short."""
    lanes = machine.lanes
    while lanes >= max(extent, _SHORTEST):
        lanes //= 2
    return lanes if lanes >= _SHORTEST else 0


def _is_index(blocks: Sequence[SBlock], axes: set[Var]) -> bool:
    """Return whether axes are spatial, and used as an index alone: in no value, and in no index with others."""

    def load(each: TensorLoad) -> Expr:
        return tirx.const(0, str(each.source.ty.dtype))

    used: list[Expr] = []
    for block in blocks:
        used += [index for _, indices in accesses(block) for index in indices if not isinstance(index, Var)]
        used += [tvm_ffi.structural_map(store.value, [(TensorLoad, load)]) for store in stores_of(block)]
    kinds = {int(axis.iter_type) for block in blocks for axis in block.iter_vars if axis.var in axes}
    return kinds == {0} and axes.isdisjoint(var for each in used for var in undefined_vars(each))


def _may_share(kernel: PrimFunc, blocks: Sequence[SBlock], result: Var) -> bool:
    """Return whether the result depends on an operand of its size other than through a reduction."""
    steps = [block.body for block in blocks if block.init is None]
    reached, read = [result], []
    while reached:
        buffer = reached.pop()
        found = [load.source for store in steps if store.buffer.same_as(buffer) for load in loads(store.value)]
        read += found
        reached += [source for source in found if not source.same_as(buffer)]
    size = prod(map(int, result.ty.shape))
    return any(
        source.same_as(param) and prod(map(int, source.ty.shape)) == size for source in read for param in kernel.params
    )


def _wide(
    kernel: PrimFunc, blocks: Sequence[SBlock], walked: dict[Var, int], axes: set[Var], extent: int, lanes: int
) -> Wide:
    wide = -(-extent // lanes) * lanes
    made = {buffer: resized(buffer, dimension, wide) for buffer, dimension in walked.items()}
    nests = []
    for block in blocks:
        own, values = fresh_axes(block, dict.fromkeys(axes, wide))

        def change(store: BufferStore, values=values) -> BufferStore:
            return replaced(move_accesses(store, made), values)

        nests.append(change_nest(block, own, change))
    params = [made.get(param, param) for param in kernel.params]
    internal = [made.get(buffer, buffer) for buffer in kernel.body.block.alloc_buffers]
    numbers = tuple((n, walked[param]) for n, param in enumerate(kernel.params) if param in walked)
    return Wide(kernel_of(params, nests, internal, kernel.attrs), extent, lanes, numbers)
