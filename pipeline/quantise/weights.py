"""Narrow a model without samples of its ranges: weights alone in int8 or int4 for flash, or all in float16 for ram too.

    W: float[filters, …]  ►  int4[filters, taps], a scale for each block of a filter's taps ─► DequantizeLinear ─► Reshape ─► Conv

Layers compute on floats; libraries dequantise a weight where it is read.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from ..frontend.canonical.folding.evaluate import declare_types
from ..frontend.canonical.folding.fold_constants import sort_nodes
from ..frontend.canonical.graph_context import context_of
from ..frontend.canonical.node_builder import attributes_of, replace_nodes
from .prepare import quiet

if TYPE_CHECKING:
    import onnx

#: taps of a filter that share a scale; the least weights of a tensor, below which scales and code take what is saved
BLOCK, _LEAST = 32, 512
#: the operator set of blocks with a scale each
BLOCKS = 21
#: operators with weights as their second operand, and the axis of it that is the filters': the others are summed over
_FILTERS = {"Conv": 0, "ConvTranspose": 0, "Gemm": 1, "MatMul": 1}


def narrow_weights(model: onnx.ModelProto, bits: int) -> onnx.ModelProto:
    """Quantise the weights of layers in blocks of 8 or 4 bits; the model is prepared, of operator set BLOCKS."""
    from onnx import helper, numpy_helper

    made, context = deepcopy(model), context_of(model)
    constants = {each.name: each for each in made.graph.initializer}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in made.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    first: list[onnx.NodeProto] = []
    for name, tensor in list(constants.items()):
        axes = {_filters(node, name) for node in readers.get(name, [])}
        weights = context.constant(name)
        if len(axes) != 1 or None in axes or weights is None or weights.dtype != np.float32 or weights.size < _LEAST:
            continue
        axis = axes.pop()
        assert axis is not None
        numbers, scales = _blocks(weights, axis, bits)
        kept = [f"{name}_{part}" for part in ("numbers", "scales", "sizes")]
        flat = numbers.shape != weights.shape
        packed = numbers.astype(np.int8 if bits == 8 else ml_dtypes.int4)
        made.graph.initializer.extend(map(numpy_helper.from_array, (packed, scales), kept))
        along = 0 if axis else 1
        dequantised = f"{name}_floats" if flat else name
        first.append(
            helper.make_node("DequantizeLinear", kept[:2], [dequantised], f"{name}_dequantise", axis=along, block_size=BLOCK)
        )  # fmt: skip
        if flat:
            made.graph.initializer.append(numpy_helper.from_array(np.array(weights.shape, np.int64), kept[2]))
            first.append(helper.make_node("Reshape", [dequantised, kept[2]], [name], f"{name}_shape"))
        made.graph.initializer.remove(tensor)
    nodes = [*first, *made.graph.node]
    replace_nodes(made.graph, nodes)
    return made


def _filters(node: onnx.NodeProto, name: str) -> int | None:
    """Return the axis of filters of the weights `name` of a layer; None if it is another operand, or no such layer."""
    if node.domain or node.op_type not in _FILTERS or list(node.input).index(name) != 1 or name in node.input[2:]:
        return None
    return 0 if node.op_type == "Gemm" and attributes_of(node).get("transB") else _FILTERS[node.op_type]


def _blocks(weights: np.ndarray, axis: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights as integers and the scale of each block: taps of a filter along the other axis, of two.

    Weights of more than two axes are flattened to lines of a filter; those of stacked matrices are lines as they are.
    """
    lines = weights.reshape(-1, weights.shape[-1]).T if axis else weights.reshape(weights.shape[0], -1)
    most, taps = (1 << (bits - 1)) - 1, lines.shape[1]
    padded = np.zeros((len(lines), -(-taps // BLOCK) * BLOCK), np.float32)
    padded[:, :taps] = lines
    grouped = padded.reshape(len(lines), -1, BLOCK)
    largest = np.abs(grouped).max(-1)
    scales = np.where(largest > 0, largest / most, 1).astype(np.float32)
    numbers = (
        np.clip(np.rint(grouped / scales[..., None]), -most, most).astype(np.int8).reshape(len(lines), -1)[:, :taps]
    )
    return (numbers.T, scales.T) if axis else (numbers, scales)


def to_halves(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a prepared model whose floats are float16, except for inputs and outputs, by onnxruntime's converter."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    copied = deepcopy(model)
    declare_types(
        copied
    )  # the converter casts at operators without halves, as scikit-learn's are, where types are known
    with quiet():
        return sort_nodes(convert_float_to_float16(copied, keep_io_types=True, disable_shape_infer=True))
