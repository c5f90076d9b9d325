"""Refuse scales and zero points of quantised nodes that mean nothing, or do not fit; and sums beyond int32."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ModelError
from ..canonical.graph_context import Values
from ..canonical.node_builder import attributes_of
from ..canonical.read_onnx import all_nodes, node_title, refuse
from ..canonical.shapes import constant_tensors, value_types
from ..traits import INTEGER_LAYERS
from .integer_sums import refuse_large_sum

if TYPE_CHECKING:
    import onnx

_AGAIN = "Quantise the model again."


@dataclass(frozen=True)
class _Operand:
    """Places of a quantised tensor, its scale and zero point; `axis` is that of channels, None if it has none."""

    tensor: str
    scale: str = ""
    zero: str = ""
    axis: int | None = None
    block: int = 0


def refuse_wrong_quantisation(model: onnx.ModelProto) -> None:
    """Refuse the first wrong scale, zero point, axis or sum, by constants and types: raise ModelError."""
    graph = Values(value_types(model.graph), constant_tensors(model.graph, inside=True))
    for node in all_nodes(model.graph):
        if node.domain not in ("", "ai.onnx"):
            continue
        for operand in _operands(node):
            _check_scale(node, operand, graph)
            _check_zero(node, operand, graph)
            _check_sizes(node, operand, graph)
        refuse_large_sum(node, graph)


def _operands(node: onnx.NodeProto) -> Iterator[_Operand]:
    given = [*node.input, *[""] * (9 - len(node.input))]
    if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
        attributes = attributes_of(node)
        yield _Operand(given[0], given[1], given[2], attributes.get("axis", 1), attributes.get("block_size", 0))
    elif node.op_type in INTEGER_LAYERS:
        axes = (None, 0) if "Conv" in node.op_type else (-2, -1)
        for (tensor, scale, zero), axis in zip(INTEGER_LAYERS[node.op_type], axes):
            yield _Operand(given[tensor], "" if scale is None else given[scale], given[zero], axis)
        if node.op_type.startswith("QLinear"):
            yield _Operand(node.output[0], *given[6:8])


def _check_scale(node: onnx.NodeProto, operand: _Operand, graph: Values) -> None:
    scale = graph.constant(operand.scale)
    if scale is None:
        return
    wide = scale.astype(np.float64).ravel()
    # blocks of weights are only read: ONNX Runtime's quantiser gives them negative scales, and 0 where all are 0
    of_weights = node.op_type == "DequantizeLinear" and operand.block > 0
    wrong = np.flatnonzero(~(np.isfinite(wide) & ((wide > 0) | of_weights)))
    if wrong.size:
        place = f"[{wrong[0]}]" if wide.size > 1 else ""
        raise ModelError(
            f"The scale '{operand.scale}'{place} of the {node_title(node)} is {wide[wrong[0]]:g}; a scale is a finite number "
            "above 0.",
            _AGAIN,
        )


def _check_zero(node: onnx.NodeProto, operand: _Operand, graph: Values) -> None:
    from onnx import TensorProto

    if not operand.zero:
        return
    own, of_tensor = graph.element(operand.zero), graph.element(operand.tensor)
    if node.op_type == "QuantizeLinear":
        of_tensor = 0  # its operand is float, its result takes the zero point's dtype
    if own and of_tensor and own != of_tensor:
        words = [TensorProto.DataType.Name(each).lower() for each in (own, of_tensor)]
        raise ModelError(
            f"The zero point '{operand.zero}' of the {node_title(node)} is {words[0]}, its tensor '{operand.tensor}' is "
            f"{words[1]}.",
            "Give the zero point the dtype of its tensor.",
        )
    value = graph.constant(operand.zero)
    if own == TensorProto.INT32 and value is not None and value.any():
        raise ModelError(
            f"The zero point '{operand.zero}' of the {node_title(node)} is {value.ravel()[np.flatnonzero(value)[0]]}; of an int32 "
            "tensor it is 0.",
            _AGAIN,
        )


def _check_sizes(node: onnx.NodeProto, operand: _Operand, graph: Values) -> None:
    """Check that scale and zero point have one number, or one for each channel or block."""
    of_scale, of_zero, shape = (graph.shape(name) for name in (operand.scale, operand.zero, operand.tensor))
    if of_scale is not None and of_zero is not None and math.prod(of_scale) != math.prod(of_zero):
        what = f"has {math.prod(of_scale)} scales ('{operand.scale}') and {math.prod(of_zero)} zero points ('{operand.zero}')"
        refuse(node, what, "Give one zero point for each scale.")
    for name, of_name in ((operand.scale, of_scale), (operand.zero, of_zero)):
        if of_name is None or math.prod(of_name) == 1 or shape is None:
            continue
        axis, rank = operand.axis, len(shape)
        expected: tuple[int, ...] | None = None
        if axis is not None and -rank <= axis < rank:
            blocks = math.ceil(shape[axis] / operand.block) if operand.block else shape[axis]
            expected = (*shape[:axis], blocks, *shape[axis % rank + 1 :]) if operand.block else (blocks,)
        fits = of_name == expected or (
            expected is not None and not operand.block and _one_per_row(node, of_name, shape, axis)
        )
        if not fits:
            along = f"dimension {axis}" if axis is not None else "the whole"
            raise ModelError(
                f"'{name}' of the {node_title(node)} has shape {list(of_name)}, which does not fit {along} of '{operand.tensor}', "
                f"shape {list(shape)}.",
                "Give one number for each channel, and the axis of the channels.",
            )


def _one_per_row(node: onnx.NodeProto, found: tuple[int, ...], shape: tuple[int, ...], axis: int | None) -> bool:
    """Return whether a product's numbers have the tensor's rank, with 1 along the axis it sums."""
    if "MatMul" not in node.op_type or axis is None:
        return False
    summed = -1 if axis == -2 else -2
    place = summed % len(shape)
    return found == (*shape[:place], 1, *shape[place + 1 :])
