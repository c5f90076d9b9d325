"""Say which shapes, sizes and axes operators take as operands: mostly constants, but not always."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...frontend.canonical.graph_context import NodeView
from .constraint import Constraint, Form, Strength, count, domain, index

Row = Callable[[NodeView], Mapping[int, Constraint]]


def axes(number: int) -> Row:
    """Return the row of an operand of axes of the first one."""

    def row(node: NodeView) -> Mapping[int, Constraint]:
        return {number: index(node.rank(0), form=Form("distinct", axis=-1))}

    return row


def slice_bounds(node: NodeView) -> Mapping[int, Constraint]:
    """Keep all of some axes, in steps of one or two."""
    rank = node.rank(0)
    return {
        1: Constraint(0, 0, Strength.TELLS), 2: Constraint(1, 1 << 16, Strength.TELLS),
        3: index(rank, form=Form("distinct", axis=-1)), 4: count(2, 1),
    }  # fmt: skip


def exactly(sizes: Sequence[int | None] | None) -> Constraint | None:
    """Constrain an operand to sizes, if they are all known."""
    if not sizes or any(size is None for size in sizes):
        return None
    values = tuple(float(size) for size in sizes if size is not None)
    return Constraint(min(values), max(values), Strength.FAILS, form=Form("exact", values))


def result_shape(number: int, otherwise: Constraint) -> Row:
    """Return the row of an operand that is the shape of the result."""
    return lambda node: {number: exactly(node.sizes(node.result)) or otherwise}


def split_sizes(node: NodeView) -> Mapping[int, Constraint]:
    """Give each result its size, if it is known; else all of the axis to the first ones evenly."""
    axis, parts = node.get("axis", 0), node.output
    dims = [node.sizes(name) for name in parts]
    sizes = [each[axis] if each is not None and -len(each) <= axis < len(each) else None for each in dims]
    total = node.extent(0, axis)
    if None in sizes and total is not None:
        sizes = [total // len(parts) + (number < total % len(parts)) for number in range(len(parts))]
    return {1: exactly(sizes) or count(1, 1)}


def unit_axes(node: NodeView) -> Mapping[int, Constraint]:
    """Take axes of one element."""
    ones = [axis for axis, size in enumerate(node.sizes(0) or ()) if size == 1]
    return {1: exactly(ones[: node.extent(1, 0) or len(ones)]) or index(node.rank(0))}


def repeats(node: NodeView) -> Mapping[int, Constraint]:
    dims, result = node.sizes(0) or (), node.sizes(node.result) or ()
    times = [made // size if size and made else None for size, made in zip(dims, result)]
    return {1: exactly(times) or count(2, 1)}


def pads(node: NodeView) -> Mapping[int, Constraint]:
    """Pad little: at edges that are reflected, less than there are elements."""
    least = min((size or 1 for size in node.sizes(0) or ()), default=1)
    most = 1 if node.get("mode", "constant") == "constant" else min(1, least - 1)
    return {1: count(most), 3: index(node.rank(0), form=Form("distinct", axis=-1))}


def top_k(node: NodeView) -> Mapping[int, Constraint]:
    """Take between one element and all of the axis."""
    return {1: count(node.extent(0, node.get("axis", -1)) or 1, 1)}


def scales_and_sizes(node: NodeView) -> Mapping[int, Constraint]:
    """Enlarge the last two axes: what all modes allow."""
    at = 1 if node.graph.opset < 11 else 2
    number = node.extent(at, 0) or 1
    scales = exactly([1] * (number - 2) + [2] * min(2, number))
    dims = node.sizes(node.result) if node.get("axes") is None else None
    sizes = exactly(dims) or exactly(node.sizes(0) if node.get("axes") is None else None) or count(8, 1)
    found = {at: scales or domain(1, 2)}
    return found if at == 1 else {1: domain(0, 1), **found, 3: sizes}


def grid_sizes(node: NodeView) -> Mapping[int, Constraint]:
    """Make grids of four positions along each axis, for the batch at hand."""
    batch, spatial = node.extent(0, 0), node.extent(0, 1)
    return {1: (exactly([batch, 1, *[4] * spatial]) if spatial else None) or count(4, 1)}
