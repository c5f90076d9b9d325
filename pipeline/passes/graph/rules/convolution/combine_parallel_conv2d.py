"""`combine-parallel-conv2d`: compute convolutions of one input and geometry as one, then divide its channels.

    W₁ * x, W₂ * x  =  split((W₁ beside W₂) * x)

Legal for convolutions of one, two or three dimensions with one group and equal strides, padding, dilation and layouts,
kernels of one size, constant weights of one float dtype that no other call reads. One kernel reads the input once and fills
its tiles better, but the branches live at once and the division may copy: an action of a search, not part of `simplify`.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow


class CombineParallelConv2D(Rule):
    """Merge convolutions that read one value in one way."""

    name = "combine-parallel-conv2d"
    summary = "compute convolutions of one input and one geometry as one, then divide its channels"
    clean = False

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        from tvm import relax

        from .constants import ungrouped_convolutions
        from .geometry import CONVOLUTIONS, Geometry

        groups: dict[tuple[Var, Geometry, tuple[int, ...]], list[tuple[Var, Call]]] = {}
        for var, call, geometry in ungrouped_convolutions(graph, *CONVOLUTIONS):
            data, weight = call.args
            if isinstance(data, relax.Var):
                sizes = list(graph.static_shape(weight))
                del sizes[geometry.kernel_layout.index("O")]
                groups.setdefault((graph.variable(data), geometry, tuple(sizes)), []).append((var, call))
        found: dict[Var, Expr] = {}
        for (data, geometry, _), branches in groups.items():
            if len(branches) > 1:
                outer = geometry.kernel_layout.index("O")
                weights = [array for _, call in branches if (array := graph.constant(call.args[1])) is not None]
                combined = geometry.call(data, graph.const(np.concatenate(weights, outer)))
                bounds = list(accumulate(weight.shape[outer] for weight in weights))[:-1]
                parts = relax.op.split(combined, bounds, geometry.channel_axis)
                found |= {var: relax.TupleGetItem(parts, number) for number, (var, _) in enumerate(branches)}
        return found
