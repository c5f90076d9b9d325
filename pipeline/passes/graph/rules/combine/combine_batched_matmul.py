"""`combine-batched-matmul`: compute stacks of products that share a computed operand as one, then divide them.

    A · B₁, A · B₂  =  split(A · concat(B₁, B₂))      along columns
    A₁ · B, A₂ · B  =  split(concat(A₁, A₂) · B)      along rows, which TVM's `combine-parallel-matmul` lacks

Legal for operands of one float dtype, rank of at least 2, one stack of matrices on both sides (no broadcasting), and
all of them known before the first product. The concatenation and the division copy, and all operands live at once, for
one larger product that reads the shared operand once: an action of a search, not part of `simplify`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Expr, Var

    from ..dataflow import Dataflow


class CombineBatchedMatmul(Rule):
    """Merge products that share their left operand, or their right one."""

    name = "combine-batched-matmul"
    summary = "compute products of computed matrices that share an operand as one, then divide it"
    clean = False

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        from tvm import relax

        from .parallel import divide

        found: dict[Var, Expr] = {}
        taken: set[Var] = set()
        for shared in (0, 1):
            for branches in _groups(graph, shared, taken):
                taken.update(branches)
                common = graph.value(branches[0]).args[shared]
                others = [graph.value(branch).args[1 - shared] for branch in branches]
                axis = len(graph.static_shape(branches[0])) - (2 if shared else 1)
                joined = relax.op.concat(others, axis)
                product = relax.op.matmul(*((joined, common) if shared else (common, joined)))
                found |= divide(product, branches, axis, graph, follow=False)
        return found


def _groups(graph: Dataflow, shared: int, taken: set[Var]) -> list[list[Var]]:
    """Return products that share the operand at place `shared`, whose others are bound before the first of them."""
    from tvm import relax

    from ..convolution.constants import FLOATS

    order = {var: number for number, (var, _) in enumerate(graph.bindings())}
    groups: dict[tuple[Expr, tuple[int, ...]], list[Var]] = {}
    for var, call in graph.calls("relax.matmul"):
        common, other = call.args[shared], call.args[1 - shared]
        if var in taken or not (isinstance(common, relax.Var) and isinstance(other, relax.Var)):
            continue
        one, two = graph.shape(common), graph.shape(other)
        if one is None or two is None or graph.dtype(call) not in FLOATS or graph.dtype(call) != graph.dtype(other):
            continue
        if len(one) != len(two) or len(one) < 2 or one[:-2] != two[:-2]:
            continue
        group = groups.setdefault((graph.variable(common), two[:-2]), [])
        if not group or order.get(graph.variable(other), -1) < order[group[0]]:
            group.append(var)
    return [group for group in groups.values() if len(group) > 1]
