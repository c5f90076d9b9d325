"""Estimate the cycles and the code of candidates: their kernels are scheduled, and compiled for the code alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from ...kernels.lower.lower import Lowered
from ...kernels.lower.specialise import specialise_kernels, variant_of
from ...passes.base import ModulePass
from ...passes.sequence.apply import apply_program_passes
from ...passes.sequence.failures import failure_of
from ...passes.sequence.sequence import specs_of
from ...targets import Target
from ...targets.cycles import core_of, program_cycles
from ...tir.counts.most_code import most_code
from ...tir.counts.operation_counts import kernel_work
from ...tir.memoise import structural_hash
from .code_estimate import CodeEstimate, code_of_calls
from .evaluation import Evaluation, Evaluator
from .scoring import Arrangement, Scorer, Specs, WorkerTask


@dataclass(frozen=True)
class Costs:
    """Hold the cycles of a run, and a bound of the code in bytes; 0 if it was not asked for."""

    cycles: int
    most_code: int = 0


def costs_task(evaluation: Evaluation, target: Target, code: bool = True) -> WorkerTask:
    """Return the task to compute the costs of a candidate; its result is None if the candidate fails."""
    specs, arrangement = _parts(evaluation)
    return WorkerTask(specs, partial(_costs, specs=specs, arrangement=arrangement, target=target, code=code), arrangement)


def cycles_of(evaluator: Evaluator, evaluations: Iterable[Evaluation]) -> list[int | None]:
    """Return the cycles of a run of each candidate; None if it cannot be scheduled."""
    found = evaluator.attempt(costs_task(each, evaluator.target, code=False) for each in evaluations)
    return [None if each is None else each.cycles for each in found]


def _costs(scorer: Scorer, specs: Specs, arrangement: Arrangement, target: Target, code: bool) -> Costs | None:
    core = core_of(target.architecture)
    try:
        lowered, _ = apply_program_passes(*scorer.begun(specs, arrangement))
        work = {name: kernel_work(kernel, target.machine, core) for name, kernel in lowered.kernels.items()}
        most = _most_code(lowered, target) if code else 0
    except Exception as error:
        if failure_of(error) is None:
            raise
        return None
    return Costs(round(program_cycles((work[step.kernel] for step in lowered.program.steps), core)), most)


def _most_code(lowered: Lowered, target: Target) -> int:
    """Bound the code of a library: its calls, and each distinct kernel once for each set of operands read in place."""
    program = lowered.program
    variants = {variant_of(program, step) for step in program.steps}
    kernels = [(lowered.kernels[each.kernel], each.in_place) for each in variants]
    distinct = {(structural_hash(kernel), in_place): kernel for kernel, in_place in kernels}
    return code_of_calls(len(program.steps)) + sum(most_code(kernel, target.machine) for kernel in distinct.values())


def flash_of(evaluation: Evaluation, scorer: Scorer, code: CodeEstimate) -> int:
    """Estimate the weights and the code of a candidate, in bytes; compiles the kernels `code` has not seen yet."""
    specs, arrangement = _parts(evaluation)
    lowered, _ = apply_program_passes(*scorer.begun(specs, arrangement))
    return lowered.program.weight_bytes + code.of(specialise_kernels(lowered))


def _parts(evaluation: Evaluation) -> tuple[Specs, Arrangement]:
    passes = evaluation.module_passes
    return specs_of(passes), tuple(each for each in evaluation.passes if not isinstance(each, ModulePass))
