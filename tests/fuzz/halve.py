"""Halve a float model as exporters do: onnxruntime's converter to float16, with casts at the edges of what stays float32."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from .draw import Illegal


def halve(
    model: onnx.ModelProto, inputs: Mapping[str, np.ndarray], random: np.random.Generator, left: float
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return `model` in float16, with its inputs; nodes stay float32 with probability `left`, and so may both ends.

    Raises Illegal for a model that the converter does not take.
    """
    from onnxruntime.transformers.float16 import convert_float_to_float16

    copied = onnx.ModelProto.FromString(model.SerializeToString())
    blocked = [node.name for node in copied.graph.node if random.random() < left]
    operators = sorted({node.op_type for node in copied.graph.node})
    listed = [name for name in operators if left and random.random() < left / 3]
    try:
        halved = convert_float_to_float16(
            copied, keep_io_types=bool(random.random() < 0.5), op_block_list=listed, node_block_list=blocked
        )
    except Exception as error:  # it is written for the models of its authors
        raise Illegal(f"float16: {error}"[:200]) from error
    half = {value.name for value in halved.graph.input if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16}
    return halved, {name: value.astype(np.float16) if name in half else value for name, value in inputs.items()}
