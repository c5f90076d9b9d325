"""Follow the blocks of fused kernels: elements computed and kept, bytes moved, operations, operands in place.

    relu ─► sum ─► divide          relu, read by both, is inlined: computed twice
      └─────────────►              sum keeps a buffer, and is computed inside the loops of `divide` that select its elements

This is what `kernels/rules/fuse_loops.py` makes of a fused kernel: blocks that reduce keep a buffer of the elements one
iteration needs, all others are inlined into their readers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from ....memory import ALIGNMENT
from ....memory.liveness import aligned
from ....program.mapping import FUNCTION_COST, BlockAccesses, KernelAccesses, MappingType, through


@dataclass(frozen=True)
class KernelCalls:
    """Kernel calls of a graph, one per value: `reads` number the operands' values.

    A kernel that could not be read is None, and is never fused. `nbytes` are those of each value, weights included.
    Values in `placed` are copies: alone, their parts are written in their place (see `share`). Each kernel `alone` and
    the `models` of groups are kept, see `group_cost`, and the `numbers` of `group_form`.
    """

    kernels: tuple[KernelAccesses | None, ...]
    reads: tuple[tuple[int, ...] | None, ...]
    nbytes: tuple[int, ...]
    placed: frozenset[int] = frozenset()
    alone: dict[int, FusedBlocks] = field(default_factory=dict, compare=False, repr=False)
    models: dict[frozenset[int], Any] = field(default_factory=dict, compare=False, repr=False)
    numbers: dict[int, int] = field(default_factory=dict, compare=False, repr=False)

    def itemsize(self, value: int) -> int:
        """Return the bytes of an element of a value; of an input or a weight, as if it were float32."""
        kernel = self.kernels[value] if value < len(self.kernels) else None
        return kernel.result.itemsize if kernel is not None else 4


#: a block of a group: its value, and its number among the blocks of that value's kernel
Place = tuple[int, int]


class FusedBlocks:
    """Follow the blocks of a group from the last to the first: how often each runs, and which elements it keeps."""

    def __init__(self, calls: KernelCalls, group: frozenset[int]):
        self.calls, self.group = calls, group
        self.root = max(group)
        self._blocks: dict[Place, BlockAccesses] = {
            (value, number): block for value in sorted(group) for number, block in enumerate(self._kernel(value).blocks)
        }
        self.places = list(self._blocks)
        self.result = self.places[-1]
        #: elements computed of each block
        self.computed: dict[Place, int] = {}
        self.loaded: dict[int, int] = {}
        self.kept: list[Place] = []
        #: per block, the kept blocks that read it, with the axes each dimension is selected by
        self._readers: dict[Place, dict[Place, list[tuple[frozenset[int], ...]]]] = {each: {} for each in self.places}
        self._loops: dict[Place, frozenset[int]] = {}
        self._workspaces: dict[Place, int] = {}
        for place in reversed(self.places):
            self._follow(place)

    def _kernel(self, value: int) -> KernelAccesses:
        kernel = self.calls.kernels[value]
        assert kernel is not None
        return kernel

    def _source(self, place: Place, number: int) -> Place | int:
        """Return the block an access of `place` reads, or a value from outside."""
        kernel = self._kernel(place[0])
        if number >= kernel.operands:
            return place[0], number - kernel.operands
        value = (self.calls.reads[place[0]] or ())[number]
        return (value, len(self._kernel(value).blocks) - 1) if value in self.group else value

    def _follow(self, place: Place) -> None:
        block = self._blocks[place]
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

    def _inline(self, place: Place) -> None:
        """Count the evaluations of an inlined value: LLVM moves it out of the inner loops that do not select it."""
        if self._lies_in_result(place):
            self.computed[place] = self._blocks[place].elements
            return
        self.computed[place] = sum(
            round(self._around(reader) * math.prod(self._blocks[reader].extents[: _depth(dims)]))
            for reader, forms in self._readers[place].items()
            for dims in forms
        )

    def _lies_in_result(self, place: Place) -> bool:
        """Tell whether `vector_reduction` computes a costly value once, in the place of the result."""
        block, readers = self._blocks[place], self._readers[place]
        if block.operations < FUNCTION_COST or len(readers) < 2:
            return False
        same = tuple(frozenset({axis}) if extent > 1 else None for axis, extent in enumerate(block.extents))
        return self._blocks[self.result].extents == block.extents and any(
            len(dims) == len(same) and all(mine is None or mine == each for mine, each in zip(same, dims))
            for dims in readers.get(self.result, ())
        )

    def _around(self, reader: Place) -> float:
        """Return how often all iterations of a kept block run."""
        return self.computed[reader] / max(1, self._blocks[reader].elements)

    def _keep(self, place: Place, block: BlockAccesses) -> None:
        """Place a reduction inside the loops of its readers, as deep as they select its elements."""
        self.kept.append(place)
        readers = self._readers[place]
        selecting = {
            reader: frozenset().union(*(axis for dims in forms for axis in dims)) for reader, forms in readers.items()
        }
        if len(readers) == 1:
            ((reader, axes),) = selecting.items()
            outer = self._blocks[reader]
            visits = math.prod(outer.extents[axis] for axis in axes)
            whole = not axes
            self.computed[place] = block.elements if whole else round(self._around(reader) * visits)
            self._workspaces[place] = block.nbytes if whole else block.itemsize
            self._loops[place] = axes if reader == self.result else self._loops[reader]
            return
        result = self._blocks[self.result]
        loops = [selecting[reader] if reader == self.result else self._loops[reader] for reader in readers]
        shared: frozenset[int] = (
            frozenset.intersection(*loops) if loops else frozenset()
        )  # a value that nothing reads is whole
        forms = readers.get(self.result)
        if not shared or not forms or len(forms) > 1:
            self.computed[place], self._workspaces[place], self._loops[place] = (
                block.elements,
                block.nbytes,
                frozenset(),
            )
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
            for block in [self._blocks[place]]
        )

    @cached_property
    def arithmetic(self) -> int:
        return sum(self._blocks[place].iterations * self._blocks[place].operations for place in self.places)

    @property
    def moved(self) -> int:
        """Count the bytes read from outside and written."""
        read = sum(
            min(self.calls.nbytes[value], loads * self.calls.itemsize(value)) for value, loads in self.loaded.items()
        )
        return read + self.calls.nbytes[self.root]

    @property
    def workspace(self) -> int:
        """Count the bytes of the buffers kept; single values stay in registers."""
        found = [
            aligned(size, ALIGNMENT) for place, size in self._workspaces.items() if size > self._blocks[place].itemsize
        ]
        return sum(found)

    @property
    def in_place(self) -> frozenset[int]:
        """Return the outside values whose memory the result may take.

        Each element of the result reads them only at its own place, or before any is written over.
        """
        nbytes = self.calls.nbytes
        as_large = {value for value in self.loaded if nbytes[value] == nbytes[self.root]}
        #: per block, the values it reads, and whether each of its elements reads only its own
        own: dict[Place, dict[int, bool]] = {}
        for place in self.places if as_large else ():
            found = own[place] = {}
            for access in self._blocks[place].accesses:
                source = self._source(place, access.source)
                read = own[source] if not isinstance(source, int) else {source: True} if source in as_large else {}
                for value, same in read.items():
                    if same and place in self.kept and self._reads_in_time(place, access.dims):
                        continue  # nothing is written over what it reads until it is done
                    found[value] = found.get(value, True) and same and access.mapping == MappingType.ONE_TO_ONE
        return frozenset(value for value, same in own.get(self.result, {}).items() if same)

    def _reads_in_time(self, place: Place, dims: tuple[frozenset[int], ...]) -> bool:
        """Tell whether a kept block reads its elements before any is written over.

        In each iteration of the loops it is in, the result takes the place of no others.
        """
        loops = self._loops[place]
        if not loops:
            return True
        found = through(dims, self._result_axes(place))
        return len(found) > max(loops) and all(found[axis] == {axis} for axis in loops)

    def _result_axes(self, place: Place) -> tuple[frozenset[int], ...]:
        """Return the axes of the result that select each dimension of a block."""
        readers = self._readers[place]
        if self.result in readers:
            return readers[self.result][0]
        reader, forms = next(iter(readers.items()))
        return through(forms[0], self._result_axes(reader))

    def edges(self) -> list[tuple[MappingType, MappingType]]:
        """Return the pairs of types of the calls that read each other."""
        return [
            (self._kernel(producer).mapping, self._kernel(reader).mappings[operand])
            for reader in self.group
            for operand, producer in enumerate(self.calls.reads[reader] or ())
            if producer in self.group
        ]


@lru_cache(1 << 12)
def _depth(dims: tuple[frozenset[int], ...]) -> int:
    """Count the loops around the innermost one that selects an element by `dims`, that one included."""
    return 1 + max(frozenset().union(*dims), default=-1)
