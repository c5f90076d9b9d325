"""Rewrite Resize into a form TVM reads rightly: that of all sizes, else axis by axis.

    rows × columns  ──pixels of rows──►  new rows × columns  ──pixels of columns──►  new rows × new columns

Every interpolation of ONNX is linear in its input and separable: along an axis, a new element is a pixel, or a sum of a few
pixels, each taken by a Gather and weighed; one of many is a product with a matrix. The weights are the Resize of the
identity, by ONNX Runtime in the operator set of the model. Only pixels that count are read: others times 0 are NaN if infinite.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..folding.evaluate import evaluate
from ..graph_context import NodeView, apply_rules
from ..node_builder import NodeBuilder, splice
from ..read_onnx import operator_set

if TYPE_CHECKING:
    import onnx

#: most elements of a matrix; larger ones are as large as a network's weights
_MOST = 1 << 20
#: most pixels of a sum; a fused kernel computes them anew for each axis
_PIXELS = 8
#: the number that TVM adds before it rounds down, and takes off before it rounds up
_EPSILON = np.float32(1e-5)
_CROPS = "tf_crop_and_resize"
#: the first set whose Resize has sizes
_SIZES = 11


def resize(node: NodeView, build: NodeBuilder) -> None:
    """Give Resize the sizes of all dimensions, or resize axis by axis if TVM would take other elements.

    TVM takes an empty constant for scales, and reads neither axes nor policies. An empty constant says "not given" in
    opsets 11 and 12. If the scales give whole sizes, `half_pixel_symmetric` is `half_pixel`.
    """
    inputs, given = node.inputs(4), dict(node.attributes)
    for position in (1, 2, 3):
        value = node.constant(inputs[position])
        if value is not None and value.size == 0:
            inputs[position] = ""
    before, after = node.shape(inputs[0]), node.shape(node.result)
    scales = node.constant(inputs[2])
    if before is None or after is None or (inputs[2] and scales is None) or (inputs[1] and node.get("axes")):
        return
    axes = [int(axis) % len(before) for axis in node.attributes.pop("axes", range(len(before)))]
    policy = node.attributes.pop("keep_aspect_ratio_policy", "stretch")
    if scales is None:
        sizes = node.constant(inputs[3])
        meant = (np.asarray(after)[axes] if sizes is None else sizes) / np.asarray(before)[axes]
        if policy != "stretch":
            meant[:] = meant.min() if policy == "not_larger" else meant.max()
        scales = meant
    factors = dict(zip(axes, map(float, scales)))
    if _reads_alike(node, before, after, factors):
        if node.get("coordinate_transformation_mode") == "half_pixel_symmetric":
            node.attributes["coordinate_transformation_mode"] = "half_pixel"
        node.attributes.pop("antialias", None)
        has_sizes = not any(inputs[1:3]) and np.array_equal(node.constant(inputs[3]), after)
        if has_sizes and [*node.input[1:3], node.attributes] == ["", "", given]:
            return  # the form of an earlier import
        inputs[2:] = ["", build.integers(*after)]
        build.node("Resize", *inputs, result=node.result, **node.attributes)
    else:
        _resize_axes(node, before, after, factors, build)


def _reads_alike(node: NodeView, before: tuple[int, ...], after: tuple[int, ...], factors: dict[int, float]) -> bool:
    """Return whether TVM, given the sizes of all dimensions, takes the elements that ONNX Runtime takes.

    It computes in single precision, and takes the quotient of the sizes for the scale.
    """
    mode, dtype = node.get("coordinate_transformation_mode", "half_pixel"), node.dtype(0)
    ratios = [new / old for old, new in zip(before, after)]
    sums = mode != _CROPS and dtype.kind == "f" and node.get("mode", "nearest") != "nearest"
    if sums and 1 in ratios[2:] and all(old * new <= _MOST for old, new in zip(before, after) if old != new):
        return False  # it would weigh pixels along all axes
    if (
        before == after
        or before[:2] != after[:2]
        or len(before) not in (3, 4, 5)
        or (node.get("antialias") and min(ratios) < 1)
    ):
        return False
    if mode == _CROPS:
        return all(np.isclose(factor, ratios[axis], rtol=1e-6) for axis, factor in factors.items())
    for axis, factor in factors.items():
        old, new = before[axis], after[axis]
        if mode == "align_corners":
            if new == 1 and old > 1:
                return False
        elif not np.isclose(factor, ratios[axis], rtol=1e-6):
            return False
        if node.get("mode", "nearest") == "nearest" and factor != 1:
            taken = _nearest(old, factor, new, node)
            if taken is None or not np.array_equal(taken, _nearest_by_tvm(old, new, node)):
                return False
    if dtype.kind == "f":
        return dtype.itemsize <= 4
    return node.get("mode", "nearest") != "nearest" or dtype.itemsize <= 2


def _nearest_by_tvm(before: int, after: int, node: NodeView) -> np.ndarray:
    """Return the elements that TVM takes along an axis."""
    mode = node.get("coordinate_transformation_mode", "half_pixel")
    x, half = np.arange(after, dtype=np.float32), np.float32(0.5)
    scale = np.float32(before) / np.float32(after)
    if mode == "align_corners":
        place = np.float32(before - 1) / np.float32(max(after - 1, 1)) * x
    elif mode == "asymmetric":
        place = scale * x
    elif mode == "tf_half_pixel_for_nn":
        place = (x + half) * scale
    elif mode == "pytorch_half_pixel" and after == 1:
        place = np.zeros_like(x)
    else:
        place = (x + half) * scale - half
    rounding = node.get("nearest_mode", "round_prefer_floor")
    if rounding == "floor":
        index = np.floor(place + _EPSILON)
    elif rounding == "ceil":
        index = np.ceil(place - _EPSILON)
    else:
        index = np.floor(place + half) if rounding == "round_prefer_ceil" else np.ceil(place - half)
    return np.clip(index.astype(np.int64), 0, before - 1)


def _resize_axes(
    node: NodeView, before: tuple[int, ...], after: tuple[int, ...], factors: dict[int, float], build: NodeBuilder
) -> None:
    """Resize the axes of `factors` in turn, by ascending factor; nothing for crops.

    Nor for sums of integers, which ONNX Runtime rounds toward 0: in another order they are on the other side of one.
    """
    dtype, nearest = node.dtype(0), node.get("mode", "nearest") == "nearest"
    if node.get("coordinate_transformation_mode") == _CROPS or (dtype.kind != "f" and not nearest):
        return
    value, shape = node.input[0], list(before)
    halves = dtype == np.float16 and not nearest  # ONNX Runtime computes in single precision
    if halves:
        value, dtype = build.cast(value, np.float32), np.dtype(np.float32)
    for axis in sorted((axis for axis in factors if factors[axis] != 1), key=lambda axis: (factors[axis], axis)):
        resized = before[axis], factors[axis], after[axis], node
        if nearest:
            taken = _nearest(*resized)
            if taken is None:
                build.nodes.clear()
                return
            value = build.node("Gather", value, build.integers(*taken), axis=axis)
        else:
            matrix = _matrix(*resized)
            if matrix is None:
                build.nodes.clear()
                return
            value = _weigh(value, matrix.astype(dtype), axis, shape, build)
        shape[axis] = after[axis]
    value = build.node("Reshape", value, build.integers(*after), result="" if halves else node.result)
    if halves:
        build.cast(value, np.float16, node.result)


def _weigh(value: str, matrix: np.ndarray, axis: int, shape: list[int], build: NodeBuilder) -> str:
    """Build the weighed sum of pixels along an axis that each row of the matrix stands for."""
    pixels, weights = _pixels(matrix)
    if len(pixels) > _PIXELS:
        rows = build.node(
            "Reshape", value, build.integers(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
        )
        product = build.node("MatMul", build.constant(matrix), rows)
        return build.node("Reshape", product, build.integers(*shape[:axis], len(matrix), *shape[axis + 1 :]))
    total = ""
    for taken, weight in zip(pixels, weights):
        column = build.constant(weight.reshape(-1, *[1] * (len(shape) - axis - 1)))
        part = build.node("Mul", build.node("Gather", value, build.integers(*taken), axis=axis), column)
        total = build.node("Add", total, part) if total else part
    return total


def _pixels(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of each row's weights and these, as many for each row: a lone pixel is divided into equal ones."""
    count = max(int((matrix != 0).sum(axis=1).max()), 1)
    pixels, weights = np.zeros((count, len(matrix)), np.int64), np.zeros((count, len(matrix)), matrix.dtype)
    for row, line in enumerate(matrix):
        places = list(np.flatnonzero(line)) or [0]
        shares = [line[place] for place in places]
        while len(places) < count:  # by 2, which is exact; infinity times 0 would be NaN
            shares[-1] /= 2
            places.append(places[-1])
            shares.append(shares[-1])
        pixels[:, row], weights[:, row] = places, shares
    return pixels, weights


