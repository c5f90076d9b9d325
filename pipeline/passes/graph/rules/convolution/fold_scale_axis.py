"""`fold-scale-axis`: take scales and shifts per channel into the weights of convolutions and dense layers.

    (W * x) · s            =  (s · W) * x                 backward, to the weight that made the value
    (W * x + b) · s        =  (s · W) * x + s · b
    W * (x · s)            =  (W · s) * x                 forward, to every weight that reads the value
    W * (x · s + b)        =  (W · s) * (x + b / s)
    W * (x + b)            =  W * x + Σ W · b             without padding

Legal for constant weights of a float dtype that no other call reads, in every layout, rank, stride, dilation and
number of groups, transposed or not; a scale passes padding, which is 0. Between scale and weight may lie sums with
constants or, backward, of values that all take the scale. Each value has one reader, or forward only readers that take the
scale. A shift passes no padding. The factor is rounded to the weight's dtype and so is the product.

Each replacement drops a product, or moves a sum behind a layer where it joins the bias or meets no more elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Expr, Var

    from ..dataflow import Dataflow


class FoldScaleAxis(Rule):
    """Fold scales and shifts into the weights before or behind them."""

    name = "fold-scale-axis"
    summary = "fold scales and shifts per channel into the weights of convolutions and dense layers"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        from .channels import STEPS, affine_step
        from .move_scale import move_scale
        from .move_shift import move_shift

        found: dict[Var, Expr] = {}
        for var, call in graph.calls(*STEPS):
            step = affine_step(call, graph)
            if step is None or var in found:
                continue
            operand, affine = step
            if affine.scale is None and affine.shift is not None:
                edits = move_shift(var, operand, affine.shift, graph)
            elif affine.scale is not None and affine.shift is None:
                edits = move_scale(var, operand, affine.scale, graph)
            else:
                edits = None
            # one edit of a value at a time: the next sweep finds the others
            if edits and not edits.keys() & found.keys():
                found.update(edits)
        return found
