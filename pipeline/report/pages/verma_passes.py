"""List the 28 passes of Verma et al. (2022), each with its counterpart in the catalogue or the reason for none."""

from __future__ import annotations

from dataclasses import dataclass

_ONE_GENERATOR = "no part of a graph goes to another code generator: one library holds all kernels"


@dataclass(frozen=True)
class VermaPass:
    """A pass of Relay and the categories it was chosen for; `counterparts` are catalogue names, or `reason` why none.

    BL baseline, RN ResNet, MN MobileNet, SSD, BR BERT, AD additional.
    """

    name: str
    categories: str
    counterparts: tuple[str, ...] = ()
    reason: str = ""


VERMA_PASSES = (
    VermaPass("AlterOpLayout", "BL RN MN SSD BR", ("layout",)),
    VermaPass(
        "AnnotateSpans", "AD", reason="the import keeps the ONNX nodes of every operator (frontend/relax/provenance.py)"
    ),
    VermaPass("BatchingOps", "BR", reason="products of one operand side by side take no less memory or time"),
    VermaPass("CanonicalizeCast", "BL RN", reason="casts fuse with the kernels around them"),
    VermaPass(
        "CanonicalizeOps",
        "BL",
        reason="the import writes such operators as plain ones (frontend/canonical/rewrites.py)",
    ),
    VermaPass("CombineParallelConv2D", "RN", ("combine-parallel-conv2d",)),
    VermaPass("CombineParallelDense", "RN", reason="as BatchingOps"),
    VermaPass("ConvertLayout", "BL", ("layout",)),
    VermaPass("DeadCodeElimination", "RN MN SSD", ("dead-code-elimination",)),
    VermaPass("DefuseOps", "BL", reason="nothing is undone: a sequence starts from the graph before fusion"),
    VermaPass("DynamicToStatic", "AD", reason="the import makes every shape static (--shape), or refuses the model"),
    VermaPass("EliminateCommonSubexpr", "BL RN MN", ("eliminate-common-subexpr",)),
    VermaPass(
        "FakeQuantizationToInteger",
        "AD",
        reason="the import makes quantised layers integer ones (frontend/quantised/keep_integers.py)",
    ),
    VermaPass("FastMath", "MN BR SSD", ("fast-math",)),
    VermaPass("FirstOrderGradient", "MN", reason="gradients are for training; a library only infers"),
    VermaPass("FoldConstant", "RN MN SSD", ("fold-constant",)),
    VermaPass("FoldExplicitPadding", "RN SSD", ("fold-explicit-padding",)),
    VermaPass("ForwardFoldScaleAxis", "BR", ("fold-scale-axis", "fold-batchnorm-to-conv2d")),
    VermaPass("FuseOps", "RN MN SSD BR", ("fuse-operators",)),
    VermaPass("MergeComposite", "RN MN SSD", reason=_ONE_GENERATOR),
    VermaPass("PartitionGraph", "AD", reason=_ONE_GENERATOR),
    VermaPass("RemoveUnusedFunctions", "SSD", ("dead-code-elimination",)),
    VermaPass("SimplifyExpr", "RN MN SSD", ("simplify-expressions", "remove-redundant-reshape")),
    VermaPass("SimplifyFCTranspose", "MN BR", ("fuse-transpose-matmul",)),
    VermaPass("SimplifyInference", "RN MN SSD", ("decompose-ops-for-inference", "fold-batchnorm-to-conv2d")),
    VermaPass("ToANormalForm", "AD", reason="Relax is in A-normal form from the start"),
    VermaPass("ToGraphNormalForm", "RN MN", ("canonicalize-bindings",)),
    VermaPass("ToMixedPrecision", "AD", ("to-mixed-precision",)),
)
