"""Refuse scales, zero points and sums of quantised nodes that mean nothing, or do not fit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ModelError
from ..canonical.node_builder import attributes_of
from ..canonical.read_onnx import all_nodes, node_title
from ..canonical.shapes import static_shape, value_types

if TYPE_CHECKING:
    import onnx

_AGAIN = "Quantise the model again."
#: sums of integer layers are int32
_SUM_LIMIT = 1 << 31


@dataclass(frozen=True)
class _Operand:
    """Places of a quantised tensor, its scale and zero point; `axis` is that of channels, None if it has none."""

    tensor: str
    scale: str = ""
    zero: str = ""
    axis: int | None = None
    block: int = 0


@dataclass(frozen=True)
class _Graph:
    constants: dict[str, onnx.TensorProto]
    types: dict[str, onnx.TypeProto]

    def value(self, name: str) -> np.ndarray | None:
        from onnx import numpy_helper

        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def dtype(self, name: str) -> int:
        return int(self.types[name].tensor_type.elem_type) if name in self.types else 0

    def shape(self, name: str) -> tuple[int, ...] | None:
        return static_shape(self.types[name]) if name in self.types else None


def refuse_wrong_quantisation(model: onnx.ModelProto) -> None:
    """Refuse the first scale, zero point, axis or sum that is wrong as far as constants and types tell: raise ModelError."""
    from onnx import helper

    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    types = value_types(model.graph)
    for node in all_nodes(model.graph):
        if node.op_type == "Constant":
            tensors = [each.t for each in node.attribute if each.name == "value"]
            constants |= {node.output[0]: tensor for tensor in tensors}
            types |= {node.output[0]: helper.make_tensor_type_proto(each.data_type, list(each.dims)) for each in tensors}
    graph = _Graph(constants, types)
    for node in all_nodes(model.graph):
        if node.domain not in ("", "ai.onnx"):
            continue
        for operand in _operands(node, graph):
            _check_scale(node, operand, graph)
            _check_zero(node, operand, graph)
            _check_sizes(node, operand, graph)
        _check_sum(node, graph)


def _operands(node: onnx.NodeProto, graph: _Graph) -> Iterator[_Operand]:
    given = [*node.input, *[""] * (9 - len(node.input))]
    if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
        attributes = attributes_of(node)
        tensor = given[0] if node.op_type == "DequantizeLinear" else node.output[0]
        shaped = given[0] if graph.shape(given[0]) is not None else tensor
        yield _Operand(tensor, given[1], given[2], attributes.get("axis", 1), attributes.get("block_size", 0))
        if shaped != tensor:
            yield _Operand(shaped, given[1], "", attributes.get("axis", 1), attributes.get("block_size", 0))
    elif node.op_type in ("QLinearConv", "QLinearMatMul"):
        yield _Operand(*given[:3], axis=None if node.op_type == "QLinearConv" else -2)
        yield _Operand(*given[3:6], axis=0 if node.op_type == "QLinearConv" else -1)
        yield _Operand(node.output[0], *given[6:8])
    elif node.op_type in ("ConvInteger", "MatMulInteger"):
        yield _Operand(given[0], "", given[2], None if node.op_type == "ConvInteger" else -2)
        yield _Operand(given[1], "", given[3], 0 if node.op_type == "ConvInteger" else -1)


def _check_scale(node: onnx.NodeProto, operand: _Operand, graph: _Graph) -> None:
    scale = graph.value(operand.scale)
    if scale is None:
        return
    wide = scale.astype(np.float64).ravel()
    wrong = np.flatnonzero(~(np.isfinite(wide) & (wide > 0)))
    if wrong.size:
        place = f"[{wrong[0]}]" if wide.size > 1 else ""
        raise ModelError(
            f"The scale '{operand.scale}'{place} of the {node_title(node)} is {wide[wrong[0]]:g}; a scale is a finite number "
            "above 0.",
            _AGAIN,
        )


def _check_zero(node: onnx.NodeProto, operand: _Operand, graph: _Graph) -> None:
    from onnx import TensorProto

    if not operand.zero:
        return
    own, of_tensor = graph.dtype(operand.zero), graph.dtype(operand.tensor)
    if own and of_tensor and own != of_tensor:
        words = [TensorProto.DataType.Name(each).lower() for each in (own, of_tensor)]
        raise ModelError(
            f"The zero point '{operand.zero}' of the {node_title(node)} is {words[0]}, its tensor '{operand.tensor}' is "
            f"{words[1]}.",
            "Give the zero point the dtype of its tensor.",
        )
    tensor = graph.constants.get(operand.zero)
    limits = _LIMITS.get(TensorProto.DataType.Name(own)) if own else None
    if tensor is None:
        return
    outside = [each for each in tensor.int32_data if limits and not limits[0] <= each <= limits[1]]
    if outside and limits:
        raise ModelError(
            f"The zero point '{operand.zero}' of the {node_title(node)} is {outside[0]}, outside of {limits[0]} to {limits[1]}.",
            _AGAIN,
        )
    value = graph.value(operand.zero)
    if own == TensorProto.INT32 and value is not None and value.any():
        raise ModelError(
            f"The zero point '{operand.zero}' of the {node_title(node)} is {value.ravel()[np.flatnonzero(value)[0]]}; of an int32 "
            "tensor it is 0.",
            _AGAIN,
        )


def _check_sizes(node: onnx.NodeProto, operand: _Operand, graph: _Graph) -> None:
    """Check that scale and zero point have one number, or one for each channel or block."""
    of_scale, of_zero, shape = (graph.shape(name) for name in (operand.scale, operand.zero, operand.tensor))
    if of_scale is not None and of_zero is not None and math.prod(of_scale) != math.prod(of_zero):
        raise ModelError(
            f"The {node_title(node)} has {math.prod(of_scale)} scales ('{operand.scale}') and {math.prod(of_zero)} zero points "
            f"('{operand.zero}').",
            "Give one zero point for each scale.",
        )
    for name, of_name in ((operand.scale, of_scale), (operand.zero, of_zero)):
        if of_name is None or math.prod(of_name) == 1 or shape is None:
            continue
        axis, rank = operand.axis, len(shape)
        expected: tuple[int, ...] | None = None
        if axis is not None and -rank <= axis < rank:
            blocks = math.ceil(shape[axis] / operand.block) if operand.block else shape[axis]
            expected = (*shape[:axis], blocks, *shape[axis % rank + 1 :]) if operand.block else (blocks,)
        fits = of_name == expected or (expected is not None and not operand.block and _one_per_row(node, of_name, shape, axis))
        if not fits:
            along = f"dimension {axis}" if axis is not None else "the whole"
            raise ModelError(
                f"'{name}' of the {node_title(node)} has shape {list(of_name)}, which does not fit {along} of '{operand.tensor}', "
                f"shape {list(shape)}.",
                "Give one number for each channel, and the axis of the channels.",
            )


def _one_per_row(node: onnx.NodeProto, found: tuple[int, ...], shape: tuple[int, ...], axis: int | None) -> bool:
    """Tell whether a product's numbers have the tensor's rank, with 1 along the axis it sums."""
    if "MatMul" not in node.op_type or axis is None:
        return False
    summed = -1 if axis == -2 else -2
    place = summed % len(shape)
    return found == (*shape[:place], 1, *shape[place + 1 :])


def _check_sum(node: onnx.NodeProto, graph: _Graph) -> None:
    """Check that no sum of an integer layer leaves int32."""
    given = [*node.input, *[""] * (9 - len(node.input))]
    if node.op_type in ("QLinearConv", "QLinearMatMul"):
        x, x_zero, w, w_zero, bias = given[0], given[2], given[3], given[5], given[8]
    elif node.op_type in ("ConvInteger", "MatMulInteger"):
        x, w, x_zero, w_zero, bias = *given[:4], ""
    else:
        return
    shape = graph.shape(w)
    if shape is None or len(shape) < 2 or 0 in shape:
        return
    axis = 0 if "Conv" in node.op_type else len(shape) - 1
    length = math.prod(shape[1:]) if axis == 0 else shape[-2]
    reach = _reach(graph, x, x_zero)
    weights = graph.value(w)
    if weights is None:
        sums = np.asarray([length * reach * _reach(graph, w, w_zero)])
    else:
        zeros = graph.value(w_zero)
        offset = np.zeros(1, np.int64) if zeros is None else zeros.astype(np.int64).ravel()
        rows = np.moveaxis(weights.astype(np.int64), axis, -1)
        if offset.size not in (1, rows.shape[-1]):
            return
        magnitude = np.abs(rows - offset)
        sums = magnitude.sum(axis=tuple(range(rows.ndim - 1)) if axis == 0 else rows.ndim - 2) * reach
    biases = graph.value(bias)
    if biases is not None and axis == 0 and biases.size in (1, sums.size):
        sums = sums + np.abs(biases.astype(np.int64)).ravel()
    most = int(sums.max(initial=0))
    if most >= _SUM_LIMIT:
        raise ModelError(
            f"The {node_title(node)} may sum up to {most}, and its sums are int32: {_SUM_LIMIT - 1} is the most.",
            "Split the layer along its channels, or leave it in float32.",
        )


def _reach(graph: _Graph, name: str, zero: str) -> int:
    """Return the largest magnitude of a number less its zero point."""
    from onnx import TensorProto

    least, most = _LIMITS.get(TensorProto.DataType.Name(graph.dtype(name)), (-128, 255))
    value = graph.value(zero) if zero else np.zeros(1, np.int64)
    if value is None:
        return most - least
    numbers = value.astype(np.int64).ravel().tolist() or [0]
    return max(max(abs(least - each), abs(most - each)) for each in numbers)


_LIMITS = {
    "INT4": (-8, 7), "UINT4": (0, 15), "INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-(1 << 15), (1 << 15) - 1),
    "UINT16": (0, (1 << 16) - 1),
}  # fmt: skip
