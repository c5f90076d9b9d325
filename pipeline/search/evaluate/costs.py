"""Estimate the cycles and the code of candidates: their kernels are scheduled, and compiled for the code alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from tvm.tirx import PrimFunc

from ...kernels.lower.schedule_program import figures_of_schedules
from ...kernels.lower.specialise import put_slices_in_place, specialise_kernels, variant_of
from ...kernels.weights.repack import repackable_parameters
from ...passes.sequence.apply import apply_program_passes, rearranged
from ...passes.sequence.failures import failure_of
from ...passes.sequence.sequence import specs_of
from ...targets import Target
from ...tir.counts.most_code import most_code
from ...tir.counts.operation_counts import predicted_cycles, sum_cycles
from ...tir.memoise import structural_hash
from .code_estimate import CodeEstimate, code_of_calls
from .evaluation import Evaluation, Evaluator
from .scoring import Arrangement, Scorer, Specs, WorkerTask


@dataclass(frozen=True)
class Costs:
    """Hold the cycles of a run, and a bound of the code in bytes."""

    cycles: int
    most_code: int = 0


def costs_task(evaluation: Evaluation, target: Target) -> WorkerTask:
    """Return the task to compute the costs of a candidate; its result is None if the candidate fails."""
    specs, arrangement = specs_of(evaluation.module_passes), evaluation.arrangement
    return WorkerTask(
        specs, partial(_costs, specs=specs, arrangement=arrangement, target=target), arrangement, work=1.0
    )


def cycles_of(evaluator: Evaluator, evaluations: Iterable[Evaluation]) -> list[int | None]:
    """Return the cycles of a run of each candidate; None if it cannot be scheduled."""
    found = evaluator.attempt(costs_task(each, evaluator.target) for each in evaluations)
    return [None if each is None else each.cycles for each in found]


def _costs(scorer: Scorer, specs: Specs, arrangement: Arrangement, target: Target) -> Costs | None:
    try:
        lowered, after = scorer.begun(specs, arrangement)
        planned, _ = apply_program_passes(lowered, (), scorer.planned)
        own = partial(_kernel_costs, target=target)
        costs = figures_of_schedules(planned, scorer.summaries, f"costs far and near {target.architecture}", own)
        program = put_slices_in_place(rearranged(planned.program, after))
    except Exception as error:
        if failure_of(error) is None:
            raise
        return None
    private = repackable_parameters(planned.program)
    # each distinct kernel once for each set of operands read in place
    bodies = {
        (structural_hash(planned.kernels[each.kernel]), private[each.kernel], each.in_place): costs[each.kernel][2]
        for each in (variant_of(owner, step) for owner, step, _ in program.calls())
    }
    return Costs(
        cycles=round(sum_cycles(program, target, lambda name, near: costs[name][near])),
        most_code=code_of_calls(sum(1 for _ in program.calls())) + sum(bodies.values()),
    )


def _kernel_costs(kernel: PrimFunc, target: Target) -> tuple[float, float, int]:
    """Return a call's cycles with operands from far and from near, and a bound of the kernel's code."""
    far, near = (predicted_cycles(kernel, target, each) for each in (False, True))
    return far, near, most_code(kernel, target.machine)


def flash_of(evaluation: Evaluation, scorer: Scorer, code: CodeEstimate) -> int:
    """Estimate the weights and the code of a candidate, in bytes; compiles the kernels `code` has not seen yet."""
    lowered, _ = apply_program_passes(*scorer.begun(specs_of(evaluation.module_passes), evaluation.arrangement))
    return lowered.program.weight_bytes + code.of(specialise_kernels(lowered))
