"""Tell weights of bytes that are made floats by plain arithmetic: they are quantised too.

    int8 ─► Cast ─► [Sub zero point] ─► Mul scale        becomes        int8 ─► DequantizeLinear

The same numbers in the same order. As a Cast and a Mul they would be folded: four times the flash.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.node_builder import NodeBuilder, attributes_of, build_replacements, spliced
from .dataflow import Dataflow, dataflow_of
from .quantisation import EIGHT_BITS

if TYPE_CHECKING:
    import onnx


def dequantise_cast_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace such products of `model` (with inferred shapes); their former operands stay, for folding to remove."""
    graph = dataflow_of(model)

    def dequantise(node: onnx.NodeProto, build: NodeBuilder) -> None:
        for value, scale in permutations(node.input) if node.op_type == "Mul" else ():
            if _build(node, value, scale, graph, build):
                return

    return spliced(model, build_replacements(model.graph, graph.names, dequantise))


def _build(node: onnx.NodeProto, value: str, scale: str, graph: Dataflow, build: NodeBuilder) -> bool:
    """Build the dequantisation of `value` by `scale`, if it is one."""
    from onnx import TensorProto

    zero: np.ndarray | None = None
    less = graph.maker(value, "Sub")
    if less is not None:
        zero, value = graph.constant(less.input[1]), less.input[0]
    cast, steps = graph.maker(value, "Cast"), graph.constant(scale)
    if (
        cast is None
        or steps is None
        or (less is not None and zero is None)
        or attributes_of(cast)["to"] != TensorProto.FLOAT
    ):
        return False
    numbers = graph.constant(cast.input[0])
    if numbers is None or numbers.dtype.name not in EIGHT_BITS or not numbers.size or steps.dtype != np.float32:
        return False
    if not (np.isfinite(steps) & (steps > 0)).all():
        return False
    axis = _axis(steps.shape, numbers.shape)
    if axis is None or (zero is not None and _axis(zero.shape, numbers.shape) != axis):
        return False  # neither one number for all, nor one for each channel
    tables = [steps] if zero is None else [steps, zero.astype(numbers.dtype)]
    if zero is not None and (tables[1] != zero).any():
        return False
    constants = (build.constant(each.reshape(-1 if axis >= 0 else ())) for each in tables)
    build.node(
        "DequantizeLinear", cast.input[0], *constants, result=node.output[0], **({"axis": axis} if axis >= 0 else {})
    )
    return True


def _axis(given: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """Return the axis of `shape` along which numbers broadcast, -1 for a single number, None for another form."""
    if len(given) > len(shape):
        return None
    aligned = (*[1] * (len(shape) - len(given)), *given)
    along = [axis for axis, size in enumerate(aligned) if size != 1]
    if not along:
        return -1
    return along[0] if len(along) == 1 and aligned[along[0]] == shape[along[0]] else None
