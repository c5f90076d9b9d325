"""`combine-parallel-products`: compute products of one left operand with constants as one, then divide its columns.

    x · W₁, x · W₂  =  split(x · (W₁ beside W₂))

The projections to queries, keys and values of attention. TVM's `combine-parallel-matmul` matches computed right
operands alone, so imported weights escape it. Legal for constants of one float dtype and one stack of matrices, which no
other call reads; biases, scales and activations behind that all branches share move before the division. The branches
live at once and the division may copy: an action of a search, not part of `simplify`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Expr, Var

    from ..dataflow import Dataflow


class CombineParallelProducts(Rule):
    """Merge products of one value with constant matrices."""

    name = "combine-parallel-products"
    summary = "compute products of one left operand with constants as one, then divide its columns"
    clean = False

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        import numpy as np
        from tvm import relax

        from ..convolution.constants import ConstantReaders, constant_value
        from ..convolution.linear import Linear
        from .parallel import divide

        readers = ConstantReaders(graph)
        groups: dict[tuple[Expr, tuple[int, ...], str], list[Var]] = {}
        for var, call in graph.calls("relax.matmul"):
            linear = Linear.of(call, graph)
            if linear is None or not linear.weight_last or not isinstance(linear.data, relax.Var):
                continue
            if readers.owned(linear.weight):
                rows = graph.static_shape(linear.weight)[:-1]
                groups.setdefault((graph.variable(linear.data), rows, graph.dtype(linear.weight)), []).append(var)
        found: dict[Var, Expr] = {}
        for (data, _, dtype), branches in groups.items():
            if len(branches) > 1:
                weights = [constant_value(graph.value(branch).args[1], graph) for branch in branches]
                weight = relax.const(np.concatenate(weights, -1), dtype)
                axis = len(graph.static_shape(branches[0])) - 1
                found |= divide(relax.op.matmul(data, weight), branches, axis, graph)
        return found