def _nearest(before: int, factor: float, after: int, node: NodeView) -> np.ndarray | None:
    """Return the elements that a Resize takes along an axis, None for another number of them than `after`."""
    taken = _resize_rows(np.arange(before, dtype=np.float32)[None], factor, after, node)
    return None if taken is None else taken[0].astype(np.int64)


def _matrix(before: int, factor: float, after: int, node: NodeView) -> np.ndarray | None:
    """Return the matrix, new × old elements, of an axis; None for another number of elements than `after`."""
    if before * after > _MOST:
        return None
    matrix = _resize_rows(np.eye(before, dtype=np.float32), factor, after, node)
    return None if matrix is None else matrix.T


def _resize_rows(rows: np.ndarray, factor: float, after: int, node: NodeView) -> np.ndarray | None:
    """Resize rows by ONNX Runtime, told the size it would be told; None for other results than of `after` elements."""
    from onnx import helper, numpy_helper

    count, before = rows.shape
    if np.isclose(factor, after / before, rtol=1e-6):
        name, size = "sizes", np.asarray([count, 1, 1, after], np.int64)
    else:
        name, size = "scales", np.asarray([1, 1, 1, factor], np.float32)
    alone = helper.make_node("Resize", ["x", "", *([""] if name == "sizes" else []), name], ["y"], **node.attributes)
    constants = numpy_helper.from_array(rows.reshape(count, 1, 1, before), "x"), numpy_helper.from_array(size, name)
    results = evaluate(alone, constants, node.graph.opset)
    return None if isinstance(results, str) or results[0].size != count * after else results[0].reshape(count, after)


