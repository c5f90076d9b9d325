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
        from .parallel import combine_parallel

        return combine_parallel(graph, "relax.matmul")
