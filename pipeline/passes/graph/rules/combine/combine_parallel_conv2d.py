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

    from ..convolution.geometry import Geometry
    from ..dataflow import Dataflow


class CombineParallelConv2D(Rule):
    """Merge convolutions that read one value in one way."""

    name = "combine-parallel-conv2d"
    summary = "compute convolutions of one input and one geometry as one, then divide its channels"
    clean = False

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        import numpy as np
        from tvm import relax

        from ..convolution.constants import ConstantReaders, constant_value, is_constant
        from ..convolution.geometry import CONVOLUTIONS, Geometry
        from .parallel import divide

        readers = ConstantReaders(graph)
        groups: dict[tuple[Expr, Geometry, tuple[int, ...], str], list[Var]] = {}
        for var, call in graph.calls(*CONVOLUTIONS):
            geometry, (data, weight) = Geometry.of(call), call.args
            if geometry is None or geometry.groups > 1 or not isinstance(data, relax.Var):
                continue
            if is_constant(weight, graph) and readers.owned(weight):
                sizes = tuple(graph.static_shape(weight)[axis] for axis in geometry.kernel_axes())
                groups.setdefault((graph.variable(data), geometry, sizes, graph.dtype(weight)), []).append(var)
        found: dict[Var, Expr] = {}
        for (data, geometry, _, dtype), branches in groups.items():
            if len(branches) > 1:
                weights = [constant_value(graph.value(branch).args[1], graph) for branch in branches]
                weight = relax.const(np.concatenate(weights, geometry.kernel_layout.index("O")), dtype)
                found |= divide(geometry.call(data, weight), branches, geometry.channel_axis, graph)
        return found
