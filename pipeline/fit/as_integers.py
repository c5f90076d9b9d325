"""Estimate the memory of a float model with its layers quantised to int8: a quarter of its float32 bytes.

What kernels of integers need besides is not known, nor their code.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .verdict import Sizes

if TYPE_CHECKING:
    import onnx

#: bytes of an int8, relative to a float32
_QUARTER = 0.25
#: least share of float32 in the weights of a model to quantise
_MOSTLY = 0.5


@dataclass(frozen=True)
class FloatShares:
    """Shares of float32 in the bytes of a model's weights and of its activations."""

    weights: float
    activations: float

    @property
    def mostly(self) -> bool:
        """Return whether quantisation would change most of the model."""
        return self.weights > _MOSTLY


def float_shares(model: onnx.ModelProto) -> FloatShares:
    """Count the float32 bytes of a canonical model's initialisers and of its values."""
    values = [*model.graph.input, *model.graph.value_info, *model.graph.output]
    shapes = [
        (each.type.tensor_type.elem_type, [d.dim_value for d in each.type.tensor_type.shape.dim]) for each in values
    ]
    return FloatShares(_share((each.data_type, each.dims) for each in model.graph.initializer), _share(shapes))


def as_integers(sizes: Sizes, shares: FloatShares) -> Sizes:
    """Return the sizes with float32 weights and activations at a quarter of their bytes."""
    weights, activations = (1 - (1 - _QUARTER) * share for share in (shares.weights, shares.activations))
    return replace(
        sizes, near=True, arena=math.ceil(sizes.arena * activations), weights=math.ceil(sizes.weights * weights),
        weights_in_ram=math.ceil(sizes.weights_in_ram * weights),
    )  # fmt: skip


def _share(tensors: Iterable[tuple[int, Iterable[int]]]) -> float:
    """Return the share of float32 in the bytes of tensors, given by type and shape; 0 without any."""
    from onnx import TensorProto, helper

    floats = total = 0
    for kind, shape in tensors:
        nbytes = math.prod(shape) * helper.tensor_dtype_to_np_dtype(kind).itemsize
        total += nbytes
        floats += nbytes * (kind == TensorProto.FLOAT)
    return floats / total if total else 0.0
