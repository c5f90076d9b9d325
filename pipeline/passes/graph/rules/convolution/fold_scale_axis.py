"""`fold-scale-axis`: take scales per channel into the weights of convolutions and dense layers.

    (W * x) · s            =  (s · W) * x                 backward, to the weight that made the value
    (W * x + b) · s        =  (s · W) * x + s · b
    W * (x · s)            =  (W · s) * x                 forward, to every weight that reads the value
    W * (x · s + b)        =  (W · s) * (x + b / s)

Legal for constant weights of a float dtype that no other call reads, in every layout, rank, stride, dilation and
number of groups, transposed or not; a scale passes padding, which is 0. Between scale and weight may lie sums with
constants or, backward, of values that all take the scale. Each value has one reader, or forward only readers that take the
scale. The factor is rounded to the weight's dtype and so is the product.

Each replacement drops a product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Expr, Var

    from ..dataflow import Dataflow


class FoldScaleAxis(Rule):
    """Fold scales into the weights before or behind them."""

    name = "fold-scale-axis"
    summary = "fold scales per channel into the weights of convolutions and dense layers"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        from .channels import STEPS, affine_step
        from .move_scale import move_scale

        found: dict[Var, Expr] = {}
        for var, call in graph.calls(*STEPS):
            step = affine_step(call, graph)
            if step is None or var in found or step[1].scale is None or step[1].shift is not None:
                continue
            edits = move_scale(var, step[0], step[1].scale, graph)
            # one edit of a value at a time: the next sweep finds the others
            if edits and not edits.keys() & found.keys():
                found.update(edits)
        return found
