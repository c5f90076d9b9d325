"""Divide products over joined heads into a sum of one product per head.

Imports TVM: only imported once a graph is transformed.
"""

from __future__ import annotations

from tvm import relax
from tvm.ir import GenericConst, IRModule

from ..rules.dataflow import Dataflow
from ..rules.layout.reshaped_ranges import common_factors
from ..rules.layout.slices import Range
from .slice_propagation import NotSliceable, SlicePropagation, shape_of


def divide_heads(module: IRModule) -> IRModule:
    """Divide each product of `module` that can be; return the same object if there is none."""
    mutator = _Divider(module)
    main = mutator.visit_expr(module["main"])
    if not mutator.divided:
        return module
    mutator.builder_.update_func(module.get_global_var("main"), main)
    return relax.transform.DeadCodeElimination()(mutator.builder_.get())


@relax.expr_functor.mutator
class _Divider(relax.PyExprMutator):
    """Replace products over joined heads, in the order of the bindings."""

    def __init__(self, module: IRModule):
        super().__init__(module)
        self.graph = Dataflow(module["main"])
        self.divided = 0
        self.slices = SlicePropagation(self.graph, self.builder_.emit, self.visit_expr)

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if self.graph.operator(call) == "relax.matmul":
            try:
                return self._sum(call)
            except NotSliceable:
                pass
        return self.visit_expr_post_order(call)

    def _sum(self, call: relax.Call) -> relax.Expr:
        joined, weight = call.args
        made = self.graph.call(joined, "relax.reshape")
        if not isinstance(weight, GenericConst) or len(shape_of(weight)) != 2 or made is None:
            raise NotSliceable("no product of joined heads with constants")
        heads = made.args[0]
        before, after = shape_of(heads), shape_of(joined)
        (group,) = (inner for inner, outer in common_factors(before, after) if len(after) - 1 in outer)
        axes = [axis for axis in group if before[axis] > 1]
        features = shape_of(weight)[0]
        if len(axes) < 2 or features != after[-1] or not self._is_product(heads):
            raise NotSliceable("nothing is joined")
        count = before[axes[0]]
        size = features // count
        shape = (*after[:-1], size)
        parts = [self._head(heads, Range(axes[0], head, head + 1, drop=True), shape) for head in range(count)]
        # all products come after all heads: until then, a head takes fewer bytes than its product
        products = []
        for head, part in enumerate(parts):
            share = self.slices.part(weight, (Range(0, head * size, (head + 1) * size),))
            products.append(self.builder_.emit(relax.op.matmul(part, share)))
        self.divided += 1
        total = products[0]
        for product in products[1:-1]:
            total = self.builder_.emit(relax.op.add(total, product))
        return relax.op.add(total, products[-1])

    def _head(self, heads: relax.Expr, place: Range, shape: tuple[int, ...]) -> relax.Expr:
        """Emit one head, as features of each token."""
        part = self.slices.part(heads, (place,))
        return part if shape_of(part) == shape else self.builder_.emit(relax.op.reshape(part, shape))

    def _is_product(self, expr: relax.Expr) -> bool:
        """Return whether a tensor is a product of two that are computed, in another order of its axes."""
        value, name = self.graph.value(expr), self.graph.operator(expr)
        if name in ("relax.reshape", "relax.permute_dims"):
            return self._is_product(value.args[0])
        return name == "relax.matmul" and not any(isinstance(each, GenericConst) for each in value.args)
