"""Put DequantizeLinear nodes into forms TVM's importer reads: one scale a channel, numbers of a byte.

    w: uint4, one scale for 32 of them along `axis`      becomes      UnpackNibbles ─► DequantizeBlocks

The numbers are the same, bit for bit. Neither is an operator of ONNX: narrow_weights.py makes kernels of them. TVM has no
constants of 4 bits: large ones stay two to a byte, small ones take a byte each.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.graph_context import Context, context_of
from ..canonical.node_builder import Names, attributes_of, replace_nodes

if TYPE_CHECKING:
    import onnx

#: elements below which a constant takes a byte each: unpacking takes code
_SMALL = 256


def plain_dequantisations(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return `model` (with inferred shapes) without blocks of a channel and constants of 4 bits."""
    from onnx import TensorProto

    wide = {TensorProto.INT4: np.dtype(np.int8), TensorProto.UINT4: np.dtype(np.uint8)}
    context = context_of(model)
    blocked = [index for index, node in enumerate(model.graph.node) if _has_blocks(node, context)]
    if not blocked and not any(tensor.data_type in wide for tensor in model.graph.initializer):
        return model
    result = deepcopy(model)
    for index in blocked:
        _read_by_blocks(result.graph.node[index], context)
    _widen_constants(result.graph, wide)
    return result


def _has_blocks(node: onnx.NodeProto, context: Context) -> bool:
    if node.op_type != "DequantizeLinear" or not attributes_of(node).get("block_size"):
        return False
    return context.shape(node.input[0]) is not None and context.dtype(node.input[1]) == np.float32


def _read_by_blocks(node: onnx.NodeProto, context: Context) -> None:
    from onnx import helper

    attributes, shape = attributes_of(node), context.shape(node.input[0]) or ()
    options = {"axis": attributes.get("axis", 1) % len(shape), "size": attributes["block_size"]}
    node.CopyFrom(helper.make_node("DequantizeBlocks", node.input, node.output, name=node.name, **options))


def _widen_constants(graph: onnx.GraphProto, wide: dict[int, np.dtype]) -> None:
    """Replace constants of 4 bits: small ones by bytes, others by pairs and a node that unpacks them."""
    from onnx import helper, numpy_helper

    unpacked, names = [], Names(graph)
    for tensor in graph.initializer:
        if tensor.data_type not in wide:
            continue
        numbers, name = numpy_helper.to_array(tensor).astype(wide[tensor.data_type]), tensor.name
        axis = _packed_axis(numbers.shape)
        if axis is None:
            tensor.CopyFrom(numpy_helper.from_array(numbers, name))
            continue
        signed = int(numbers.dtype == np.int8)
        pairs = _pack_pairs(numbers + np.int8(8) if signed else numbers, axis)
        tensor.CopyFrom(numpy_helper.from_array(pairs, names.new(f"{name}/pairs")))
        reader = next((node.name for node in graph.node if name in node.input), name)
        options = {"axis": axis, "extent": numbers.shape[axis], "signed": signed}
        unpacked.append(helper.make_node("UnpackNibbles", [tensor.name], [name], name=reader, **options))
    nodes = [*unpacked, *graph.node]
    replace_nodes(graph, nodes)


def _packed_axis(shape: tuple[int, ...]) -> int | None:
    """Return the axis along which neighbours share a byte: even, not the last if possible; None for small constants.

    Kernels run along the last axis in vectors, which then all need the same bits of their bytes.
    """
    if math.prod(shape) < _SMALL:
        return None
    order = [*range(len(shape) - 2, -1, -1), len(shape) - 1]
    return next((axis for axis in order if shape[axis] % 2 == 0), order[0])


def _pack_pairs(numbers: np.ndarray, axis: int) -> np.ndarray:
    """Pack numbers from 0 to 15 into bytes along `axis`, the first of two in the low bits."""
    lines = np.moveaxis(numbers.astype(np.uint8), axis, 0)
    if len(lines) % 2:
        lines = np.concatenate([lines, np.zeros_like(lines[:1])])
    return np.ascontiguousarray(np.moveaxis(lines[::2] | (lines[1::2] << 4), 0, axis))
