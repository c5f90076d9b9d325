"""Find scale and zero point of a model's quantised inputs and outputs: those of the operators that read or write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..canonical.integer_ports import MOVES
from ..canonical.shapes import constant_tensors

if TYPE_CHECKING:
    import onnx

_TWO_OPERANDS = ("QGemm", "QLinearAdd", "QLinearMatMul", "QLinearMul")
_ONE_OPERAND = (
    "QLinearAveragePool",
    "QLinearGlobalAveragePool",
    "QLinearLeakyRelu",
    "QLinearSigmoid",
    "QLinearSoftmax",
)
#: places of scale and zero point among an operator's inputs: of a value that it reads, by the value's place
_READS = {
    **{name: {0: (1, 2)} for name in ("DequantizeLinear", "QLinearConv", *_ONE_OPERAND)},
    **{name: {0: (1, 2), 3: (4, 5)} for name in _TWO_OPERANDS},
}
#: and of its result. Source: ONNX, Operators; ONNX Runtime, ContribOperators.md
_WRITES = {
    "QuantizeLinear": (1, 2), "QLinearConv": (6, 7),
    **dict.fromkeys(_ONE_OPERAND, (3, 4)), **dict.fromkeys(_TWO_OPERANDS, (6, 7)), "QGemm": (7, 8),
}  # fmt: skip


def port_scales(model: onnx.ModelProto) -> dict[str, tuple[float, int]]:
    """Return scale and zero point of each input and output that has a single pair."""
    import numpy as np
    from onnx import TensorProto, numpy_helper

    found = constant_tensors(model.graph)
    constants = {name: each for name, each in found.items() if each.data_location != TensorProto.EXTERNAL}

    def scale(node: onnx.NodeProto, places: tuple[int, int]) -> tuple[float, int] | None:
        names = [node.input[place] if place < len(node.input) else "" for place in places]
        if names[0] not in constants or (names[1] and names[1] not in constants):
            return None
        values = [numpy_helper.to_array(constants[name]) if name else np.zeros((), np.uint8) for name in names]
        if any(value.size != 1 or not np.isfinite(value.astype(np.float64)).all() for value in values):
            return None
        return float(values[0].item()), int(values[1].item())

    def read(name: str) -> Iterator[tuple[float, int] | None]:
        for node in model.graph.node:
            if node.op_type in MOVES and node.input[0] == name:
                yield from read(node.output[0])
            for place, places in _READS.get(node.op_type, {}).items():
                if place < len(node.input) and node.input[place] == name:
                    yield scale(node, places)

    def writers(name: str) -> Iterator[tuple[float, int] | None]:
        node = next((each for each in model.graph.node if name in each.output), None)
        if node is not None and node.op_type in MOVES:
            yield from writers(node.input[0])
        elif node is not None and node.op_type in _WRITES:
            yield scale(node, _WRITES[node.op_type])

    ports = {value.name: set(read(value.name)) for value in model.graph.input}
    ports |= {value.name: set(writers(value.name)) for value in model.graph.output}
    return {name: found for name, scales in ports.items() if len(scales) == 1 for found in scales if found is not None}
