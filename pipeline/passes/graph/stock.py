"""TVM's own graph passes, by their TVM names in kebab case. Exact unless marked `lossy`.

Left out, as measured: DecomposeOpsForTraining (silently wrong for inference), KillAfterLastUse and LowerRuntimeBuiltin
(break a module at this level), AlterOpImpl, BundleModelParams, LiftTransformParams, RewriteCUDAGraph and the like
(change what a model takes or where it runs), DataflowUseInplaceCalls (in-place results are decided on the program).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base import ModulePass

if TYPE_CHECKING:
    from tvm.ir import IRModule


class StockPass(ModulePass):
    """Wrap the zero-argument pass of `tvm.relax.transform` that has the name of the class."""

    def apply(self, module: IRModule) -> IRModule:
        from tvm import relax

        return getattr(relax.transform, type(self).__name__)()(module)


class AdjustMatmulOrder(StockPass):
    name = "adjust-matmul-order"
    summary = "reassociate chains of matrix products for less arithmetic"


class CanonicalizeBindings(StockPass):
    name = "canonicalize-bindings"
    summary = "remove trivial bindings and matches of known shapes"


class CombineParallelMatmul(StockPass):
    name = "combine-parallel-matmul"
    summary = "merge matrix products with the same left-hand side"

    def apply(self, module: IRModule) -> IRModule:
        # TVM matches its pattern against all calls at once, 30 s on an unrolled recurrence of 400, to find nothing
        return super().apply(module) if _share_an_operand(module) else module


def _share_an_operand(module: IRModule) -> bool:
    """Return whether two products have the same left-hand side, and none a constant one, at which TVM fails."""
    from tvm import relax
    from tvm.ir import Op

    matmul = Op.get("relax.matmul")
    for function in module.functions.values():
        if not isinstance(function, relax.Function) or not isinstance(function.body, relax.SeqExpr):
            continue
        values = [binding.value for block in function.body.blocks for binding in block.bindings]
        lefts = [each.args[0] for each in values if isinstance(each, relax.Call) and each.op == matmul]
        if not all(isinstance(left, relax.Var) for left in lefts):
            return False
        if len(set(lefts)) < len(lefts):
            return True
    return False


class DeadCodeElimination(StockPass):
    name = "dead-code-elimination"
    summary = "remove values no output depends on"


class DecomposeOpsForInference(StockPass):
    name = "decompose-ops-for-inference"
    summary = "decompose batch norm and the like into simple arithmetic, which folds and fuses"


class EliminateCommonSubexpr(StockPass):
    name = "eliminate-common-subexpr"
    summary = "compute equal values once"


class ExpandMatmulOfSum(StockPass):
    name = "expand-matmul-of-sum"
    summary = "rewrite x(a+b) as xa+xb"


class FastMathTransform(StockPass):
    name = "fast-math"
    summary = "approximate exponentials, tangents and error functions"
    lossy = True


class FoldBatchnormToConv2D(StockPass):
    name = "fold-batchnorm-to-conv2d"
    summary = "fold a batch norm into the weights of the convolution before it"


class FuseTransposeMatmul(StockPass):
    name = "fuse-transpose-matmul"
    summary = "fuse a transpose into the matrix product that reads it"


class OptimizeLayoutTransform(StockPass):
    name = "optimize-layout-transform"
    summary = "remove layout changes that cancel out"


class RemoveRedundantReshape(StockPass):
    name = "remove-redundant-reshape"
    summary = "remove reshapes that change nothing"


class ReorderPermuteDimsAfterConcat(StockPass):
    name = "reorder-permute-dims-after-concat"
    summary = "transpose once after a concatenation instead of once per part"


class ReorderTakeAfterMatmul(StockPass):
    name = "reorder-take-after-matmul"
    summary = "gather from a matrix product instead of multiplying gathered columns"


STOCK_PASSES = (
    AdjustMatmulOrder, CanonicalizeBindings, CombineParallelMatmul, DeadCodeElimination, DecomposeOpsForInference,
    EliminateCommonSubexpr, ExpandMatmulOfSum, FastMathTransform, FoldBatchnormToConv2D, FuseTransposeMatmul,
    OptimizeLayoutTransform, RemoveRedundantReshape, ReorderPermuteDimsAfterConcat, ReorderTakeAfterMatmul,
)  # fmt: skip
