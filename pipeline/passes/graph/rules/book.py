"""Rule book: every rewrite rule, the clean ones in the order `simplify` applies them."""

from __future__ import annotations

from .arithmetic.hoist_factors import HoistFactors
from .arithmetic.minimise_broadcasts import MinimiseBroadcasts
from .arithmetic.remove_identities import RemoveIdentities
from .arithmetic.reorder_sums import ReorderSums
from .arithmetic.simplify_expressions import SimplifyExpressions
from .layout.cancel_casts import CancelCasts
from .layout.cancel_reshapes import CancelReshapes
from .layout.cancel_split_concat import CancelSplitConcat
from .layout.cancel_transposes import CancelTransposes
from .layout.push_slices_up import PushSlicesUp
from .layout.share_constants import ShareConstants
from .rule import Rule

RULES: tuple[type[Rule], ...] = (
    RemoveIdentities,
    SimplifyExpressions,
    MinimiseBroadcasts,
    ReorderSums,
    HoistFactors,
    CancelCasts,
    CancelReshapes,
    CancelTransposes,
    CancelSplitConcat,
    PushSlicesUp,
    ShareConstants,
)

CLEAN: tuple[type[Rule], ...] = tuple(rule for rule in RULES if rule.clean)
