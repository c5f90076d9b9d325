"""Model a group of kernels as one: bytes moved, arithmetic done again, workspace.

    relu ─► sum ─► divide          relu, read by both, is inlined: computed twice
      └─────────────►              sum keeps a buffer, and is computed inside the loops of `divide` that select its elements

The model follows what `kernels/rules/fuse_loops.py` makes of a fused kernel: blocks that reduce keep a buffer of the
elements one iteration needs, all others are inlined into their readers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from ....memory import ALIGNMENT
from ....memory.liveness import aligned
from ....program.mapping import FUNCTION_COST, BlockAccesses, Fusion, KernelAccesses, MappingType, fusion_of, through

#: worth in bytes moved of an operation done again, of an iteration of a reduction in plain loops, of a kernel call
OPERATION, UNTILED, CALL = 0.25, 6.0, 1024.0
#: most kernels in a group
MOST_MEMBERS = 48


@dataclass(frozen=True)
class KernelCalls:
    """Kernel calls of a graph, one per value: `reads` number the operands' values.

    A kernel that could not be read is None, and is never fused. `nbytes` are those of each value, weights included.
    Values in `placed` are copies: alone, their parts are written in their place (see `share`).
    """

    kernels: tuple[KernelAccesses | None, ...]
    reads: tuple[tuple[int, ...] | None, ...]
    nbytes: tuple[int, ...]
    placed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class GroupModel:
    """Modelled needs of a group.

    `moved` and `workspace` are in bytes; `arithmetic` counts operations if nothing is done again, `redone` those that
    are, beyond what each kernel repeats alone; `untiled` counts iterations of reductions that lose their fast schedule,
    which the schedule of the group tells, not this model, as it tells the bytes read `again` by windows of rows.
    """

    moved: int
    arithmetic: int
    redone: int
    untiled: int
    workspace: int
    in_place: frozenset[int]
    calls: int = 1
    again: int = 0
    staged: bool = False

    @property
    def time(self) -> float:
        return self.moved + self.again + OPERATION * self.redone + UNTILED * self.untiled + CALL * self.calls


def model_of(calls: KernelCalls, group: frozenset[int], held: int = 0) -> GroupModel | None:
    """Model a group, its last value the result; None if its kernels may not be fused.

    Its reductions may run in stages that hold `held` bytes between them: nothing is done again then.
    """
    if len(group) == 1:
        return _alone(calls, next(iter(group)))
    if len(group) > MOST_MEMBERS or any(calls.kernels[each] is None for each in group):
        return None
    fused = _Fused(calls, group)
    alone = [_Fused(calls, frozenset({each})) for each in sorted(group)]
    redone = fused.operations - sum(each.operations for each in alone)
    between = _between(calls, group, held)
    if redone > 0 and between is not None:
        return GroupModel(fused.moved, sum(each.arithmetic for each in alone), 0, 0, between, frozenset(), staged=True)
    for producer, mapping in fused.edges():
        if redone > 0 and fusion_of(producer, mapping) is Fusion.NEVER:
            return None
    return GroupModel(
        fused.moved, sum(each.arithmetic for each in alone), max(redone, 0), 0, fused.workspace, fused.in_place
    )


def _between(calls: KernelCalls, group: frozenset[int], held: int) -> int | None:
    """Return the bytes between the stages of a group, `held` at most; None if it has one stage, or needs more."""
    summing = [each for each in sorted(group) if any(block.reduces for block in _accesses(calls, each).blocks)][:-1]
    if not held or not summing:
        return None
    least = whole = sum(calls.nbytes[each] for each in summing)
    for axis, extent in enumerate(_accesses(calls, max(group)).result.extents):
        if whole > held and extent > 1:
            rows = _rows_along(calls, group, axis)
            least = min(least, sum(calls.nbytes[each] // (extent if each in rows else 1) for each in summing))
    return min(whole, held) if least <= held else None


def _rows_along(calls: KernelCalls, group: frozenset[int], axis: int) -> frozenset[int]:
    """Return the values of a group of which a row of the result, along its `axis`, needs one row alone."""
    axes = {max(group): axis}
    whole: set[int] = set()
    for value in sorted(group, reverse=True):
        for operand, read in enumerate(calls.reads[value] or ()):
            row = None if value in whole else _accesses(calls, value).row_of(operand, axes[value])
            if read in group and (row is None or axes.setdefault(read, row) != row):
                whole.add(read)
    return group - whole


def _accesses(calls: KernelCalls, value: int) -> KernelAccesses:
    kernel = calls.kernels[value]
    assert kernel is not None
    return kernel


def _alone(calls: KernelCalls, value: int) -> GroupModel:
    kernel, operands = calls.kernels[value], calls.reads[value] or ()
    if kernel is None:
        return GroupModel(sum(calls.nbytes[each] for each in {*operands, value}), 0, 0, 0, 0, frozenset())
    if value in calls.placed:
        return GroupModel(0, 0, 0, 0, 0, frozenset(operands), calls=0)
    single = _Fused(calls, frozenset({value}))
    return GroupModel(single.moved, single.arithmetic, 0, 0, single.workspace, single.in_place)


#: a block of a group: its value, and its number among the blocks of that value's kernel
_Place = tuple[int, int]


class _Fused:
    """Follow the blocks of a group from the last to the first: how often each runs, and which elements it keeps."""

    def __init__(self, calls: KernelCalls, group: frozenset[int]):
        self.calls, self.group = calls, group
        self.root = max(group)
        self.places = [(value, number) for value in sorted(group) for number in range(len(self._kernel(value).blocks))]
        self.result = self.places[-1]
        #: elements computed of each block
        self.computed: dict[_Place, int] = {}
        self.loaded: dict[int, int] = {}
        self.kept: list[_Place] = []
        #: per block, the kept blocks that read it, with the axes each dimension is selected by
        self._readers: dict[_Place, dict[_Place, list[tuple[frozenset[int], ...]]]] = {each: {} for each in self.places}
        self._loops: dict[_Place, frozenset[int]] = {}
        self._workspaces: dict[_Place, int] = {}
        self._known_types: dict[tuple[int, _Place], list[MappingType]] = {}
        for place in reversed(self.places):
            self._follow(place)

    def _kernel(self, value: int) -> KernelAccesses:
        kernel = self.calls.kernels[value]
        assert kernel is not None
        return kernel

    def _block(self, place: _Place) -> BlockAccesses:
        return self._kernel(place[0]).blocks[place[1]]

    def _source(self, place: _Place, number: int) -> _Place | int:
        """Return the block an access of `place` reads, or a value from outside."""
        kernel = self._kernel(place[0])
        if number >= kernel.operands:
            return place[0], number - kernel.operands
        value = (self.calls.reads[place[0]] or ())[number]
        return (value, len(self._kernel(value).blocks) - 1) if value in self.group else value

    def _follow(self, place: _Place) -> None:
        block = self._block(place)
        keeps = block.reduces or place == self.result
        if place == self.result:
            self.computed[place], self._loops[place] = block.elements, frozenset(range(len(block.extents)))
        elif keeps:
            self._keep(place, block)
        else:
            self._inline(place)
        runs = self.computed[place] * block.iterations // max(1, block.elements)
        outer = self._readers[place]
        if not keeps and self._lies_in_result(place):
            outer = {self.result: outer[self.result]}  # computed in its loops, for the others too
        for access in block.accesses:
            source = self._source(place, access.source)
            if isinstance(source, int):
                self.loaded[source] = self.loaded.get(source, 0) + runs * access.loads
                continue
            readers = self._readers[source]
            for reader, found in [(place, [None])] if keeps else outer.items():
                forms = readers.setdefault(reader, [])
                for around in found:
                    dims = access.dims if around is None else through(access.dims, around)
                    if dims not in forms:
                        forms.append(dims)

    def _inline(self, place: _Place) -> None:
        """Count the evaluations of an inlined value: LLVM moves it out of the inner loops that do not select it."""
        if self._lies_in_result(place):
            self.computed[place] = self._block(place).elements
            return
        self.computed[place] = sum(
            round(self._around(reader) * math.prod(self._block(reader).extents[: 1 + max(frozenset().union(*dims), default=-1)]))
            for reader, forms in self._readers[place].items()
            for dims in forms
        )

    def _lies_in_result(self, place: _Place) -> bool:
        """Tell whether `vector_reduction` computes a costly value once, in the place of the result."""
        block, readers = self._block(place), self._readers[place]
        same = tuple(frozenset({axis}) if extent > 1 else None for axis, extent in enumerate(block.extents))
        return (
            block.operations >= FUNCTION_COST
            and len(readers) > 1
            and self._block(self.result).extents == block.extents
            and any(
                len(dims) == len(same) and all(mine is None or mine == each for mine, each in zip(same, dims))
                for dims in readers.get(self.result, ())
            )
        )

    def _around(self, reader: _Place) -> float:
        """Return how often all iterations of a kept block run."""
        return self.computed[reader] / max(1, self._block(reader).elements)

    def _keep(self, place: _Place, block: BlockAccesses) -> None:
        """Place a reduction inside the loops of its readers, as deep as they select its elements."""
        self.kept.append(place)
        readers = self._readers[place]
        selecting = {reader: frozenset().union(*(axis for dims in forms for axis in dims)) for reader, forms in readers.items()}
        if len(readers) == 1:
            ((reader, axes),) = selecting.items()
            outer = self._block(reader)
            visits = math.prod(outer.extents[axis] for axis in axes)
            whole = not axes
            self.computed[place] = block.elements if whole else round(self._around(reader) * visits)
            self._workspaces[place] = block.nbytes if whole else block.itemsize
            self._loops[place] = axes if reader == self.result else self._loops[reader]
            return
        result = self._block(self.result)
        shared = frozenset.intersection(
            *(selecting[reader] if reader == self.result else self._loops[reader] for reader in readers)
        )
        forms = readers.get(self.result)
        if not shared or not forms or len(forms) > 1:
            self.computed[place], self._workspaces[place], self._loops[place] = block.elements, block.nbytes, frozenset()
            return
        rows = math.prod(1 if axes and axes <= shared else extent for axes, extent in zip(forms[0], block.extents))
        self.computed[place] = math.prod(result.extents[axis] for axis in shared) * rows
        self._workspaces[place], self._loops[place] = rows * block.itemsize, shared

    @cached_property
    def operations(self) -> int:
        """Count the operations of all blocks, as often as they run."""
        return sum(
            self.computed[place] * block.iterations // max(1, block.elements) * block.operations
            for place in self.places
            for block in [self._block(place)]
        )

    @cached_property
    def arithmetic(self) -> int:
        return sum(self._block(place).iterations * self._block(place).operations for place in self.places)

    @property
    def moved(self) -> int:
        """Count the bytes read from outside and written."""
        read = sum(min(self.calls.nbytes[value], loads * self._itemsize(value)) for value, loads in self.loaded.items())
        return read + self.calls.nbytes[self.root]

    def _itemsize(self, value: int) -> int:
        kernel = self.calls.kernels[value] if value < len(self.calls.kernels) else None
        return kernel.result.itemsize if kernel is not None else 4

    @property
    def workspace(self) -> int:
        """Count the bytes of the buffers kept; single values stay in registers."""
        found = [aligned(size, ALIGNMENT) for place, size in self._workspaces.items() if size > self._block(place).itemsize]
        return sum(found)

    @property
    def in_place(self) -> frozenset[int]:
        """Return the outside values each result element reads only at its own place."""
        found = []
        for value in self.loaded:
            types = list(self._types(value, self.result))
            same = self.calls.nbytes[value] == self.calls.nbytes[self.root]
            if same and types and all(each == MappingType.ONE_TO_ONE for each in types):
                found.append(value)
        return frozenset(found)

    def _types(self, value: int, place: _Place) -> list[MappingType]:
        """Return the mapping types by which a block reads a value, along all paths."""
        found: list[MappingType] = []
        for access in self._block(place).accesses:
            source = self._source(place, access.source)
            if source == value:
                found.append(access.mapping)
            elif not isinstance(source, int) and any(each != MappingType.ONE_TO_ONE for each in self._types_at(value, source)):
                found.append(MappingType.MANY_TO_MANY)
            elif not isinstance(source, int) and self._types_at(value, source):
                found.append(access.mapping)
        return found

    def _types_at(self, value: int, place: _Place) -> list[MappingType]:
        if (value, place) not in self._known_types:
            self._known_types[value, place] = self._types(value, place)
        return self._known_types[value, place]

    def edges(self) -> list[tuple[MappingType, MappingType]]:
        """Return the pairs of types of the calls that read each other."""
        return [
            (self._kernel(producer).mapping, self._kernel(reader).mappings[operand])
            for reader in self.group
            for operand, producer in enumerate(self.calls.reads[reader] or ())
            if producer in self.group
        ]