def state_resized_sizes(model: onnx.ModelProto) -> bool:
    """Rewrite, in place, the Resize nodes of constant scales to which ONNX gives other sizes; tell whether there were any.

    ONNX Runtime multiplies in single precision: 5 · 2.6 is 13 there, and 12 to ONNX, as 2.6 is a little less. Such axes
    are resized by their sizes, before the others, which keep their scales.
    """
    if operator_set(model.opset_import) < _SIZES:
        return False
    made = apply_rules(model, {"Resize": _state})
    splice(model.graph, made)
    return bool(made)


def _state(node: NodeView, build: NodeBuilder) -> None:
    shape, scales, attributes = node.shape(0), node.constant(2), node.attributes
    if shape is None or scales is None or not scales.size or not np.isfinite(scales).all():
        return
    axes = [int(axis) % len(shape) for axis in attributes.pop("axes", range(len(shape)))]
    attributes.pop("keep_aspect_ratio_policy", None)
    sizes = {axis: int(np.float32(shape[axis]) * scale) for axis, scale in zip(axes, scales.astype(np.float32))}
    other = [axis for axis, scale in zip(axes, scales) if int(shape[axis] * float(scale)) != sizes[axis]]
    if not other or node.get("coordinate_transformation_mode") == _CROPS:
        return
    kept = [1.0] * len(shape)
    for axis, scale in zip(axes, scales):
        kept[axis] = 1.0 if axis in other else float(scale)
    last = all(scale == 1 for scale in kept)
    none = build.constant(np.zeros(0, np.float32))
    stated = build.integers(*(sizes[axis] if axis in other else size for axis, size in enumerate(shape)))
    value = build.node("Resize", node.input[0], none, none, stated, result=node.result if last else "", **attributes)
    if not last:
        build.node("Resize", value, none, build.number(kept, np.float32), result=node.result, **attributes)
