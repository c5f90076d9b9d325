"""TVM's own graph passes, by their TVM names in kebab case. Exact unless marked `lossy`.

Left out, as measured: DecomposeOpsForTraining (silently wrong for inference), KillAfterLastUse and LowerRuntimeBuiltin
(break a module at this level), AlterOpImpl, BundleModelParams, LiftTransformParams, RewriteCUDAGraph and the like
(change what a model takes or where it runs), DataflowUseInplaceCalls (in-place results are decided on the program). And of no
worth on 52 models: CombineParallelMatmul, ExpandMatmulOfSum, OptimizeLayoutTransform, ReorderPermuteDimsAfterConcat,
ReorderTakeAfterMatmul.
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


class DeadCodeElimination(StockPass):
    name = "dead-code-elimination"
    summary = "remove values no output depends on"


class DecomposeOpsForInference(StockPass):
    name = "decompose-ops-for-inference"
    summary = "decompose batch norm and the like into simple arithmetic, which folds and fuses"


class EliminateCommonSubexpr(StockPass):
    name = "eliminate-common-subexpr"
    summary = "compute equal values once"


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


class RemoveRedundantReshape(StockPass):
    name = "remove-redundant-reshape"
    summary = "remove reshapes that change nothing"


STOCK_PASSES = (
    AdjustMatmulOrder, CanonicalizeBindings, DeadCodeElimination, DecomposeOpsForInference, EliminateCommonSubexpr,
    FastMathTransform, FoldBatchnormToConv2D, FuseTransposeMatmul, RemoveRedundantReshape,
)  # fmt: skip
