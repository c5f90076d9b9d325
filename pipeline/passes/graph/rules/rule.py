"""Define a rewrite rule: replacements of equal value, found on a whole graph, applied until none is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ...base import ModulePass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tvm.ir import IRModule
    from tvm.relax import Call, Expr, Var

    from ...base import Pass
    from .dataflow import Dataflow

#: sweeps of one rule, and rounds over all of them, at most: a safety net for rules that undo each other
SWEEPS, ROUNDS = 64, 16


class Rule(ModulePass):
    """Rewrite calls into values that are equal for every input, up to float re-association.

    A rule states its legality in its docstring, reads the graph through `Dataflow`, and never looks at names. It must
    end: each replacement lowers some measure (operators, bytes, arithmetic).
    """

    #: part of `simplify`, which a search tries in its place: the rule costs neither bytes nor arithmetic anywhere
    clean: ClassVar[bool] = True

    @classmethod
    def instances(cls) -> Iterable[Pass]:
        return () if cls.clean else (cls(),)

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        """Return an expression equal to `call`, of its shape and dtype; None to leave it.

        The expression may nest new calls, tuples and constants over variables bound before `call`.
        """
        raise NotImplementedError

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        """Return variables with their new values; override it to rewrite several calls together.

        A call shared by several values is emitted once, before the first of them. Each pair must hold by itself, on the
        graph as it is: all of them are replaced at once.
        """
        return {var: new for var, call in graph.calls() if (new := self.rewrite(call, graph)) is not None}

    def apply(self, module: IRModule) -> IRModule:
        return apply_rules(module, (self,))


def apply_rules(
    module: IRModule, rules: Iterable[Rule], found: Callable[[Rule, int], None] = lambda rule, count: None
) -> IRModule:
    """Apply each rule in turn until it finds nothing, and all of them until none does.

    Returns `module` itself if none finds anything. `found` is told each sweep's number of replaced values.
    """
    from .dataflow import Dataflow
    from .replace_values import replace_values

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
