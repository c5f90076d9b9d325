"""What a sequence of passes is worth: replay it, lower, order, plan, add up. Nothing is compiled."""

from __future__ import annotations

from collections.abc import Sequence as Ordered
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm.ir import IRModule

from ..errors import ModelError
from ..graph import Program
from ..kernels.lowering import Lowered, lower, without_workspaces
from ..memory import Footprint, account, bound, orders, plan_arena
from ..passes.base import Level, ModulePass, Pass
from ..passes.order import Order
from ..passes.sequence import Sequence
from ..targets import Target
from .state import state_key

# Ctrl-C in Python code that TVM called stays what it is: else it comes back as a RuntimeError, a failure like others.
tvm_ffi.register_error("KeyboardInterrupt", KeyboardInterrupt)

#: what a pass of TVM may raise on a graph it does not fit; each costs one candidate, never the search
FAILURES = (tvm.error.InternalError, ModelError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


#: what a search lowers: bytes of ram on the target, or the literature's sum of all tensors
OBJECTIVES = ("ram", "sum")


@dataclass(frozen=True)
class Evaluation:
    """A candidate: its module passes, the order found for it, and its footprint; or why there is none."""

    passes: tuple[Pass, ...]
    key: int
    footprint: Footprint | None
    failure: str = ""
    objective: str = "ram"

    @property
    def cost(self) -> tuple[int, int, int]:
        """Smaller is better: the objective first (of OBJECTIVES), then the others."""
        assert self.footprint is not None
        ram, total = self.footprint.ram, self.footprint.sum
        first = (ram, self.footprint.weights) if self.objective == "ram" else (total, ram)
        return (*first, self.footprint.kernels)

    @property
    def score(self) -> tuple[int, int, int, int]:
        """The cost, then the length of the sequence."""
        return (*self.cost, len(self.passes))

    @property
    def loss(self) -> tuple[str, ...]:
        """The lossy passes among them."""
        return tuple(each.spec for each in self.passes if each.lossy)

    @property
    def sequence(self) -> Sequence:
        return Sequence(self.passes)


class Evaluator:
    """Evaluates sequences on one graph for one target. Modules are kept by prefix, footprints by state."""

    def __init__(
        self,
        module: IRModule,
        name: str,
        target: Target,
        inputs: Ordered[str],
        outputs: Ordered[str],
        objective: str = "ram",
    ):
        self.target = target
        self.objective = objective
        self.count = 0
        self.failures: dict[str, str] = {}
        self._name, self._inputs, self._outputs = name, tuple(inputs), tuple(outputs)
        self._modules: dict[tuple[str, ...], tuple[IRModule, int]] = {(): (module, state_key(module))}
        self._transitions: dict[tuple[int, str], tuple[IRModule, int] | Exception] = {}
        self._scored: dict[int, tuple[Footprint, Order]] = {}

    def module(self, passes: Ordered[Pass]) -> tuple[IRModule, int]:
        """The module after `passes`, and its state key. What a pass raises goes through."""
        specs = tuple(each.spec for each in passes)
        if specs not in self._modules:
            before, key = self.module(passes[:-1])
            edge = (key, specs[-1])
            if edge not in self._transitions:
                self._transitions[edge] = _applied(passes[-1], before)
            reached = self._transitions[edge]
            if isinstance(reached, Exception):
                raise reached
            self._modules[specs] = reached
        return self._modules[specs]

    def known(self, passes: Ordered[Pass]) -> bool:
        """Whether evaluating `passes` costs nothing, because it leads to a state that has been evaluated."""
        try:
            return self.module(passes)[1] in self._scored
        except FAILURES:
            return True

    def evaluate(self, passes: Ordered[Pass]) -> Evaluation:
        """The footprint of the module passes, run in the best of the orders that cost next to nothing."""
        passes = tuple(passes)
        specs = "; ".join(each.spec for each in passes)
        if specs in self.failures:
            return Evaluation(passes, 0, None, self.failures[specs])
        try:
            module, key = self.module(passes)
            if key not in self._scored:
                self.count += 1
                self._scored[key] = self._score(module)
        except FAILURES as error:
            self.failures[specs] = f"{type(error).__name__}: {_first_line(error)}"
            return Evaluation(passes, 0, None, self.failures[specs])
        footprint, order = self._scored[key]
        return Evaluation((*passes, order), key, footprint, objective=self.objective)

    def with_order(self, evaluation: Evaluation, order: Order) -> Evaluation:
        """The same candidate in another order."""
        module_passes = tuple(each for each in evaluation.passes if isinstance(each, ModulePass))
        lowered, workspace = self._lowered(self.module(module_passes)[0])
        footprint = self._account(order.apply(lowered.program), workspace)
        return Evaluation((*module_passes, order), evaluation.key, footprint, objective=self.objective)

    def _score(self, module: IRModule) -> tuple[Footprint, Order]:
        lowered, workspace = self._lowered(module)
        name, program = best_of_orders(lowered.program, self.target.alignment)
        return self._account(program, workspace), Order(by=name)

    def _lowered(self, module: IRModule) -> tuple[Lowered, int]:
        return without_workspaces(lower(module, self._name, self._inputs, self._outputs))

    def _account(self, program: Program, workspace: int) -> Footprint:
        plan = plan_arena(program, self.target.alignment)
        in_place = self.target.weights == "in-place"
        return account(program, plan, workspace=workspace, code=0, weights_in_place=in_place)


def _applied(each: Pass, module: IRModule) -> tuple[IRModule, int] | Exception:
    """What the pass makes of the module, with its state key; or what it raises, which it would raise again."""
    try:
        after = each.apply(module)
        return after, state_key(after)
    except FAILURES as error:
        return error


def best_of_orders(program: Program, alignment: int) -> tuple[str, Program]:
    """The named order with the lowest bound, the first of equals, and the program in it."""
    candidates = [(name, program.reordered(order)) for name, order in orders(program)]
    return min(candidates, key=lambda candidate: bound(candidate[1], alignment=alignment))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def level_of(passes: Ordered[Pass]) -> Level:
    """The level of what `passes` return, from an imported graph."""
    level = Level.GRAPH
    for each in passes:
        level = each.level_after(level)
    return level
