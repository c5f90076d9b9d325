"""Give the operands of integer layers equal signs, so that ONNX Runtime computes them exactly on every machine.

Its kernels for unsigned × signed saturate on x86 without VNNI, those for signed × unsigned are missing, and a result has
the sign of x. Both numbers and zero points move by 128, so that their difference stays the same:

    x: u8, w: s8, y: s8      becomes      x: u8, w: u8 (+ 128), y: u8 (+ 128) ─► less 128
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...frontend.canonical.control_flow.loop_bodies import with_bodies
from ...frontend.canonical.node_builder import NodeBuilder, attributes_of, spliced, stem_of
from ...frontend.canonical.rewrites import Context, context_of
from ...frontend.canonical.shapes import infer_what_is_open

if TYPE_CHECKING:
    import onnx

_SIGNED, _UNSIGNED = np.dtype("int8"), np.dtype("uint8")
#: places of tensors with their zero points
_QLINEAR, _INTEGER = ((0, 2), (3, 5)), ((0, 2), (1, 3))
_LAYERS = {"ConvInteger": _INTEGER, "MatMulInteger": _INTEGER, "QLinearConv": _QLINEAR, "QLinearMatMul": _QLINEAR}


def with_equal_signs(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return `model` with each integer layer on operands of one dtype; results are the same numbers.

    QLinear layers take the dtype of x, the others uint8.
    """
    model = with_bodies(model, with_equal_signs)
    if not any(node.op_type in _LAYERS for node in model.graph.node):
        return model
    typed = type(model)()
    typed.CopyFrom(model)
    context = context_of(infer_what_is_open(typed))
    made = {}
    for index, node in enumerate(model.graph.node):
        if node.op_type in _LAYERS:
            build = NodeBuilder(f"{stem_of(node, index)}/equal-signs")
            _rebuild(node, context, build)
            if build.nodes:
                made[index] = build
    return spliced(model, made)


def _rebuild(node: onnx.NodeProto, context: Context, build: NodeBuilder) -> None:
    """Build the node on operands of one dtype; nothing if they are of one already."""
    places = _LAYERS[node.op_type]
    integer = node.op_type.endswith("Integer")
    common = _UNSIGNED if integer else context.dtype(node.input[0])
    inputs = [*node.input, *[""] * (4 - len(node.input))]
    if not all(name in context.types for name in (*(inputs[tensor] for tensor, _ in places), node.output[0])):
        return  # of a file as given, with values of unknown type
    dtypes = [context.dtype(inputs[tensor]) for tensor, _ in places]
    result = common if integer else context.dtype(node.output[0])
    if {*dtypes, result} == {common}:
        return
    for (tensor, zero), dtype in zip(places, dtypes, strict=True):
        if dtype != common:
            inputs[tensor] = _moved(inputs[tensor], dtype, context, build)
            inputs[zero] = _moved(inputs[zero], dtype, context, build) if inputs[zero] else _zero(dtype, build)
    if result != common:
        inputs[7] = _moved(inputs[7], result, context, build)
    while not inputs[-1]:
        inputs.pop()
    own = node.output[0] if result == common else ""
    value = build.node(node.op_type, *inputs, result=own, **attributes_of(node))
    if result != common:
        _shift(value, common, build, node.output[0])


def _zero(dtype: np.dtype, build: NodeBuilder) -> str:
    """Return the number 0 of `dtype`, moved into the other dtype."""
    return build.constant(np.asarray(128 if dtype == _SIGNED else -128, _other(dtype)))


def _other(dtype: np.dtype) -> np.dtype:
    return _UNSIGNED if dtype == _SIGNED else _SIGNED


def _moved(name: str, dtype: np.dtype, context: Context, build: NodeBuilder) -> str:
    """Return a tensor of `dtype` in the other dtype, each number moved by 128."""
    value = context.constant(name)
    if value is None:
        return _shift(name, dtype, build)
    by = 128 if dtype == _SIGNED else -128
    return build.constant((value.astype(np.int16) + by).astype(_other(dtype)))


def _shift(name: str, dtype: np.dtype, build: NodeBuilder, result: str = "") -> str:
    from onnx import helper

    wide = build.node("Cast", name, to=helper.np_dtype_to_tensor_dtype(np.dtype(np.int32)))
    by = build.constant(np.asarray(128 if dtype == _SIGNED else -128, np.int32))
    sum_ = build.node("Add", wide, by)
    return build.node("Cast", sum_, result=result, to=helper.np_dtype_to_tensor_dtype(_other(dtype)))
