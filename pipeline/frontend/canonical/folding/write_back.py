"""Write an onnx_ir model back into the ModelProto it was read from: large constants stay where they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..shapes import write_around_weights

if TYPE_CHECKING:
    import onnx
    import onnx_ir

#: elements of a constant from which on it is kept instead of copied
_LARGE = 4096


def write_back(model: onnx.ModelProto, graph_model: onnx_ir.Model) -> onnx.ModelProto:
    """Write `graph_model`, which was read from `model`, in place; return `model`.

    A new model is returned if a large constant is gone: a message does not free what is deleted in it.
    """
    import onnx_ir as ir

    left = {id(tensor): tensor for tensor in model.graph.initializer}
    kept: dict[str | None, onnx.TensorProto] = {}
    for value in graph_model.graph.initializers.values():
        constant = value.const_value
        if isinstance(constant, ir.serde.TensorProtoTensor) and constant.size >= _LARGE and id(constant.raw) in left:
            kept[value.name] = left.pop(id(constant.raw))
            value.const_value = ir.StringTensor([], shape=ir.Shape([0]), name=value.name)  # its place
    written = ir.serde.serialize_model(graph_model)
    for name, tensor in kept.items():
        tensor.name = name or ""
    if any(math.prod(tensor.dims) >= _LARGE for tensor in left.values()):
        for tensor in written.graph.initializer:
            if tensor.name in kept:
                tensor.CopyFrom(kept[tensor.name])
        return written
    initializers = model.graph.initializer
    places = {tensor.name: place for place, tensor in enumerate(written.graph.initializer)}
    for place in reversed(range(len(initializers))):
        if id(initializers[place]) in left:
            del initializers[place]
    initializers.extend(tensor for tensor in written.graph.initializer if tensor.name not in kept)
    initializers.sort(key=lambda tensor: places[tensor.name])
    return write_around_weights(model, written)
