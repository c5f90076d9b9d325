"""Rule book: every rewrite rule, the clean ones in the order `simplify` applies them."""

from __future__ import annotations

from .arithmetic.remove_identities import RemoveIdentities
from .rule import Rule

RULES: tuple[type[Rule], ...] = (RemoveIdentities,)

CLEAN: tuple[type[Rule], ...] = tuple(rule for rule in RULES if rule.clean)
