"""Describe the inputs of a model for its samples: dtype, static shape, scale and zero point of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data.samples import InputForm
from ..errors import ModelError
from .canonical.clean_names import free_inputs
from .quantised.port_scales import port_facts

if TYPE_CHECKING:
    import onnx


def input_forms(model: onnx.ModelProto) -> list[InputForm]:
    """Return the forms of a model's inputs. Raises ModelError for an open shape, and a dtype that samples cannot have."""
    inputs = free_inputs(model)
    facts = port_facts(model)
    scales = {name: (each["scale"], each["zero_point"]) for name, each in facts.items() if "scale" in each}
    return [InputForm(each.name, input_dtype(each), input_shape(each), scales.get(each.name)) for each in inputs]


def input_shape(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    """Return the shape of an input. Raises ModelError if a size of it is open."""
    tensor = value.type.tensor_type
    if any(not dim.HasField("dim_value") for dim in tensor.shape.dim):
        raise ModelError(f"Input '{value.name}' has no static shape.", "Give one with --shape.")
    return tuple(dim.dim_value for dim in tensor.shape.dim)


def input_dtype(value: onnx.ValueInfoProto) -> np.dtype:
    """Return the dtype of an input. Raises ModelError if it is not a tensor of real numbers."""
    import onnx

    if not value.type.HasField("tensor_type") or not value.type.tensor_type.elem_type:
        raise ModelError(f"Input '{value.name}' is not a tensor.", "Export the model with tensors only.")
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
    if dtype.kind not in "biuf" and dtype.name not in ("bfloat16", "int4", "uint4"):
        raise ModelError(
            f"Input '{value.name}' is of type {dtype}, for which no test values can be made.", "Cast it to a number."
        )
    return dtype
