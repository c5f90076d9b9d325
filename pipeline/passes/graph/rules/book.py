"""Rule book: every rewrite rule, the clean ones in the order `simplify` applies them."""

from __future__ import annotations

from .arithmetic.minimise_broadcasts import MinimiseBroadcasts
from .arithmetic.remove_identities import RemoveIdentities
from .arithmetic.simplify_expressions import SimplifyExpressions
from .convolution.combine_parallel_conv2d import CombineParallelConv2D
from .convolution.drop_padding_taps import DropPaddingTaps
from .convolution.fold_batch_norm import FoldBatchNorm
from .convolution.fold_explicit_padding import FoldExplicitPadding
from .convolution.fold_scale_axis import FoldScaleAxis
from .convolution.partial_convolutions import PartialConvolutions
from .layout.cancel_reshapes import CancelReshapes
from .layout.cancel_transposes import CancelTransposes
from .layout.push_slices_up import PushSlicesUp
from .layout.share_constants import ShareConstants
from .rule import Rule

RULES: tuple[type[Rule], ...] = (
    RemoveIdentities,
    SimplifyExpressions,
    MinimiseBroadcasts,
    FoldExplicitPadding,
    FoldBatchNorm,
    FoldScaleAxis,
    DropPaddingTaps,
    CancelReshapes,
    CancelTransposes,
    PushSlicesUp,
    ShareConstants,
    PartialConvolutions,
    CombineParallelConv2D,
)

CLEAN: tuple[type[Rule], ...] = tuple(rule for rule in RULES if rule.clean)
