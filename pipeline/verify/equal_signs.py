"""Convert the operands of integer layers to equal signs: ONNX Runtime then computes exactly on every machine.

Its kernels for unsigned × signed saturate on x86 without VNNI, those for signed × unsigned are missing, and a result has
the sign of x. Both numbers and zero points move by 128, so that their difference stays the same:

    x: u8, w: s8, y: s8      becomes      x: u8, w: u8 (+ 128), y: u8 (+ 128) ─► less 128
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from ..frontend.canonical.control_flow.loop_bodies import change_bodies
from ..frontend.canonical.graph_context import Context, context_of
from ..frontend.canonical.node_builder import NodeBuilder, attributes_of, build_replacements, spliced
from ..frontend.canonical.shapes import infer_what_is_open
from ..frontend.traits import INTEGER_LAYERS

if TYPE_CHECKING:
    import onnx

_SIGNED, _UNSIGNED = np.dtype("int8"), np.dtype("uint8")
#: places of the operand and its zero point, of vendors' operators that take one of either sign: others make it unsigned
_OPERANDS = {"MatMulIntegerToFloat": (0, 4), "QAttention": (0, 6), "QGemm": (0, 2)}
#: places of constant weights with their zero points, in operators of vendors
_WEIGHTS = {
    "DynamicQuantizeLSTM": ((1, 9), (2, 11)), "DynamicQuantizeMatMul": ((1, 3),), "MatMulIntegerToFloat": ((1, 5),),
    "QAttention": ((1, 7),), "QGemm": ((3, 5),),
}  # fmt: skip


def equalise_signs(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return `model` with each integer layer on operands of one dtype; results are the same numbers.

    QLinear layers take the dtype of x, the others uint8.
    """
    model = change_bodies(model, equalise_signs)
    if not any(node.op_type in INTEGER_LAYERS.keys() | _WEIGHTS.keys() for node in model.graph.node):
        return model
    typed = deepcopy(model)
    context = context_of(infer_what_is_open(typed))

    def rebuild(node: onnx.NodeProto, build: NodeBuilder) -> None:
        if node.op_type in INTEGER_LAYERS:
            _rebuild(node, context, build)
        elif node.op_type in _WEIGHTS:
            _move_weights(node, context, build)

    return spliced(model, build_replacements(model.graph, context.names, rebuild, "/equal-signs"))


def _rebuild(node: onnx.NodeProto, context: Context, build: NodeBuilder) -> None:
    """Build the node on operands of one dtype; nothing if they are of one already."""
    places = [(tensor, zero) for tensor, _, zero in INTEGER_LAYERS[node.op_type]]
    integer = node.op_type.endswith("Integer")
    inputs = [*node.input, *[""] * (4 - len(node.input))]
    dtypes = [_dtype(inputs[tensor], inputs[zero], context) for tensor, zero in places]
    result = _UNSIGNED if integer else _dtype(node.output[0], inputs[7], context)
    common = _UNSIGNED if integer else dtypes[0]
    if None in (*dtypes, result) or {*dtypes, result} == {common}:
        return
    for (tensor, zero), dtype in zip(places, dtypes, strict=True):
        if dtype != common:
            inputs[tensor] = _flip_sign(inputs[tensor], dtype, context, build)
            inputs[zero] = _flip_sign(inputs[zero], dtype, context, build) if inputs[zero] else _zero(dtype, build)
    if result != common:
        inputs[7] = _flip_sign(inputs[7], result, context, build)
    while not inputs[-1]:
        inputs.pop()
    own = node.output[0] if result == common else ""
    value = build.node(node.op_type, *inputs, result=own, **attributes_of(node))
    if result != common:
        _shift(value, common, build, node.output[0])


def _dtype(name: str, zero: str, context: Context) -> np.dtype | None:
    """Return the dtype of a tensor, which its zero point has too; None for a value of a file that nothing types."""
    for each in (name, zero):
        if each in context.types:
            return context.dtype(each)
        if (array := context.constant(each)) is not None:
            return array.dtype
    return None


def _move_weights(node: onnx.NodeProto, context: Context, build: NodeBuilder) -> None:
    """Build a vendor's node on weights without a sign, as its operand is; nothing if they are not constant."""
    inputs = [*node.input, *[""] * (12 - len(node.input))]
    moved = False
    if node.op_type in _OPERANDS:
        operand, point = _OPERANDS[node.op_type]
        if _dtype(inputs[operand], inputs[point], context) != _UNSIGNED:
            return
    for tensor, zero in _WEIGHTS[node.op_type]:
        weights, shift = context.constant(inputs[tensor]), context.constant(inputs[zero])
        if weights is None or weights.dtype != _SIGNED or (inputs[zero] and shift is None):
            continue
        inputs[tensor] = _flip_sign(inputs[tensor], _SIGNED, context, build)
        inputs[zero] = _flip_sign(inputs[zero], _SIGNED, context, build) if inputs[zero] else _zero(_SIGNED, build)
        moved = True
    if moved:
        copied = build.copy(node)
        del copied.input[:]
        copied.input.extend(inputs[: max(place for place, name in enumerate(inputs) if name) + 1])


def _zero(dtype: np.dtype, build: NodeBuilder) -> str:
    """Return the number 0 of `dtype`, moved into the other dtype."""
    return build.number(128 if dtype == _SIGNED else -128, _other(dtype))


def _other(dtype: np.dtype) -> np.dtype:
    return _UNSIGNED if dtype == _SIGNED else _SIGNED


def _flip_sign(name: str, dtype: np.dtype, context: Context, build: NodeBuilder) -> str:
    """Return a tensor of `dtype` in the other dtype, each number moved by 128."""
    value = context.constant(name)
    if value is None:
        return _shift(name, dtype, build)
    by = 128 if dtype == _SIGNED else -128
    return build.constant((value.astype(np.int16) + by).astype(_other(dtype)))


def _shift(name: str, dtype: np.dtype, build: NodeBuilder, result: str = "") -> str:

    wide = build.cast(name, np.int32)
    by = build.number(128 if dtype == _SIGNED else -128, np.int32)
    sum_ = build.node("Add", wide, by)
    return build.cast(sum_, _other(dtype), result)
