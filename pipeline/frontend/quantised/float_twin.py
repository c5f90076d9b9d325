"""Build the float twin of a quantised model: the same layers on floats, without quantisation.

    int8 ─► QLinearConv ─► int8      becomes      float32 ─► Conv ─► float32
                                                  int8 weights ─► DequantizeLinear ─┘

Its memory says what quantisation saves. Its results are those of the model without rounding: they saturate as the
integers do, by which a ReLU may be implied. Constants of layers are dequantised by nodes, which kernels of constants are
folded with: as floats in the file they would take four times the model once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.graph_context import Context, NodeView, context_of
from ..canonical.node_builder import NodeBuilder, attributes_of, build_replacements, splice
from ..canonical.ports.integers import Scale, scale_at
from ..traits import INTEGER_LAYERS, QUANTISES

if TYPE_CHECKING:
    import onnx

#: the place of a result's scale, before its zero point
_SCALES = {"QLinearConv": 6, "QLinearMatMul": 6, "QuantizeLinear": 1}
_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul", *INTEGER_LAYERS)
_NUMBERS = ("int8", "uint8", "int32")


def has_numbers(model: onnx.ModelProto) -> bool:
    """Return whether a canonical model quantises or dequantises something."""
    return any(node.op_type in (*QUANTISES, *INTEGER_LAYERS, "DequantizeLinear") for node in model.graph.node)


def integer_share(model: onnx.ModelProto) -> float:
    """Return the share of the multiplications of convolutions and products that are done on integers."""
    done = {True: 0, False: 0}
    for kind, count in _products(model):
        done[kind in INTEGER_LAYERS] += count
    return done[True] / max(1, sum(done.values()))


def multiplications(model: onnx.ModelProto) -> int:
    """Count the multiplications of convolutions and products of a canonical model, in loops too."""
    return sum(count for _, count in _products(model))


def _products(model: onnx.ModelProto) -> Iterator[tuple[str, int]]:
    """Yield the operators of a canonical model that multiply, each with its multiplications in all trips."""
    context = context_of(model)
    for node in model.graph.node:
        if node.op_type in _PRODUCTS:
            yield node.op_type, _multiplications(node, context)
        elif node.op_type == "Scan":
            trips = (context.shape(node.input[-1]) or (0,))[0]
            body = type(model)(graph=attributes_of(node)["body"], opset_import=model.opset_import)
            yield from ((kind, trips * count) for kind, count in _products(body))


def _multiplications(node: onnx.NodeProto, context: Context) -> int:
    place = INTEGER_LAYERS[node.op_type][1][0] if node.op_type in INTEGER_LAYERS else 1
    made, weights = context.shape(node.output[0]), context.shape(node.input[place])
    if node.op_type == "ConvTranspose":
        made = context.shape(node.input[0])
    if made is None or weights is None:
        return 0
    if "Conv" in node.op_type:
        return math.prod(made) * math.prod(weights[1:])
    along = -1 if node.op_type == "Gemm" and attributes_of(node).get("transB") else max(0, len(weights) - 2)
    return math.prod(made) * weights[along]


def float_twin(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the float twin of a canonical model, not yet canonical; ports of numbers become float32."""
    from onnx import TensorProto, helper, numpy_helper

    context = context_of(model)
    floats = _quantised_tensors(model, context)
    result = deepcopy(model)
    del result.graph.value_info[:]
    for value in (*result.graph.input, *result.graph.output):
        if value.name in floats:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    known, moved = _constants_by_scale(model, floats, context), floats & _moved_constants(model, context)
    for tensor in result.graph.initializer:
        if tensor.name in moved:
            numbers = numpy_helper.to_array(tensor).astype(np.float32)
            scale, zero, _ = known.get(tensor.name, (1.0, 0, ""))
            tensor.CopyFrom(numpy_helper.from_array(((numbers - zero) * scale).astype(np.float32), tensor.name))

    def convert(node: onnx.NodeProto, build: NodeBuilder) -> None:
        _to_floats(NodeView(node, context), moved, build)
        if node.op_type == "Cast" and node.output[0] in floats:
            node.CopyFrom(helper.make_node("Cast", node.input, node.output, name=node.name, to=TensorProto.FLOAT))

    splice(result.graph, build_replacements(result.graph, context.names, convert))
    return result


