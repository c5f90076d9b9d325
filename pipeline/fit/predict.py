"""Predict the sizes of a plan's library on one target after the other, within a limit of effort.

    plan ─► lowered once ─► scheduled once for each kind of processor ─► arena
                                  └─► compiled once for each processor ─► code, stack

A target beyond the effort, and with an operating system any after the first, gets the sizes of the one before it that is most like
it: the same processor, else the same architecture, else any; its code is scaled by the usual ratio of their architectures. Where code and stack are little compared with
weights and arena, a bound of the code is scaled instead, and nothing is lowered. Both are marked as `near`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ..frontend.imported_model import ImportedModel
from ..memory.validation.checked_plan import checked_plan
from ..targets import Target
from .compiled_code import CompiledCode, compile_code
from .quick_plans import OF_BOUND, QuickPlan
from .similar_target import CYCLES, DATA, STACK, Known, carry, code_ratio, scale_code
from .verdict import Sizes

if TYPE_CHECKING:
    from ..kernels.lower.lower import Lowered

#: kernels scheduled, and compiled, before targets get the sizes of others: a few seconds
EFFORT = 120
#: part of the weights below which code is scaled from that of another processor, or from its bound: being wrong by a
#: quarter costs 5 % then
_SMALL = 0.2
#: bytes of ram, relative to those of stack, compared with which the stack is little
_BESIDE_STACK = 50


class SizePredictor:
    """Predict the sizes of one plan, `searched` for a target, on others.

    The order in which they are asked for decides which are computed; all are without a limit of effort.
    """

    def __init__(self, imported: ImportedModel, plan: QuickPlan, searched: Target, effort: int | None = EFFORT):
        from ..passes.sequence.sequence import Sequence

        self._imported, self._plan, self._searched, self._effort = imported, plan, searched, effort
        self._sequence = Sequence.parse(plan.passes)
        self._spent = 0
        self._scheduled: dict[object, tuple[Lowered, int]] = {}
        self._compiled: dict[object, CompiledCode] = {}
        self._known: list[Known] = []

    def sizes(self, target: Target) -> Sizes:
        """Return the predicted sizes on a target. Raises ModelError, SequenceError, ToolchainError, OutputError."""
        if self._effort is None:
            return self.own_sizes(target)
        if self._is_little:
            return self._model(target)
        base = self._nearest(target)
        if base is None or (self._affordable(target) and not self._is_spared(base, target)):
            return self._compute(target, base)
        return carry(base, target)

    def own_sizes(self, target: Target) -> Sizes:
        """Return the sizes computed for the target itself, whatever it takes."""
        return self._compute(target, None)

    def _compute(self, target: Target, base: Known | None) -> Sizes:
        """Return the sizes of scheduled and compiled kernels; with a `base`, its code may serve."""
        lowered, workspace = self._schedule(target)
        plan, weights = checked_plan(lowered.program, target), lowered.program.weight_bytes
        code = None if base is None else self._code_like(base, target, weights)
        exact = code is None
        code = code or self._code(lowered, target)
        found = Sizes(
            plan.arena, workspace, weights, code.nbytes, code.stack, DATA if target.bare else 0,
            0 if target.weights == "in-place" else weights, near=not exact, cycles=_cycles(lowered, target),
        )  # fmt: skip
        self._known.append(Known(target, found))
        return found

    @property
    def _is_little(self) -> bool:
        """Return whether code and stack are little compared with weights and arena."""
        return OF_BOUND * self._plan.most_code < _SMALL * self._plan.weights and self._plan.ram > _BESIDE_STACK * STACK

    def _model(self, target: Target) -> Sizes:
        """Return the sizes by the search alone: nothing is compiled, and lowered again only for the time on a board."""
        plan = self._plan
        arena = plan.ram - (0 if self._searched.weights == "in-place" else plan.weights)
        code = round(OF_BOUND * plan.most_code * code_ratio(self._searched, target))
        stack, data = (STACK, DATA) if target.bare else (0, 0)
        timed = target.mhz is not None and self._affordable(target)
        return Sizes(
            arena, 0, plan.weights, code, stack, data, 0 if target.weights == "in-place" else plan.weights, near=True,
            cycles=_cycles(self._schedule(target)[0], target) if timed else None,
        )  # fmt: skip

    @cached_property
    def _before(self) -> Lowered:
        from ..passes.sequence.replay import lower_by_sequence

        return lower_by_sequence(self._sequence, self._imported.graph, self._imported.onnx, self._imported.name)

    def _schedule(self, target: Target) -> tuple[Lowered, int]:
        from ..passes.sequence.replay import schedule_sequence

        if target.machine not in self._scheduled:
            self._spent += len(self._before.kernels)
            self._scheduled[target.machine] = schedule_sequence(
                replace(self._before, machine=target.machine), self._sequence
            )
        return self._scheduled[target.machine]

    def _code(self, lowered: Lowered, target: Target) -> CompiledCode:
        key = _processor(target)
        if key not in self._compiled:
            self._spent += len(lowered.kernels)
            self._compiled[key] = compile_code(lowered, target)
        return self._compiled[key]

    def _code_like(self, base: Known, target: Target, weights: int) -> CompiledCode | None:
        """Scale the code of a base if little depends on it, or the effort is spent; None where it is to be compiled."""
        small = scale_code(base, target) < _SMALL * weights
        if _processor(target) in self._compiled or not (small or self._spent > (self._effort or 0)):
            return None
        return CompiledCode(scale_code(base, target), base.stack_on(target))

    def _affordable(self, target: Target) -> bool:
        return target.machine in self._scheduled or self._spent <= (self._effort or 0)

    def _is_spared(self, base: Known, target: Target) -> bool:
        """Return whether an estimate will do: with an operating system code is little beside the memory, once one is known."""
        return not (target.bare or base.target.bare or _processor(target) in self._compiled)

    def _nearest(self, target: Target) -> Known | None:
        """Return a similar target with known sizes, itself first."""

        def distance(known: Known) -> tuple[bool, ...]:
            other = known.target
            unlike = (
                other.bare != target.bare,
                _processor(other) != _processor(target),
                other.architecture != target.architecture,
            )
            return known.sizes.near, *unlike

        return min(self._known, key=distance, default=None)


def _processor(target: Target) -> tuple[object, ...]:
    """Return the key of a kernel's code."""
    return (
        target.triple, target.cpu, target.features, target.float_abi, target.abi, target.zig_target, target.opt,
        target.threads, target.index_checks,
    )  # fmt: skip


def _cycles(lowered: Lowered, target: Target) -> float | None:
    """Return the cycles of a run on a board; None for others, whose clocks are not known."""
    from ..tir.counts.operation_counts import program_cycles

    if target.mhz is None:
        return None
    return program_cycles(lowered.program, lowered.kernels, target) * CYCLES.get(target.cpu, 1.0)
