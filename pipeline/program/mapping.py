"""Describe how the elements of a kernel's operands map to its result: mapping types, and pairs that may be fused.

    one-to-one      y[i, j] = f(x[i, j])            relu, add
    reorganise      y[i] = x[i // 4, i % 4]         reshape: same order in memory
    shuffle         y[i, j] = x[j, i]               transpose, slice, pad, concat, gather, pixel shuffle
    one-to-many     y[i, j] = f(x[i])               broadcast, expand, nearest resize
    many-to-many    y[i] = Σ x[i, k]                reduction, convolution, product, window

Types and table are those of DNNFusion (Niu et al., PLDI 2021, tables 1 and 3) as Gao et al. (2025) use them in TVM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cached_property, lru_cache

#: operations counted for a function that is written as a polynomial, such as an exponential
FUNCTION_COST = 8


class MappingType(IntEnum):
    """Relation of operand elements to result elements; a larger one is more complex."""

    ONE_TO_ONE = 0
    REORGANISE = 1
    SHUFFLE = 2
    ONE_TO_MANY = 3
    MANY_TO_MANY = 4


class Fusion(Enum):
    """Verdict on fusing a producer into a reader. NEVER has one exception: nothing is computed again."""

    ALWAYS = "fusable"
    IF_PROFITABLE = "fusable if profitable"
    NEVER = "not"


_ONE, _REORGANISE, _SHUFFLE, _SPREAD, _MANY = MappingType
_ALWAYS, _MAYBE, _NEVER = Fusion

#: rows: type of the producer; columns: type of the reader on that operand, in the order of MappingType
_TABLE: dict[MappingType, tuple[Fusion, ...]] = {
    _ONE:        (_ALWAYS, _ALWAYS, _ALWAYS, _ALWAYS, _ALWAYS),
    _REORGANISE: (_ALWAYS, _ALWAYS, _ALWAYS, _ALWAYS, _MAYBE),
    _SHUFFLE:    (_ALWAYS, _ALWAYS, _ALWAYS, _ALWAYS, _MAYBE),
    _SPREAD:     (_ALWAYS, _ALWAYS, _ALWAYS, _MAYBE, _NEVER),
    _MANY:       (_ALWAYS, _MAYBE, _MAYBE, _MAYBE, _NEVER),
}  # fmt: skip


def fusion_of(producer: MappingType, reader: MappingType) -> Fusion:
    """Look up whether a producer may be fused into a reader of its result."""
    return _TABLE[producer][reader]


@dataclass(frozen=True)
class Access:
    """Loads of one index form in a block.

    `source` numbers what is read: operands first, then blocks in execution order. `dims` holds, for each dimension of
    the source, the axes its index depends on. Each iteration loads `loads` times.
    """

    source: int
    mapping: MappingType
    dims: tuple[frozenset[int], ...]
    loads: int = 1


@dataclass(frozen=True)
class BlockAccesses:
    """Loop nest of a kernel around one store.

    Axes are numbered: the first `spatial` select the element written, in the order of its dimensions, the others are
    summed over. `operations` count the arithmetic of one iteration. A block that `reduces` has its own buffer.
    """

    extents: tuple[int, ...]
    spatial: int
    itemsize: int
    operations: int
    reduces: bool
    accesses: tuple[Access, ...]

    @cached_property
    def elements(self) -> int:
        return math.prod(self.extents[: self.spatial])

    @cached_property
    def iterations(self) -> int:
        return math.prod(self.extents)

    @property
    def nbytes(self) -> int:
        return self.elements * self.itemsize


@dataclass(frozen=True)
class KernelAccesses:
    """All accesses of a kernel with one result: its `blocks` in execution order, the last one writes the result."""

    operands: int
    blocks: tuple[BlockAccesses, ...]

    @property
    def result(self) -> BlockAccesses:
        return self.blocks[-1]

    @cached_property
    def mappings(self) -> tuple[MappingType, ...]:
        """Return the mapping type of each operand; an operand that is never read counts as one-to-one."""
        return tuple(self._mapping(operand, len(self.blocks) - 1) or _ONE for operand in range(self.operands))

    @property
    def mapping(self) -> MappingType:
        """Return the type of the kernel: the most complex of its operands'."""
        return max(self.mappings, default=_ONE)

    @cached_property
    def copies(self) -> bool:
        """Return whether the kernel only moves elements."""
        return not any(block.reduces or block.operations for block in self.blocks)

    def _mapping(self, source: int, block: int) -> MappingType | None:
        """Return the type of a source as read by a block, directly or through the blocks before; None if never."""
        found: list[MappingType] = []
        for each in self.blocks[block].accesses:
            if each.source == source:
                found.append(each.mapping)
            elif (
                each.source >= self.operands
                and (inner := self._mapping(source, each.source - self.operands)) is not None
            ):
                found.append(max(inner, each.mapping))
        # elements that meet in one result from two places are many-to-many, whatever each place alone is
        return max(found, default=None)


@lru_cache(1 << 14)
def through(inner: tuple[frozenset[int], ...], outer: tuple[frozenset[int], ...]) -> tuple[frozenset[int], ...]:
    """Compose the dims of two accesses: of a source in a block, and of that block's result in its reader.

    Axes summed over in the inner block are not axes of the reader.
    """
    return tuple(frozenset().union(*(outer[axis] for axis in axes if axis < len(outer))) for axes in inner)
