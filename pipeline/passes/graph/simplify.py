"""`simplify`: apply the clean rules of the rule book until none changes the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import did_you_mean
from ..base import ModulePass
from .rules.book import CLEAN

if TYPE_CHECKING:
    from tvm.ir import IRModule


@dataclass(frozen=True)
class Simplify(ModulePass):
    """Apply every clean rule but those of `without`, names joined by `+`.

    One action for the search: rules that commute would make a state of every subset of them.
    """

    name = "simplify"
    summary = "apply all rewrite rules that cost nothing, until none changes the graph"

    without: str = ""

    def __post_init__(self) -> None:
        known = {rule.name for rule in CLEAN}
        for name in filter(None, self.without.split("+")):
            if name not in known:
                raise ValueError(f"without names '{name}', no rule of `simplify`: {did_you_mean(name, known)}")

    def apply(self, module: IRModule) -> IRModule:
        from .rules.rule import apply_rules

        return apply_rules(module, [rule() for rule in CLEAN if rule.name not in self.without.split("+")])
