"""Round each quantised number of a file up or down at random: how far right libraries may lie from it.

    x ─► QuantizeLinear ─► y      becomes      x ─► QuantizeLinear ─► + {−1, 0, 1} ─► y

The file computes its layers in floats between integers, the library in integers: a number may come out one unit apart at
every layer, and later layers carry it on. Noise of that size bounds the distance (as in Monte Carlo arithmetic, Parker,
UCLA CSD-970002, 1997); a wrong layer is off by the size of the signal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...frontend.canonical.node_builder import NodeBuilder, splice, stem_of

if TYPE_CHECKING:
    import onnx

#: operators whose first result is rounded to integers; all of vendors' QLinear* too
_ROUNDS = frozenset({"DynamicQuantizeLinear", "QGemm", "QuantizeLinear"})
#: operators that round their float operand inside
_ROUNDS_INSIDE = frozenset({"DynamicQuantizeLSTM", "DynamicQuantizeMatMul"})
_LIMITS = {np.dtype("int8"): (-128, 127), np.dtype("uint8"): (0, 255)}
#: as a fraction of the largest operand: a unit of 8 bits with a sign
_UNIT = 1 / 127


def round_at_random(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """Add seeded noise of a unit to every number that a model rounds to 8 bits.

    The noise comes from ONNX's own operators, so that no shape needs to be known; of a subgraph, none is moved.
    """
    from onnx import inliner

    result = type(model)()
    result.CopyFrom(inliner.inline_local_functions(model) if model.functions else model)
    constants = {tensor.name: tensor for tensor in result.graph.initializer}
    made = {}
    for index, node in enumerate(result.graph.node):
        build = NodeBuilder(f"{stem_of(node, index)}/rounding")
        if node.op_type in _ROUNDS_INSIDE:
            _move_operand(node, build, seed + index)
        elif (node.op_type in _ROUNDS or node.op_type.startswith("QLinear")) and node.output[0]:
            _move_result(node, build, seed + index, _dtype(node, constants))
        if build.nodes:
            made[index] = build
    splice(result.graph, made)
    return result


def _dtype(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> np.dtype | None:
    """Return the dtype of the node's result, None if the file omits it."""
    from onnx import helper

    if node.op_type == "DynamicQuantizeLinear":
        return np.dtype("uint8")
    zero = constants.get(node.input[-1])
    if node.op_type == "QuantizeLinear" and len(node.input) < 3:
        named = next((each.i for each in node.attribute if each.name == "output_dtype"), 0)
        return np.dtype(helper.tensor_dtype_to_np_dtype(named)) if named else np.dtype("uint8")
    return np.dtype(helper.tensor_dtype_to_np_dtype(zero.data_type)) if zero is not None else None


def _move_result(node: onnx.NodeProto, build: NodeBuilder, seed: int, dtype: np.dtype | None) -> None:
    """Add −1, 0 or 1 to an 8-bit result."""
    from onnx import TensorProto, helper

    if dtype not in _LIMITS:
        return
    least, most = _LIMITS[dtype]
    plain = f"{build.stem}/rounded"
    build.copy(node).output[0] = plain
    value = build.node("Cast", plain, to=TensorProto.FLOAT)
    noise = build.node("RandomUniformLike", value, low=-2.0, high=2.0, seed=float(seed))
    step = build.node("Cast", build.node("Cast", noise, to=TensorProto.INT32), to=TensorProto.FLOAT)  # towards zero
    moved = build.node("Max", build.node("Add", value, step), build.constant(np.float32(least)))
    moved = build.node("Min", moved, build.constant(np.float32(most)))
    build.node("Cast", moved, result=node.output[0], to=helper.np_dtype_to_tensor_dtype(dtype))


def _move_operand(node: onnx.NodeProto, build: NodeBuilder, seed: int) -> None:
    """Move the float operand of a node by up to a unit of 8 bits."""
    most = build.node("ReduceMax", build.node("Abs", node.input[0]), keepdims=0)
    noise = build.node("RandomUniformLike", node.input[0], low=-_UNIT, high=_UNIT, seed=float(seed))
    value = build.node("Add", node.input[0], build.node("Mul", noise, most))
    build.copy(node).input[0] = value
