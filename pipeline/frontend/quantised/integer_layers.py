"""Replace quantised layers in floats by QLinearConv and QLinearMatMul.

Their arithmetic, bit for bit: the sum of (x − x's zero point) · (w − w's zero point) and the bias in int32, times
x's scale · w's scale ÷ y's scale, computed in float32 in this order, rounded half to even, saturated (ONNX Runtime's).

QLinearMatMul takes no bias, and a bias added later would be rounded twice. So a product with one becomes a convolution of
windows of one element, each row an image of one: the sums are the same, and both Reshapes are views.

    x: rows × length ─► Reshape: rows × length × 1 × 1 ─► QLinearConv ─► Reshape: rows × channels
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.node_builder import NodeBuilder, attributes_of, build_replacements, spliced
from .dataflow import Dataflow, dataflow_of
from .layer_pattern import Layer, layer_of
from .transposed_convolution import Phases

if TYPE_CHECKING:
    import onnx


def integer_layers(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace every quantised layer of `model` (with inferred shapes) that integers can compute.

    Its former nodes stay, for folding to remove.
    """
    graph = dataflow_of(model)

    def replace_layer(node: onnx.NodeProto, build: NodeBuilder) -> None:
        layer = layer_of(node, graph) if node.op_type == "QuantizeLinear" else None
        if layer is not None:
            build.stem = layer.node.name or build.stem
            _build(layer, graph, build)

    return spliced(model, build_replacements(model.graph, graph.names, replace_layer))


def _build(layer: Layer, graph: Dataflow, build: NodeBuilder) -> None:
    result = layer.y.name
    made = "" if layer.clips else result
    attributes = attributes_of(layer.node)
    if layer.node.op_type == "Conv":
        made = _convolution(layer, layer.x.name, layer.w.name, build, made, **attributes)
    elif layer.phases is not None:
        made = _build_transposed_convolution(layer, layer.phases, graph, build, made)
    elif layer.bias is None:
        x, w = _transpose(layer, attributes, build)
        of_x = [x, layer.x.scale, layer.x.zero_in(build)]
        of_w = [w, layer.w.scale, layer.w.zero_in(build)]
        made = build.node("QLinearMatMul", *of_x, *of_w, layer.y.scale, layer.y.zero_in(build), result=made)
    else:
        made = _product_with_bias(layer, graph, build, made)
    if layer.clips:
        dtype = layer.y.quantisation.dtype
        build.node("Clip", made, *(build.number(each, dtype) for each in (layer.low, layer.high)), result=result)


def _convolution(layer: Layer, x: str, w: str, build: NodeBuilder, result: str, **attributes: object) -> str:
    operands = [x, layer.x.scale, layer.x.zero_in(build), w, layer.w.scale, layer.w.zero_in(build)]
    bias = [build.constant(layer.bias)] if layer.bias is not None else []
    return build.node(
        "QLinearConv", *operands, layer.y.scale, layer.y.zero_in(build), *bias, result=result, **attributes
    )


def _build_transposed_convolution(
    layer: Layer, phases: Phases, graph: Dataflow, build: NodeBuilder, result: str
) -> str:
    weights, axis = graph.constant(layer.w.name), layer.w.quantisation.axis
    assert weights is not None  # `layer_of` takes no other
    zeros = layer.w.quantisation.zero
    w = replace(layer.w, name=build.constant(phases.filters(weights, zeros)))
    if axis is not None:
        scale = phases.per_filter(np.asarray(layer.w.quantisation.scale, np.float32))
        zero = phases.per_filter(np.asarray(zeros, weights.dtype))
        w = replace(w, scale=build.constant(scale), zero=build.constant(zero))
    bias = phases.per_filter(layer.bias) if layer.bias is not None else None
    last = phases.number == 1 and not phases.cropped
    made = _convolution(
        replace(layer, w=w, bias=bias), layer.x.name, w.name, build, result if last else "", **phases.attributes()
    )
    if last:
        return made
    batch, channels = (graph.shape(layer.node.output[0]) or ())[:2]
    return phases.interleave(made, batch, channels, build, result)


def _transpose(layer: Layer, attributes: dict[str, object], build: NodeBuilder) -> tuple[str, str]:
    """Transpose the operands of a Gemm for a MatMul."""
    x, w = (
        build.node("Transpose", each.name, perm=[1, 0]) if attributes.get(which) else each.name
        for each, which in ((layer.x, "transA"), (layer.w, "transB"))
    )
    return x, w


def _product_with_bias(layer: Layer, graph: Dataflow, build: NodeBuilder, result: str) -> str:
    attributes = attributes_of(layer.node)
    x, w = layer.x.name, layer.w.name
    if attributes.get("transA"):
        x = build.node("Transpose", x, perm=[1, 0])
    if not attributes.get("transB"):
        w = build.node("Transpose", w, perm=[1, 0])
    after = graph.shape(layer.node.output[0]) or ()
    size = graph.shape(layer.w.name) or ()
    length = math.prod(size) // after[-1]
    rows = math.prod(after[:-1])
    image = build.node("Reshape", x, build.integers(rows, length, 1, 1))
    filters = build.node("Reshape", w, build.integers(after[-1], length, 1, 1))
    made = _convolution(layer, image, filters, build, "", kernel_shape=[1, 1])
    return build.node("Reshape", made, build.integers(*after), result=result)
