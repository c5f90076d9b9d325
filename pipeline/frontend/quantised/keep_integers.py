"""Keep the quantised parts of a model in integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..canonical.folding.fold_constants import refold
from ..refuse.wrong_quantisation import refuse_wrong_quantisation
from .cast_weights import dequantise_cast_weights
from .drop_channels import drop_constant_channels
from .equal_quantisations import merge_equal_quantisations
from .integer_layers import integer_layers
from .integer_moves import move_integers

if TYPE_CHECKING:
    import onnx


def keep_integers(model: onnx.ModelProto) -> onnx.ModelProto:
    """Compute layers between quantised tensors in integers, without constant channels; `model` has inferred shapes.

    Operators that move elements come first: they stand between the layers. Raises ModelError for scales, zero points
    and sums that no implementation computes alike.
    """
    model = refold(dequantise_cast_weights(model), model)
    refuse_wrong_quantisation(model)
    for change in (merge_equal_quantisations, move_integers, integer_layers, drop_constant_channels):
        model = refold(change(model), model)
    return model
