"""`combine-parallel-conv2d`: compute convolutions of one input and geometry as one, then divide its channels.

    W₁ * x, W₂ * x  =  split((W₁ beside W₂) * x)

Legal for convolutions of one, two or three dimensions with one group and equal strides, padding, dilation and layouts,
kernels of one size, constant weights of one float dtype that no other call reads. Biases, scales and activations behind
that all branches share move before the division. One kernel reads the input once and fills its tiles better, but the
branches live at once and the division may copy: an action of a search, not part of `simplify`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Expr, Var

    from ..dataflow import Dataflow


class CombineParallelConv2D(Rule):
    """Merge convolutions that read one value in one way."""

    name = "combine-parallel-conv2d"
    summary = "compute convolutions of one input and one geometry as one, then divide its channels"
    clean = False

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        from ..convolution.geometry import CONVOLUTIONS
        from .parallel import combine_parallel

        return combine_parallel(graph, *CONVOLUTIONS)
