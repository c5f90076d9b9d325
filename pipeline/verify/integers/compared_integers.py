"""Find the range in which an integer input decides comparisons: a length of 0 or 1 masks a whole sequence.

    lengths ─► Div 160 ─► Less(0 … 100)        lengths of up to 16,160 make all positions count
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx

#: ONNX's numbers of uint8 and int8
_BYTES = (2, 3)
_COMPARISONS = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")
#: operators that copy values, so that integers are tracked through them
PASS_THROUGH = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand", "Slice")
#: largest value drawn: sums of such integers stay exact in float32
_MOST = 1 << 20


def compared_sizes(model: onnx.ModelProto) -> dict[str, int]:
    """Map each integer input to 1 + the largest value at which a comparison with a constant turns.

    Leaves out bytes, which are drawn over their whole range. Follows constants through sums, products and quotients of
    the input with other constants.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    found: dict[str, float] = {}
    for node in reversed(model.graph.node):  # from consumers to producers: nodes are sorted
        inputs = list(node.input)
        if node.op_type in _COMPARISONS:
            for one, other in (inputs, inputs[::-1]):
                value = _value(constants.get(other))
                if value is not None and value.size and value.dtype.kind in "iuf":
                    _raise(found, one, float(np.nanmax(value.astype(np.float64))) + 1)
        elif node.output[0] in found and node.op_type in PASS_THROUGH:
            _raise(found, inputs[0], found[node.output[0]])
        elif node.output[0] in found and node.op_type in ("Add", "Sub", "Mul", "Div"):
            _follow(found, node.op_type, inputs, found[node.output[0]], constants)
    names = {value.name for value in model.graph.input if value.type.tensor_type.elem_type not in _BYTES}
    return {name: int(min(size, _MOST)) + 1 for name, size in found.items() if name in names and size >= 1}


def _follow(
    found: dict[str, float], kind: str, inputs: Sequence[str], reached: float, constants: dict[str, onnx.TensorProto]
) -> None:
    for number, name in enumerate(inputs):
        other = _value(constants.get(inputs[1 - number]))
        if other is None or other.size != 1:
            continue
        value = float(other.reshape(-1)[0])
        if kind == "Add":
            _raise(found, name, reached - value)
        elif kind == "Sub":
            _raise(found, name, reached + value if number == 0 else value)
        elif kind == "Mul" and value > 0:
            _raise(found, name, reached / value)
        elif kind == "Div" and number == 0 and value > 0:
            _raise(found, name, reached * value)


def _value(tensor: onnx.TensorProto | None) -> np.ndarray | None:
    """Return the value of a constant, None for none or a large one."""
    from onnx import numpy_helper

    return None if tensor is None or int(np.prod(tensor.dims)) >= _MOST else numpy_helper.to_array(tensor)


def _raise(found: dict[str, float], name: str, size: float) -> None:
    if np.isfinite(size):
        found[name] = max(size, found.get(name, size))
