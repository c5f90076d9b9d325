"""Estimate the cycles and the code of candidates: their kernels are scheduled, and compiled for the code alone."""

from __future__ import annotations

from functools import partial

from ...kernels.lower.specialise import specialise_kernels
from ...passes.base import ModulePass
from ...passes.sequence.apply import apply_program_passes
from ...passes.sequence.failures import failure_of
from ...passes.sequence.sequence import specs_of
from ...targets import Target
from ...targets.cycles import core_of, program_cycles
from ...tir.counts.operation_counts import kernel_work
from .code_estimate import CodeEstimate
from .evaluation import Evaluation, Evaluator
from .scoring import Arrangement, Scorer, Specs, WorkerTask


def cycles_task(evaluation: Evaluation, target: Target) -> WorkerTask:
    """Return the task to compute the cycles of a run of a candidate; its result is None if the candidate fails."""
    specs, arrangement = _parts(evaluation)
    return WorkerTask(specs, partial(_cycles, specs=specs, arrangement=arrangement, target=target))


def cycles_of(evaluator: Evaluator, evaluation: Evaluation) -> int | None:
    """Return the cycles of a run of a candidate; None if it cannot be scheduled."""
    (found,) = evaluator.attempt([cycles_task(evaluation, evaluator.target)])
    return found


def _cycles(scorer: Scorer, specs: Specs, arrangement: Arrangement, target: Target) -> int | None:
    core = core_of(target.architecture)
    try:
        lowered, _ = apply_program_passes(*scorer.begun(specs, arrangement))
        work = {name: kernel_work(kernel, target.machine, core) for name, kernel in lowered.kernels.items()}
    except Exception as error:
        if failure_of(error) is None:
            raise
        return None
    return round(program_cycles((work[step.kernel] for step in lowered.program.steps), core))


def flash_of(evaluation: Evaluation, scorer: Scorer, code: CodeEstimate) -> int:
    """Estimate the weights and the code of a candidate, in bytes; compiles the kernels `code` has not seen yet."""
    specs, arrangement = _parts(evaluation)
    lowered, _ = apply_program_passes(*scorer.begun(specs, arrangement))
    return lowered.program.weight_bytes + code.of(specialise_kernels(lowered))


def _parts(evaluation: Evaluation) -> tuple[Specs, Arrangement]:
    passes = evaluation.module_passes
    return specs_of(passes), tuple(each for each in evaluation.passes if not isinstance(each, ModulePass))
