"""Define a rewrite rule: replacements of equal value, found on a whole graph, applied until none is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ...base import Level, ModulePass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tvm.ir import IRModule
    from tvm.relax import Call, Expr, Var

    from ...base import Pass
    from .dataflow import Dataflow


class Rule(ModulePass):
    """Rewrite calls into values that are equal for every input, up to float re-association.

    A rule states its legality in its docstring, reads the graph through `Dataflow`, and never looks at names. It must
    end: each replacement lowers some measure (operators, bytes, arithmetic).
    """

    levels = frozenset({Level.GRAPH})
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
        from .apply_rules import apply_rules

        return apply_rules(module, (self,))
