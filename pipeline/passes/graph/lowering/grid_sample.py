"""Sample between pixels as ONNX Runtime does: a place far outside moves to the edge, the pixels around a near one do.

TVM moves every place of a linear sample onto the edge pixel, and reads the one inside of it, too, times 0, which is NaN if that is
infinite; it moves no place of a cubic sample. Whole numbers of places far outside overflow there: they come near first.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

from tvm import relax, te, tirx
from tvm.ir import Expr

#: pixels around a place by method, relative to the one before it
_STEPS = {"bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}
#: of a cubic sample, as in PyTorch
_SLOPE = -0.75


def legalize_grid_sample(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize a linear or cubic sample of planes or volumes, by their grids in the layout of TVM; a rule for LegalizeOps."""
    method = str(call.attrs.method)
    if method not in _STEPS:
        return call.op.get_attr("FLegalize")(builder, call)
    padding, corners = str(call.attrs.padding_mode), bool(call.attrs.align_corners)

    def sampled(data: te.Tensor, grid: te.Tensor) -> te.Tensor:
        sizes = [int(size) for size in data.shape[2:]]

        def element(image: Expr, channel: Expr, *at: Expr) -> Expr:
            numbers = [grid[(image, len(sizes) - 1 - axis, *at)] for axis in range(len(sizes))]
            places = [_place(number, str(grid.dtype), size, padding, corners) for number, size in zip(numbers, sizes)]
            weights = [_weights(place - te.floor(place), method) for place in places]

            def weighed(*pixel: Expr) -> Expr:
                """Sum along the axes that `pixel` has no place on yet."""
                axis = len(pixel)
                if axis == len(sizes):
                    return _pixel(data, (image, channel), pixel, padding)
                steps = [te.floor(places[axis]) + step for step in _STEPS[method]]
                if padding == "reflection" and method == "bicubic":
                    steps = [_reflected(step, sizes[axis], corners, str(grid.dtype)) for step in steps]
                first, *others = (
                    weighed(*pixel, step.astype("int32")) * weight for step, weight in zip(steps, weights[axis], strict=True)
                )
                return sum(others, first)

            return weighed()

        return te.compute((*data.shape[:2], *grid.shape[2:]), element, name="sampled", tag="grid_sample")

    return builder.call_te(sampled, *call.args, primfunc_name_hint="grid_sample")


def _weights(fraction: Expr, method: str) -> list[Expr]:
    """Return the weights of the pixels around a place so far past one of them."""
    if method == "bilinear":
        return [1 - fraction, fraction]
    near, far = (
        lambda x: ((_SLOPE + 2) * x - (_SLOPE + 3)) * x * x + 1,
        lambda x: ((_SLOPE * x - 5 * _SLOPE) * x + 8 * _SLOPE) * x - 4 * _SLOPE,
    )
    return [far(fraction + 1), near(fraction), near(1 - fraction), far(2 - fraction)]


def _pixel(data: te.Tensor, plane: tuple[Expr, Expr], at: tuple[Expr, ...], padding: str) -> Expr:
    """Read a pixel; one outside is 0, or that of the edge."""
    sizes = [int(size) for size in data.shape[2:]]
    if padding == "zeros":
        inside = tirx.all(*(each for index, size in zip(at, sizes) for each in (index >= 0, index < size)))
        return te.if_then_else(inside, data[(*plane, *at)], tirx.const(0.0, data.dtype))
    return data[(*plane, *(te.min(te.max(index, 0), size - 1) for index, size in zip(at, sizes)))]


def _place(number: Expr, dtype: str, size: int, padding: str, corners: bool) -> Expr:
    """Return the place among the pixels of an axis for a number of the grid, from −1 at one edge to 1 at the other."""
    place = (number + 1) * (size - 1) / 2 if corners else (number + 1) * size / 2 - 0.5
    if padding == "reflection":
        return _reflected(place, size, corners, dtype)
    if padding == "zeros":  # no pixel is within two of the ends
        return te.min(te.max(place, tirx.const(-3, dtype)), tirx.const(size + 2, dtype))
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    last = tirx.const(size - 1, dtype)
    return te.if_then_else(place < low, tirx.const(0, dtype), te.if_then_else(place > high, last, place))


def _reflected(place: Expr, size: int, corners: bool, dtype: str) -> Expr:
    start, span = (0.0, size - 1) if corners else (-0.5, size)
    if not span:
        return tirx.const(0.0, dtype)
    distance = te.abs(place - start)
    times = te.floor(distance / span)
    rest = distance - times * span
    turned = times - 2 * te.floor(times / 2)
    return te.if_then_else(turned < 0.5, rest, span - rest) + start
