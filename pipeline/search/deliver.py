"""Deliver a library that verifies: where a plan crashes or computes wrong, build the next best.

    the winner ─✗─► half of its splits ─✗─► whole kernels ─✗─► tvm-default     the first that verifies

A wrong plan is a defect of passfit: it is reported, and an error where `strictness` says so. A model that its import
changed is refused at once, since no plan can mend it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ..errors import NumericError, PassfitError, PlanError, SequenceError, environment_error, reason_of
from ..memory.footprint import Defect, Footprint
from ..passes.sequence.sequence import SPLITTING, TVM_DEFAULT, Sequence
from ..support.strictness import spare, strict

Built = TypeVar("Built")


def simpler_plans(sequence: Sequence) -> Iterator[Sequence]:
    """Yield the plans to fall back on, the best first: less split, whole, and TVM's default."""
    splits = [place for place, each in enumerate(sequence.passes) if each.name in SPLITTING]
    for kept in sorted({len(splits) // 2, 0} - {len(splits)}, reverse=True):
        dropped = frozenset(splits[kept:])
        yield Sequence(tuple(each for place, each in enumerate(sequence.passes) if place not in dropped))
    default = Sequence.parse(TVM_DEFAULT)
    if sequence.specs != default.specs:
        yield default


def deliver(
    sequence: Sequence,
    build: Callable[[Sequence], Built],
    folder: Path,
    blame_import: Callable[[], str],
    searched: bool = True,
) -> tuple[Sequence, Built, tuple[Defect, ...]]:
    """Build `sequence`, or the next best plan that verifies; return it with the defects of those before.

    `build` writes into `folder`, and raises for a plan that cannot be built or computes wrong. `blame_import` names
    the part of the import that changed the model, if one did. A sequence that does not fit the model is a defect if it was
    `searched`, else the user's error. Raises NumericError for a model that its import changed, the first error where no
    plan verifies, and errors of the user at once.
    """
    failed: list[tuple[Sequence, Exception]] = []
    for plan in (sequence, *simpler_plans(sequence)):
        try:
            built = build(plan)
        except Exception as error:
            if not (_is_defect(error) or (searched and isinstance(error, SequenceError))):
                raise
            if isinstance(error, NumericError) and (
                blamed := spare("the import's fault", blame_import, lambda why: "")
            ):
                raise NumericError(f"{error.what} {blamed}", error.hint, error.outputs) from error
            if strict():
                raise
            failed.append((plan, error))
            for file in folder.iterdir():
                file.unlink()
        else:
            return plan, built, tuple(_defect(each, plan, error) for each, error in failed)
    raise failed[0][1]


def check_as_searched(searched: Footprint, built: Footprint) -> None:
    """Raise PlanError, if defects are errors, for a library with other memory than its search found."""
    if strict() and (searched.arena, searched.workspace) != (built.arena, built.workspace):
        raise PlanError(
            f"The search found {searched.arena} bytes of arena and {searched.workspace} of workspace; the library has "
            f"{built.arena} and {built.workspace}: the sequence was replayed otherwise."
        )


def _is_defect(error: Exception) -> bool:
    """Distinguish a defect of a plan from errors of the user or the machine."""
    if isinstance(error, PassfitError):
        return isinstance(error, NumericError)
    return environment_error(error) is None


def _defect(plan: Sequence, delivered: Sequence, error: Exception) -> Defect:
    """Reduce a failed plan to the passes that the delivered one does without."""
    left_out = tuple(spec for spec in plan.specs if spec not in delivered.specs)
    if isinstance(error, NumericError):
        return Defect("wrong", left_out, error.what)
    return Defect("crash", left_out, reason_of(error))
