"""Rewrite Resize into a form TVM reads rightly: that of all sizes, else axis by axis.

    rows × columns  ──matrix · x──►  new rows × columns  ──x · matrix──►  new rows × new columns

Every interpolation of ONNX is linear in its input and separable: an axis is a product with a constant matrix, or a Gather
of the nearest elements. The matrix is the Resize of the identity, by ONNX Runtime in the operator set of the model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..folding.evaluate import evaluate
from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    import onnx

    from ..rewrites import Context

#: most elements of a matrix; larger ones are as large as a network's weights
_MOST = 1 << 20
#: the number that TVM adds before it rounds down, and takes off before it rounds up
_EPSILON = np.float32(1e-5)
_CROPS = "tf_crop_and_resize"


def resize(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Give Resize the sizes of all dimensions, or resize axis by axis where TVM would take other elements.

    TVM takes an empty constant for scales, and reads neither axes nor policies. An empty constant says "not given" in
    opsets 11 and 12. If the scales give whole sizes, `half_pixel_symmetric` is `half_pixel`.
    """
    inputs = [*node.input, *[""] * (4 - len(node.input))]
    for position in (1, 2, 3):
        value = context.constant(inputs[position])
        if value is not None and value.size == 0:
            inputs[position] = ""
    before, after = context.shape(inputs[0]), context.shape(node.output[0])
    scales = context.constant(inputs[2])
    if before is None or after is None or (inputs[2] and scales is None) or (inputs[1] and attributes.get("axes")):
        return
    axes = [int(axis) % len(before) for axis in attributes.pop("axes", range(len(before)))]
    policy = attributes.pop("keep_aspect_ratio_policy", "stretch")
    if scales is None:
        sizes = context.constant(inputs[3])
        meant = (np.asarray(after)[axes] if sizes is None else sizes) / np.asarray(before)[axes]
        scales = meant if policy == "stretch" else np.full(len(axes), meant.min() if policy == "not_larger" else meant.max())
    factors = dict(zip(axes, map(float, scales)))
    if _reads_alike(before, after, factors, attributes, context.dtype(inputs[0]), context.opset):
        inputs[2:] = ["", build.integers(*after)]
        if attributes.get("coordinate_transformation_mode") == "half_pixel_symmetric":
            attributes["coordinate_transformation_mode"] = "half_pixel"
        attributes.pop("antialias", None)
        build.node("Resize", *inputs, result=node.output[0], **attributes)
    else:
        _by_axis(node, attributes, context, build, factors)


def _reads_alike(
    before: tuple[int, ...], after: tuple[int, ...], factors: dict[int, float], attributes: dict[str, Any], dtype: np.dtype, opset: int
) -> bool:
    """Tell whether TVM, given the sizes of all dimensions, takes the elements that ONNX Runtime takes.

    It computes in single precision, and takes the quotient of the sizes for the scale.
    """
    mode = attributes.get("coordinate_transformation_mode", "half_pixel")
    ratios = [new / old for old, new in zip(before, after)]
    if before[:2] != after[:2] or len(before) not in (3, 4, 5) or (attributes.get("antialias") and min(ratios) < 1):
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
        if attributes.get("mode", "nearest") == "nearest" and factor != 1:
            taken = _nearest(old, factor, new, attributes, opset)
            if taken is None or not np.array_equal(taken, _nearest_by_tvm(old, new, attributes)):
                return False
    if dtype.kind == "f":
        return dtype.itemsize <= 4
    return attributes.get("mode", "nearest") != "nearest" or dtype.itemsize <= 2


def _nearest_by_tvm(before: int, after: int, attributes: dict[str, Any]) -> np.ndarray:
    """Return the elements that TVM takes along an axis."""
    mode = attributes.get("coordinate_transformation_mode", "half_pixel")
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
    rounding = attributes.get("nearest_mode", "round_prefer_floor")
    if rounding == "floor":
        index = np.floor(place + _EPSILON)
    elif rounding == "ceil":
        index = np.ceil(place - _EPSILON)
    else:
        index = np.floor(place + half) if rounding == "round_prefer_ceil" else np.ceil(place - half)
    return np.clip(index.astype(np.int64), 0, before - 1)


def _by_axis(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder, factors: dict[int, float]) -> None:
    """Resize the axes of `factors` in turn, by ascending factor; nothing for crops."""
    from onnx import TensorProto

    before, after = context.shape(node.input[0]), context.shape(node.output[0])
    if before is None or after is None or attributes.get("coordinate_transformation_mode") == _CROPS:
        return
    dtype, opset, nearest = context.dtype(node.input[0]), context.opset, attributes.get("mode", "nearest") == "nearest"
    value, shape = node.input[0], list(before)
    halves = dtype == np.float16 and not nearest  # ONNX Runtime computes in single precision
    if halves:
        value, dtype = build.node("Cast", value, to=TensorProto.FLOAT), np.dtype(np.float32)
    for axis in sorted((axis for axis in factors if factors[axis] != 1), key=lambda axis: (factors[axis], axis)):
        resized = before[axis], factors[axis], after[axis], attributes, opset
        if nearest:
            taken = _nearest(*resized)
            if taken is None:
                build.nodes.clear()
                return
            value = build.node("Gather", value, build.integers(*taken), axis=axis)
        else:
            matrix = _matrix(*resized) if dtype.kind == "f" else None
            if matrix is None:
                build.nodes.clear()
                return
            rows = build.node("Reshape", value, build.integers(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])))
            value = build.node("MatMul", build.constant(matrix.astype(dtype)), rows)
        shape[axis] = after[axis]
    value = build.node("Reshape", value, build.integers(*after), result="" if halves else node.output[0])
    if halves:
        build.node("Cast", value, result=node.output[0], to=TensorProto.FLOAT16)


def _nearest(before: int, factor: float, after: int, attributes: dict[str, Any], opset: int) -> np.ndarray | None:
    """Return the elements that a Resize takes along an axis, None for another number of them than `after`."""
    taken = _resized(np.arange(before, dtype=np.float32)[None], factor, after, attributes, opset)
    return None if taken is None else taken[0].astype(np.int64)


def _matrix(before: int, factor: float, after: int, attributes: dict[str, Any], opset: int) -> np.ndarray | None:
    """Return the matrix, new × old elements, of an axis; None for another number of elements than `after`."""
    if before * after > _MOST:
        return None
    matrix = _resized(np.eye(before, dtype=np.float32), factor, after, attributes, opset)
    return None if matrix is None else matrix.T


def _resized(rows: np.ndarray, factor: float, after: int, attributes: dict[str, Any], opset: int) -> np.ndarray | None:
    """Resize rows by ONNX Runtime, told the size it would be told; None for other results than of `after` elements."""
    from onnx import helper, numpy_helper

    count, before = rows.shape
    if np.isclose(factor, after / before, rtol=1e-6):
        name, size = "sizes", np.asarray([count, 1, 1, after], np.int64)
    else:
        name, size = "scales", np.asarray([1, 1, 1, factor], np.float32)
    node = helper.make_node("Resize", ["x", "", *([""] if name == "sizes" else []), name], ["y"], **attributes)
    constants = numpy_helper.from_array(rows.reshape(count, 1, 1, before), "x"), numpy_helper.from_array(size, name)
    results = evaluate(node, constants, opset)
    return None if isinstance(results, str) or results[0].size != count * after else results[0].reshape(count, after)
