"""Put DequantizeLinear nodes into forms TVM's importer reads: one scale a channel, numbers of a byte.

    w: uint4, one scale for 32 of them along `axis`      becomes      Reshape(Mul(Sub(Cast(w), Cast(zero)), scale))

The numbers are the same, bit for bit. Numbers of 4 bits take a byte each in the library: TVM has no constants of 4 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..canonical.node_builder import NodeBuilder, attributes_of, splice, stem_of
from ..canonical.rewrites import Context, context_of

if TYPE_CHECKING:
    import onnx


def plain_dequantisations(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return `model` (with inferred shapes) without blocks of a channel and constants of 4 bits."""
    from onnx import TensorProto, numpy_helper

    wide = {TensorProto.INT4: np.int8, TensorProto.UINT4: np.uint8}
    blocked = {index for index, node in enumerate(model.graph.node) if node.op_type == "DequantizeLinear" and attributes_of(node).get("block_size")}
    if not blocked and not any(tensor.data_type in wide for tensor in model.graph.initializer):
        return model
    result = type(model)()
    result.CopyFrom(model)
    for tensor in result.graph.initializer:
        if tensor.data_type in wide:
            array = numpy_helper.to_array(tensor).astype(wide[tensor.data_type])
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    context = context_of(result)
    made = {}
    for index in sorted(blocked):
        node = result.graph.node[index]
        build = NodeBuilder(stem_of(node, index))
        _by_blocks(node, context, build)
        if build.nodes:
            made[index] = build
    splice(result.graph, made)
    return result


def _by_blocks(node: onnx.NodeProto, context: Context, build: NodeBuilder) -> None:
    """Build the arithmetic on blocks as a dimension of their own; nothing if the last block is shorter."""
    from onnx import TensorProto

    attributes = attributes_of(node)
    shape, blocks = context.shape(node.input[0]), context.shape(node.input[1])
    size, axis = attributes["block_size"], attributes.get("axis", 1)
    if shape is None or blocks is None or shape[axis] % size or context.dtype(node.input[1]) != np.float32:
        return
    axis %= len(shape)
    apart = [*shape[:axis], shape[axis] // size, size, *shape[axis + 1 :]]
    of_block = [*blocks[: axis + 1], 1, *blocks[axis + 1 :]]
    number = build.node("Cast", build.node("Reshape", node.input[0], build.integers(*apart)), to=TensorProto.FLOAT)
    if len(node.input) > 2 and node.input[2]:
        zero = build.node("Cast", build.node("Reshape", node.input[2], build.integers(*of_block)), to=TensorProto.FLOAT)
        number = build.node("Sub", number, zero)
    value = build.node("Mul", number, build.node("Reshape", node.input[1], build.integers(*of_block)))
    build.node("Reshape", value, build.integers(*shape), result=node.output[0])
