"""Rewrite a Resize that TVM's importer cannot read, axis by axis: each is a product with a constant matrix, or a Gather.

    rows × columns  ──matrix · x──►  new rows × columns  ──x · matrix──►  new rows × new columns

Every interpolation of ONNX is linear in its input and separable. Its matrix is the Resize of the identity, by ONNX's own
reference evaluator.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    import onnx

    from ..rewrites import Context

#: most elements of a matrix; larger ones are as large as a network's weights
_MOST = 1 << 20


def resize_by_axis(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder, scales: dict[int, float]) -> None:
    """Resize the axes of `scales` in turn, by ascending scale; nothing for crops."""
    before, after = context.shape(node.input[0]), context.shape(node.output[0])
    if before is None or after is None or attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        return
    nearest = attributes.get("mode", "nearest") == "nearest"
    dtype = context.dtype(node.input[0])
    changed = sorted((axis for axis in scales if scales[axis] != 1), key=lambda axis: (scales[axis], axis))
    matrices = {axis: _matrix(before[axis], scales[axis], after[axis], attributes) for axis in changed}
    if not (nearest or dtype.kind == "f") or any(each is None for each in matrices.values()):
        return
    value, shape = node.input[0], list(before)
    for axis, matrix in matrices.items():
        assert matrix is not None
        if nearest:
            value = build.node("Gather", value, build.integers(*matrix.argmax(1)), axis=axis)
        else:
            rows = build.node("Reshape", value, build.integers(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])))
            value = build.node("MatMul", build.constant(matrix.astype(dtype)), rows)
        shape[axis] = after[axis]
    build.node("Reshape", value, build.integers(*after), result=node.output[0])


def _matrix(before: int, scale: float, after: int, attributes: dict[str, Any]) -> np.ndarray | None:
    """Return the matrix, new × old elements, of an axis; None for another number of elements than `after`."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    if before * after > _MOST or not 0 < math.floor(before * scale + 1e-6) == after:
        return None
    kept = {name: value for name, value in attributes.items() if name not in ("axes", "keep_aspect_ratio_policy")}
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "scales", "y")]
    graph = helper.make_graph([helper.make_node("Resize", ["x", "", "scales"], ["y"], **kept)], "axis", ports[:2], ports[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    given = {"x": np.eye(before, dtype=np.float32), "scales": np.asarray([1, scale], np.float32)}
    (found,) = ReferenceEvaluator(model).run(None, given)
    return found.T if found.shape == (before, after) else None
