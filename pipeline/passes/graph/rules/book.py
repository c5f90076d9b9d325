"""Rule book: every rewrite rule, the clean ones in the order `simplify` applies them."""

from __future__ import annotations

from .arithmetic.remove_identities import RemoveIdentities
from .combine.combine_batched_matmul import CombineBatchedMatmul
from .combine.combine_parallel_conv2d import CombineParallelConv2D
from .combine.combine_parallel_products import CombineParallelProducts
from .convolution.drop_padding_taps import DropPaddingTaps
from .convolution.fold_batch_norm import FoldBatchNorm
from .convolution.fold_explicit_padding import FoldExplicitPadding
from .convolution.fold_scale_axis import FoldScaleAxis
from .convolution.partial_convolutions import PartialConvolutions
from .rule import Rule

RULES: tuple[type[Rule], ...] = (
    RemoveIdentities,
    FoldExplicitPadding, FoldBatchNorm, FoldScaleAxis, DropPaddingTaps,
    PartialConvolutions, CombineParallelConv2D, CombineParallelProducts, CombineBatchedMatmul,
)  # fmt: skip

CLEAN: tuple[type[Rule], ...] = tuple(rule for rule in RULES if rule.clean)
