"""Apply rules to a graph until none finds anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from .dataflow import Dataflow
from .replace_values import replace_values

if TYPE_CHECKING:
    from tvm.ir import IRModule

    from .rule import Rule

#: sweeps of one rule, and rounds over all of them, at most: a safety net for rules that undo each other
SWEEPS, ROUNDS = 64, 16


def apply_rules(
    module: IRModule, rules: Iterable[Rule], found: Callable[[Rule, int], None] = lambda rule, count: None
) -> IRModule:
    """Apply each rule in turn until it finds nothing, and all of them until none does.

    Returns `module` itself if none finds anything. `found` is told each sweep's number of replaced values.
    """
    rules, graph = tuple(rules), Dataflow(module["main"])
    idle = 0  # rules since the last one that found something
    for turn in range(ROUNDS * len(rules)):
        rule = rules[turn % len(rules)]
        for _ in range(SWEEPS):
            replacements = rule.replacements(graph)
            if not replacements:
                break
            found(rule, len(replacements))
            idle = 0
            module = replace_values(module, replacements)
            graph = Dataflow(module["main"])
        idle += 1
        if idle >= len(rules):
            break
    return module
