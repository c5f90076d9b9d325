"""Find the dimensions that an axis walks, and split the axes of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm.ir import Var
from tvm.s_tir import SBlock
from tvm.tirx import IterVar

from ....tir.loop_nests import accesses, axis_like


def walked_dimensions(blocks: Sequence[SBlock], buffer: Var, dimension: int) -> tuple[dict[Var, int], set[Var]] | None:
    """Find the dimension of each buffer that is walked together with one of `buffer`, and the axes that walk them.

    None if a buffer is walked by two dimensions, or indexed otherwise, or if extents differ.
    """
    extent, dims, axes = int(buffer.ty.shape[dimension]), {(buffer, dimension)}, set[Var]()
    found = [access for block in blocks for access in accesses(block)]
    before = None
    while before != (len(dims), len(axes)):
        before = len(dims), len(axes)
        for other, indices in found:
            for number, index in enumerate(indices):
                if (other, number) in dims:
                    if not isinstance(index, Var):
                        return None
                    axes.add(index)
                if isinstance(index, Var) and index in axes:
                    dims.add((other, number))
    extents = [int(axis.dom.extent) for block in blocks for axis in block.iter_vars if axis.var in axes]
    extents += [int(other.ty.shape[number]) for other, number in dims]
    walked = dict(dims)
    return (walked, axes) if len(walked) == len(dims) and set(extents) == {extent} else None


def new_axes(block: SBlock, split: Mapping[Var, Sequence[int]]) -> tuple[list[IterVar], dict[Var, list[Var]]]:
    """Return axes like those of a block, and their variables by former axis: those in `split` become axes of other extents."""
    new = {
        axis.var: [axis_like(axis, extent) for extent in split.get(axis.var, [int(axis.dom.extent)])]
        for axis in block.iter_vars
    }
    return [axis for axes in new.values() for axis in axes], {
        var: [axis.var for axis in axes] for var, axes in new.items()
    }
