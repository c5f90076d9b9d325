"""Keep the quantised parts of a model in integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..canonical.folding.fold_constants import fold
from ..canonical.shapes import infer_shapes
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
    told = dequantise_cast_weights(model)
    model = infer_shapes(told) if told is not model else model
    refuse_wrong_quantisation(model)
    if any(node.op_type == "DequantizeLinear" for node in model.graph.node):
        model = fold(move_integers(merge_equal_quantisations(model)))
        model = infer_shapes(fold(integer_layers(infer_shapes(model))))
    found = drop_constant_channels(model)
    return fold(found) if found is not model else model