def _to_floats(node: NodeView, moved: Set[str], build: NodeBuilder) -> None:
    """Build the float form of a quantised node; nothing for others. Constants of `moved` are floats already."""
    if node.op_type == "QuantizeLinear":
        _saturate(node.input[0], 1, node, build)
    elif node.op_type == "DequantizeLinear":
        if node.name(0) not in node.graph.constants:
            build.node("Identity", node.name(0), result=node.result)
        elif node.name(0) in moved:
            integers = build.constant(node.graph.constant(node.name(0)))
            build.node("DequantizeLinear", integers, *node.input[1:], result=node.result, **node.attributes)
    elif node.op_type == "DynamicQuantizeLinear":
        for name, value in zip(node.output, (node.input[0], build.number(1, np.float32), build.number(0, np.uint8))):
            if name:
                build.node("Identity", value, result=name)
    elif node.op_type in INTEGER_LAYERS:
        operator = "Conv" if "Conv" in node.op_type else "MatMul"
        operands = [node.input[tensor] for tensor, *_ in INTEGER_LAYERS[node.op_type]]
        weights = operands[1]
        if weights in node.graph.constants:
            integers = build.constant(node.graph.constant(weights)) if weights in moved else weights
            operands[1] = _dequantise(weights, integers, 0 if operator == "Conv" else -1, node, build)
        if not node.op_type.startswith("QLinear"):
            build.node(operator, *operands, result=node.result, **node.attributes)
            return
        if node.name(8):
            operands.append(_bias(node, build))
        _saturate(build.node(operator, *operands, **node.attributes), 6, node, build)


def _saturate(value: str, place: int, node: NodeView, build: NodeBuilder) -> None:
    """Build a Clip to the least and the most value of the numbers of a result; they are of any size if it has channels."""
    found, limits = scale_at(node.proto, node.graph.constants, (place, place + 1)), np.iinfo(node.dtype(node.result))
    if found is None:
        build.node("Identity", value, result=node.result)
        return
    bounds = [build.number((each - found.zero_point) * found.scale, np.float32) for each in (limits.min, limits.max)]
    build.node("Clip", value, *bounds, result=node.result)


def _constants_by_scale(model: onnx.ModelProto, floats: set[str], context: Context) -> dict[str, Scale]:
    """Map quantised tensors to their scale and zero point: results, and what moves together with them."""
    known: dict[str, Scale] = {}
    for node in model.graph.node:
        place = _SCALES.get(node.op_type)
        if place is not None:
            found, moved = scale_at(node, context.constants, (place, place + 1)), list(node.output)
        elif node.op_type in (*INTEGER_LAYERS, "Cast", "DequantizeLinear"):
            continue
        else:
            found = next((known[name] for name in node.input if name in known), None)
            moved = [*node.input, *node.output]
        if found is not None:
            known |= {name: found for name in moved if name in floats and name not in known}
    return known


def _dequantise(weights: str, integers: str, axis: int, node: NodeView, build: NodeBuilder) -> str:
    """Build the weights of a layer as floats: of a scale for all or along `axis`, else the numbers themselves."""
    scale, zero = (node.constant(place) if node.op_type.startswith("QLinear") else None for place in (4, 5))
    if scale is None or scale.ndim > 1:
        scale, zero = np.ones(1, np.float32), None
    zero = np.zeros(1, node.graph.dtype(weights)) if zero is None else zero
    shape = (max(scale.size, zero.size),) if scale.size + zero.size > 2 else ()
    operands = (build.constant(np.resize(each, shape)) for each in (scale, zero))
    return build.node("DequantizeLinear", integers, *operands, axis=axis)


def _moved_constants(model: onnx.ModelProto, context: Context) -> set[str]:
    """Return the constants that something else than a layer or DequantizeLinear reads."""
    places = {name: INTEGER_LAYERS[name][1][0] for name in INTEGER_LAYERS} | {"DequantizeLinear": 0}
    read = {
        name for node in model.graph.node for place, name in enumerate(node.input) if places.get(node.op_type) != place
    }
    return {name for name in (*read, *(each.name for each in model.graph.output)) if name in context.constants}


def _bias(node: NodeView, build: NodeBuilder) -> str:
    bias, x, w = (node.constant(each) for each in (8, 1, 4))
    if bias is None:
        return node.name(8)
    step = np.float32(1) if x is None or w is None else x * w
    return build.constant((bias.astype(np.float32) * step).astype(np.float32))


def _quantised_tensors(model: onnx.ModelProto, context: Context) -> set[str]:
    """Collect the integer tensors that hold quantised numbers: those of quantised nodes, and wherever they move."""
    found: set[str] = set()
    for node in model.graph.node:
        if node.op_type in INTEGER_LAYERS:
            found |= {node.input[tensor] for tensor, *_ in INTEGER_LAYERS[node.op_type]} | {node.output[0]}
            found |= set(node.input[8:9])
        elif node.op_type in QUANTISES:
            found.add(node.output[0])
        elif node.op_type == "DequantizeLinear":
            found.add(node.input[0])
    size = -1
    while size != len(found):
        size = len(found)
        for node in model.graph.node:
            if node.op_type in (*INTEGER_LAYERS, *QUANTISES, "Cast", "DequantizeLinear"):
                continue
            tensors = [name for name in (*node.input, *node.output) if name in context.types]
            kinds = {context.dtype(name).name for name in tensors if name in found}
            found |= {name for name in tensors if context.dtype(name).name in kinds & set(_NUMBERS)}
    return found
