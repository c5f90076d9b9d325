"""Sample between two pixels of each axis as ONNX Runtime does: pixels past the edge are those of the edge.

TVM moves the place itself onto the edge pixel, and reads the one inside of it, too, times 0, which is NaN if that is infinite.
Whole numbers of places far outside overflow there: they come near first.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tvm import relax, te, tirx
from tvm.ir import Expr


def legalize_grid_sample(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize a linear sample of planes or volumes, by their grids in the layout of TVM; a rule for LegalizeOps."""
    if str(call.attrs.method) != "bilinear":
        return call.op.get_attr("FLegalize")(builder, call)
    padding, corners = str(call.attrs.padding_mode), bool(call.attrs.align_corners)

    def sample(data: te.Tensor, grid: te.Tensor) -> te.Tensor:
        sizes = [int(size) for size in data.shape[2:]]

        def element(image: Expr, channel: Expr, *at: Expr) -> Expr:
            numbers = [grid[(image, len(sizes) - 1 - axis, *at)] for axis in range(len(sizes))]
            places = [_place(number, str(grid.dtype), size, padding, corners) for number, size in zip(numbers, sizes)]
            floors = [te.floor(place) for place in places]
            parts = []
            for steps in itertools.product((0, 1), repeat=len(sizes)):
                part = _pixel(
                    data,
                    (image, channel),
                    [(floor + step).astype("int32") for floor, step in zip(floors, steps)],
                    padding,
                )
                for place, floor, step in zip(places, floors, steps):
                    part = part * (place - floor if step else 1 - (place - floor))
                parts.append(part)
            return sum(parts[1:], parts[0])

        return te.compute((*data.shape[:2], *grid.shape[2:]), element, name="sampled", tag="grid_sample")

    return builder.call_te(sample, *call.args, primfunc_name_hint="grid_sample")


def _pixel(data: te.Tensor, plane: tuple[Expr, Expr], at: Sequence[Expr], padding: str) -> Expr:
    """Read a pixel; one outside is 0, or that of the edge."""
    sizes = [int(size) for size in data.shape[2:]]
    if padding == "zeros":
        inside = tirx.all(*(each for index, size in zip(at, sizes) for each in (index >= 0, index < size)))
        return te.if_then_else(inside, data[(*plane, *at)], tirx.const(0.0, data.dtype))
    return data[(*plane, *(te.min(te.max(index, 0), size - 1) for index, size in zip(at, sizes)))]


def _place(number: Expr, dtype: str, size: int, padding: str, corners: bool) -> Expr:
    """Return the place among the pixels of an axis. `number` of the grid is −1 at one edge, 1 at the other."""
    place = (number + 1) * (size - 1) / 2 if corners else (number + 1) * size / 2 - 0.5
    if padding != "reflection":
        return te.min(te.max(place, tirx.const(-2, dtype)), tirx.const(size + 1, dtype))
    start, span = (0.0, size - 1) if corners else (-0.5, size)
    if not span:
        return tirx.const(0.0, dtype)
    distance = te.abs(place - start)
    times = te.floor(distance / span)
    rest = distance - times * span
    turned = times - 2 * te.floor(times / 2)
    return te.if_then_else(turned < 0.5, rest, span - rest) + start
