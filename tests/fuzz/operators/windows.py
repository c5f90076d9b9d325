"""Convolutions, poolings, normalisations over planes, and pictures that are resized or sampled."""

from __future__ import annotations

import numpy as np

from ..draw import Draw, Illegal

FLOATS = ("float", "float16", "double", "bfloat16")


def planes(draw: Draw, channels: int, low: int = 1, high: int = 3) -> tuple[int, ...]:
    """Return the shape of a batch of lines, planes or volumes."""
    rank = draw.choice([rank for rank in (1, 2, 2, 2, 3) if low <= rank <= high])
    return (draw.integer(1, 2), channels, *(draw.integer(3, 8 if rank < 3 else 5) for _ in range(rank)))


def window(draw: Draw, sizes: tuple[int, ...], kernel: tuple[int, ...], pooled: bool = False) -> None:
    """Set strides, dilations and paddings of a window that fits."""
    rank = len(sizes)
    draw.attribute("strides", [draw.integer(1, 3) for _ in range(rank)])
    dilations = [draw.choice((1, 1, 2)) for _ in range(rank)]
    if not draw.attribute("dilations", dilations, 0.5):
        dilations = [1] * rank
    mode = draw.choice(("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if mode == "NOTSET":
        reach = [(k - 1) if pooled else (k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        draw.attribute("pads", [draw.integer(0, min(most, 3)) for most in (*reach, *reach)])
    else:
        draw.attributes["auto_pad"] = mode
    if pooled:
        draw.attribute("ceil_mode", draw.integer(0, 1))
        draw.attribute("count_include_pad", draw.integer(0, 1))


def convolution(draw: Draw) -> None:
    group = draw.choice((1, 1, 2, 3))
    inner, outer = draw.integer(1, 3), draw.integer(1, 3)
    shape = planes(draw, group * inner)
    kernel = tuple(draw.integer(1, 3) for _ in shape[2:])
    draw.data(shape)
    integers = draw.schema.name == "ConvInteger"
    draw.data((group * outer, inner, *kernel), 1)
    if integers:
        if draw.chance():
            draw.data((), 2)
            draw.data(draw.choice(((), (group * outer,))), 3) if draw.chance() else None
    elif draw.chance():
        draw.data((group * outer,), 2)
    draw.attribute("group", group, 1 if group > 1 else 0.5)
    draw.attribute("kernel_shape", list(kernel))
    window(draw, shape[2:], kernel)


def transposed(draw: Draw) -> None:
    group = draw.choice((1, 1, 2))
    inner, outer = draw.integer(1, 3), draw.integer(1, 3)
    shape = planes(draw, group * inner)
    kernel = tuple(draw.integer(1, 4) for _ in shape[2:])
    draw.data(shape)
    draw.data((group * inner, outer, *kernel), 1)
    if draw.chance():
        draw.data((group * outer,), 2)
    draw.attribute("group", group, 1 if group > 1 else 0.5)
    draw.attribute("kernel_shape", list(kernel))
    window(draw, shape[2:], kernel, pooled=True)
    strides = draw.attributes.get("strides", [1] * len(kernel))
    if draw.chance(0.3):
        draw.attribute("output_padding", [draw.integer(0, stride - 1) for stride in strides])
    elif "pads" not in draw.attributes and draw.chance(0.2):
        draw.attribute("output_shape", [size * stride for size, stride in zip(shape[2:], strides)])


def pooling(draw: Draw) -> None:
    shape = planes(draw, draw.integer(1, 3))
    kernel = tuple(draw.integer(1, 3) for _ in shape[2:])
    draw.data(shape)
    draw.attributes["kernel_shape"] = list(kernel)
    draw.attribute("p", draw.integer(1, 3))
    window(draw, shape[2:], kernel, pooled=True)
    draw.results = draw.integer(1, 2) if draw.schema.name == "MaxPool" and draw.version >= 8 else 1
    draw.attribute("storage_order", 0)


def whole_plane(draw: Draw) -> None:
    draw.data(planes(draw, draw.integer(1, 3)))
    draw.attribute("p", draw.integer(1, 3))


def batch_normalisation(draw: Draw) -> None:
    channels = draw.integer(1, 4)
    shape = planes(draw, channels)
    draw.data(shape, 0, -3, 3)
    per_element = draw.version < 9 and draw.chance(0.2)
    sizes = shape[1:] if per_element else (channels,)
    for position in (1, 2, 3):
        draw.data(sizes, position, -2, 2)
    draw.data(sizes, 4, 0.2, 3)
    draw.attribute("epsilon", 0.01)
    draw.attribute("momentum", 0.8)
    if per_element:
        draw.attributes["spatial"] = 0


def instance_normalisation(draw: Draw) -> None:
    groups, each = draw.integer(1, 3), draw.integer(1, 3)
    channels = groups * each
    draw.data(planes(draw, channels))
    by_group = draw.schema.name == "GroupNormalization" and draw.version < 21
    for position in (1, 2):
        draw.data((groups if by_group else channels,), position, -2, 2)
    draw.attribute("epsilon", 0.01)
    draw.attribute("num_groups", groups)


def layer_normalisation(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    axis = draw.axis(len(shape))
    draw.data(shape)
    tail = shape[axis:]
    draw.data(tail, 1, -2, 2)
    if draw.takes(2) and draw.chance():
        draw.data(tail, 2, -2, 2)
    draw.attribute("axis", axis, 1)
    draw.attribute("epsilon", 0.01)
    if draw.schema.name == "LayerNormalization":
        draw.results = draw.choice((1, 1, 3))


def local_response(draw: Draw) -> None:
    draw.data(planes(draw, draw.integer(1, 5)))
    draw.attributes["size"] = draw.integer(1, 5)
    for name, high in (("alpha", 0.5), ("beta", 1.0), ("bias", 2.0)):
        draw.attribute(name, float(np.float32(draw.random.uniform(0.1, high))))


def mean_variance(draw: Draw) -> None:
    shape = planes(draw, draw.integer(1, 3), 2, 2)
    draw.data(shape, 0, -2, 2)
    draw.attribute("axes", draw.choice(([0, 2, 3], [1, 2, 3], [2, 3])))


def resize(draw: Draw) -> None:
    mode = draw.choice(("nearest", "linear", "linear", *(["cubic"] if draw.version >= 11 else [])))
    rank = 2 if mode == "cubic" else draw.integer(1, 3)
    shape = (draw.integer(1, 2), draw.integer(1, 2), *(draw.integer(2, 6) for _ in range(rank)))
    draw.data(shape, 0, *((None, None) if draw.dtype(0).kind == "f" else (0, 100)))
    draw.attributes["mode"] = mode
    only = draw.has("axes") and draw.chance(0.3)
    axes = [axis for axis in range(2, 2 + rank)] if only else list(range(2 + rank))
    grow = draw.chance(0.6) or draw.version < 10
    scales = [
        1.0 if axis < 2 else draw.choice((1.0, 2.0, 3.0, 1.5, 2.6) if grow else (0.5, 0.4, 1.5, 0.75)) for axis in axes
    ]
    if draw.schema.name == "Upsample" or draw.version < 11:
        if draw.has("scales"):
            draw.attributes["scales"] = scales
        else:
            draw.give(np.asarray(scales, "float32"), told=True)
        return
    draw.give(None)
    if draw.chance(0.6):
        draw.give(np.asarray(scales, "float32"), told=True)
    else:
        draw.give(None if draw.version >= 13 else np.zeros(0, "float32"), told=True)
        draw.tell([max(1, int(shape[axis] * scale)) for axis, scale in zip(axes, scales)])
        draw.attribute("keep_aspect_ratio_policy", draw.choice(("stretch", "not_larger", "not_smaller")), 0.3)
    if only:
        draw.attributes["axes"] = axes
    if draw.version < 13:
        draw.operands[1] = np.zeros(0, "float32")
        draw.told.add(1)
    draw.attribute(
        "coordinate_transformation_mode",
        draw.choice(("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")),
    )
    draw.attribute("nearest_mode", draw.choice(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")))
    draw.attribute("cubic_coeff_a", draw.choice((-0.75, -0.5)))
    draw.attribute("exclude_outside", draw.integer(0, 1) if mode == "cubic" else None)
    draw.attribute("antialias", draw.integer(0, 1) if mode != "nearest" else None, 0.2)


def grid_sample(draw: Draw) -> None:
    rank = draw.integer(2, 3 if draw.version >= 20 else 2)
    shape = (draw.integer(1, 2), draw.integer(1, 2), *(draw.integer(2, 5) for _ in range(rank)))
    draw.data(shape)
    draw.data((shape[0], *(draw.integer(1, 4) for _ in range(rank)), rank), 1, -1.3, 1.3)
    modes = (
        ("linear", "nearest", *(["cubic"] if rank == 2 else []))
        if draw.version >= 20
        else ("bilinear", "nearest", "bicubic")
    )
    draw.attribute("mode", draw.choice(modes))
    draw.attribute("padding_mode", draw.choice(("zeros", "border", "reflection")))
    draw.attribute("align_corners", draw.integer(0, 1))


def roi_align(draw: Draw) -> None:
    batch, count = draw.integer(1, 2), draw.integer(1, 3)
    draw.data((batch, draw.integer(1, 3), draw.integer(4, 8), draw.integer(4, 8)))
    corner = draw.values((count, 2), draw.dtype(1), 0, 3)
    draw.give(
        np.concatenate([corner, corner + draw.values((count, 2), draw.dtype(1), 0.5, 4)], 1).astype(draw.dtype(1))
    )
    draw.give(draw.random.integers(0, batch, count).astype(np.int64))
    for name in ("output_height", "output_width"):
        draw.attribute(name, draw.integer(1, 3))
    draw.attribute("sampling_ratio", draw.integer(0, 3))
    draw.attribute("spatial_scale", draw.choice((1.0, 0.5)))
    draw.attribute("mode", draw.choice(("avg", "max")))
    draw.attribute("coordinate_transformation_mode", draw.choice(("half_pixel", "output_half_pixel")))


def product(draw: Draw) -> None:
    inner, rows, columns = (draw.integer(1, 6) for _ in range(3))
    lead = draw.dims(0, 2, 3)
    one, other = (*draw.broadcast(lead), rows, inner), (*lead, inner, columns)
    if draw.chance(0.15):
        one = (inner,)
    elif draw.chance(0.15):
        other = (inner,)
    draw.data(one)
    draw.data(other, 1)
    if draw.schema.name == "MatMulInteger" and draw.chance():
        draw.data((), 2)
        if draw.chance():
            draw.data((), 3)


def gemm(draw: Draw) -> None:
    draw.wild &= draw.dtype().kind not in "iu"  # products of integers by a float factor: the reference rounds them
    inner, rows, columns = (draw.integer(1, 6) for _ in range(3))
    turned = draw.integer(0, 1), draw.integer(0, 1)
    draw.data((inner, rows) if turned[0] else (rows, inner))
    draw.data((columns, inner) if turned[1] else (inner, columns), 1)
    if draw.version < 11 or draw.chance():
        draw.data(draw.broadcast((rows, columns)), 2)
    whole = draw.dtype().kind in "iu"
    for name, value in (("transA", turned[0]), ("transB", turned[1])):
        if value:
            draw.attributes[name] = value
    for name in ("alpha", "beta"):
        draw.attribute(name, 2.0 if whole else float(np.float32(draw.random.uniform(-2, 2))))


def einsum(draw: Draw) -> None:
    equation, letters = draw.choice(
        (
            (("ij,jk->ik"), "ij jk"),
            ("bij,bjk->bik", "bij bjk"),
            ("ij->ji", "ij"),
            ("ij->i", "ij"),
            ("ii->i", "ii"),
            ("i,j->ij", "i j"),
            ("bhid,bhjd->bhij", "bhid bhjd"),
            ("...ij,...jk->...ik", "aij ajk"),
            ("ij,ij->", "ij ij"),
        )
    )
    sizes = {letter: draw.integer(1, 4) for letter in "abhijkd"}
    for operand in letters.split():
        draw.data([sizes[letter] for letter in operand])
    draw.attributes["equation"] = equation


def determinant(draw: Draw) -> None:
    size = draw.integer(1, 4)
    draw.data((*draw.dims(0, 2, 3), size, size), 0, -2, 2)


def unpool(draw: Draw) -> None:
    if draw.version < 9:
        raise Illegal("MaxUnpool")
    channels, side = draw.integer(1, 2), draw.integer(1, 3)
    shape = (1, channels, side, side)
    draw.data(shape)
    places = np.stack(
        [draw.random.permutation(4 * side * side)[: side * side] + each * 4 * side * side for each in range(channels)]
    )
    draw.give(places.reshape(shape).astype(np.int64))
    draw.attributes |= {"kernel_shape": [2, 2], "strides": [2, 2]}


TABLE = {
    "Conv": convolution, "ConvInteger": convolution, "ConvTranspose": transposed, "MaxPool": pooling, "AveragePool": pooling,
    "LpPool": pooling, "GlobalAveragePool": whole_plane, "GlobalMaxPool": whole_plane, "GlobalLpPool": whole_plane,
    "BatchNormalization": batch_normalisation, "InstanceNormalization": instance_normalisation, "GroupNormalization": instance_normalisation,
    "LayerNormalization": layer_normalisation, "RMSNormalization": layer_normalisation, "LRN": local_response,
    "MeanVarianceNormalization": mean_variance, "Resize": resize, "Upsample": resize, "GridSample": grid_sample, "RoiAlign": roi_align,
    "MatMul": product, "MatMulInteger": product, "Gemm": gemm, "Einsum": einsum, "Det": determinant, "MaxUnpool": unpool,
}  # fmt: skip
