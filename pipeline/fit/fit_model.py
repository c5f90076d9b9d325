"""Predict whether a model fits each of several targets, and levers for the next smaller one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.samples import read_samples
from ..errors import ConfigError, ModelError
from ..frontend.imported_model import ImportedModel, load
from ..frontend.input_forms import input_forms
from ..frontend.source.import_options import ImportKeywords
from ..memory.footprint import Budget, Footprint
from ..quantise.judge import ChooseMetric, Samples
from ..quantise.samples import choose_metric
from ..search.settings import SearchSettings, aim_of
from ..support.interrupts import step_limit
from ..support.progress import Progress, silent
from ..targets import Target
from .answer import fit_answer
from .predict import EFFORT, SizePredictor
from .quick_plans import QuickPlans, quick_plans
from .remedies import Int8Reach, Remedy, remedies_of_search
from .verdict import FitVerdict, Sizes, TargetLimits, next_smaller, smallest_that_fits

if TYPE_CHECKING:
    import onnx
    from typing_extensions import Unpack

#: part of estimated sizes that might turn a verdict, and of flash with an operating system: sizes are computed then
_CLOSE, _CLOSE_FLASH = 0.1, 0.6


@dataclass(frozen=True)
class FitReport:
    """Verdicts on all targets, boards and then the smallest first, of one plan whose passes are `passes`.

    `smallest` is the target of least memory that fits, `next` the one below it, and `remedies` are changes with their
    sizes there. `int8` is the smallest target that quantised layers would reach. `searched` is the target that the plan was searched for, `whole` its least ram with whole kernels.
    `slowdown` and `extra_compute` are the plan's: see `QuickPlan`.
    """

    model: str
    passes: tuple[str, ...]
    searched: str
    slowdown: float
    extra_compute: float
    whole: int
    verdicts: tuple[FitVerdict, ...]
    smallest: str | None
    next: str | None
    remedies: tuple[Remedy, ...]
    int8: Int8Reach | None = None

    def on(self, target: str) -> FitVerdict:
        """Return the verdict on a target."""
        return next(each for each in self.verdicts if each.target == target)

    @property
    def answer(self) -> str:
        """Say in one sentence which target holds the model, what the next smaller lacks, and what int8 would do."""
        return fit_answer(self.smallest, self.next, {} if self.next is None else self.on(self.next).lacking, self.int8)

    def to_json(self) -> dict:
        """Return the object that `passfit fit --json` prints."""
        found = asdict(self) | {"answer": self.answer}
        limits = self.on(self.next).limits if self.next is not None else None
        found["verdicts"] = [each.to_json() for each in self.verdicts]
        found["remedies"] = [
            asdict(each) | {"options": each.options, "fits": limits is not None and each.fits(limits)}
            for each in self.remedies
        ]
        return found


def fit(
    model: str | Path,
    targets: Sequence[Target],
    budgets: Mapping[str, Budget] | None = None,
    *,
    name: str | None = None,
    search: SearchSettings = SearchSettings(),
    exact: bool = False,
    data: str | None = None,
    metric: str | None = None,
    progress: Progress = silent,
    found: Callable[[FitVerdict], None] = lambda verdict: None,
    **options: Unpack[ImportKeywords],
) -> FitReport:
    """Predict in seconds which of `targets` a model fits; nothing is linked to a library or run.

    `search.seconds` is the effort to find plans. `data` are samples, on which int8 is calibrated and judged by `metric`. Raises ModelError, ConfigError without targets; see `fit_model`.
    """
    if not targets:
        raise ConfigError("There is no target to fit.", "`passfit targets` lists them.")
    imported = load(model, name, **options)
    samples = None if data is None else read_samples(data, input_forms(imported.drawn_for))
    return fit_model(
        imported, targets, budgets or {}, search, exact=exact, samples=samples, choose=choose_metric(metric), progress=progress, found=found,
    )  # fmt: skip


def fit_model(
    imported: ImportedModel,
    targets: Sequence[Target],
    budgets: Mapping[str, Budget],
    settings: SearchSettings,
    *,
    exact: bool = False,
    samples: Samples | None = None,
    choose: ChooseMetric | None = None,
    progress: Progress = silent,
    found: Callable[[FitVerdict], None] = lambda verdict: None,
) -> FitReport:
    """Predict the sizes of a model on `targets`, within `budgets` by name, else within capacities.

    Every target gets sizes of its own with `exact`, else as many as take seconds. `found` gets each verdict as it comes, from the
    first target on that a model can be compiled for. Raises ModelError, SequenceError,
    ToolchainError, OutputError.
    """
    limits = {each.name: TargetLimits.of(each, budgets.get(each.name, Budget())) for each in targets}
    order = {each.name: (not each.bare, limits[each.name].ram, limits[each.name].flash, each.name) for each in targets}
    ordered = sorted(targets, key=lambda each: order[each.name])
    from ..search.evaluate.evaluation import uncompilable

    plans = quick_plans(imported, ordered[0], settings, progress)
    with step_limit("Predicting", imported.name):
        predictor = SizePredictor(imported, plans.chosen, ordered[0], None if exact else EFFORT)
        verdicts, told = [], 0
        for number, target in enumerate(ordered):
            progress("predicting, targets", number, len(ordered))
            verdicts.append(_verdict(predictor, target, limits[target.name]))
            if told or not verdicts[-1].refused:
                for each in verdicts[told:]:
                    found(each)
                told = len(verdicts)
    if all(each.refused for each in verdicts):
        raise uncompilable(verdicts[0].refused)
    fitting, below = smallest_that_fits(verdicts), next_smaller(verdicts)
    remedies, reach = [], None
    if below is not None:
        from .predicted_remedies import in_int8, int8_reach

        progress("trying what takes less, and int8")
        target = next(each for each in targets if each.name == below.target)
        quantised = in_int8(imported, samples)
        remedies = _remedies(imported, plans, below, target, budgets.get(target.name, Budget()), settings, quantised)
        by_size = sorted(targets, key=lambda each: order[each.name][1:])
        smaller = by_size if fitting is None else by_size[: [each.name for each in by_size].index(fitting.target)]
        reach = int8_reach(imported, quantised, smaller, limits, settings, samples, choose)
    return FitReport(
        imported.name, plans.chosen.passes, ordered[0].name, plans.chosen.slowdown, plans.chosen.extra_compute, plans.whole,
        tuple(verdicts), None if fitting is None else fitting.target, None if below is None else below.target,
        tuple(remedies), reach,
    )  # fmt: skip


def _verdict(predictor: SizePredictor, target: Target, limits: TargetLimits) -> FitVerdict:
    """Return the verdict on a target; sizes of its own if an estimate leaves it open."""
    from ..passes.sequence.failures import failure_of

    try:
        found = FitVerdict(target.name, predictor.sizes(target), limits, mhz=target.mhz)
        if found.sizes.near and found.is_close(_CLOSE, _CLOSE if target.bare else _CLOSE_FLASH):
            found = FitVerdict(target.name, predictor.own_sizes(target), limits, mhz=target.mhz)
        return found
    except ModelError as error:
        return FitVerdict(target.name, Sizes(0, 0, 0, 0), limits, error.what)
    except Exception as error:
        if (failure := failure_of(error)) is None:
            raise
        return FitVerdict(target.name, Sizes(0, 0, 0, 0), limits, failure.reason)


def _remedies(
    imported: ImportedModel,
    plans: QuickPlans,
    below: FitVerdict,
    target: Target,
    budget: Budget,
    settings: SearchSettings,
    quantised: onnx.ModelProto | None,
) -> list[Remedy]:
    """Return changes with their sizes on a target that lacks memory; those that save none of it are left out."""
    from .predicted_remedies import int8_remedy

    sizes = below.sizes
    aim = aim_of(settings, budget, target)
    own = plans.plan(aim)
    best = _footprint(sizes, sizes.ram - plans.chosen.ram + own.ram)
    found = []
    if own.ram < plans.chosen.ram:
        slowdown = own.slowdown / plans.chosen.slowdown if plans.chosen.slowdown else 0.0
        found.append(
            Remedy("a slower plan, which `passfit compile` takes here by itself", (), best.ram, best.flash, slowdown)
        )
    found += remedies_of_search(plans.search(aim), best)
    if sizes.weights_in_ram:
        in_place = sizes.ram - sizes.weights_in_ram
        found.append(Remedy('weights = "in-place" for the target, if it can', (), in_place, sizes.flash))
    found += int8_remedy(imported.name, quantised, target, budget, settings)
    return [each for each in found if any(each.lowers(memory, sizes.ram, sizes.flash) for memory in below.lacking)]


def _footprint(sizes: Sizes, ram: int) -> Footprint:
    """Return predicted sizes as a footprint of so much ram."""
    return Footprint(
        ram=ram, flash=sizes.flash, arena=sizes.arena, workspace=sizes.workspace, weights=sizes.weights, code=sizes.code,
        bound=0, floor=0, proved=False, kernels=0, sum=0, stack=sizes.stack,
    )  # fmt: skip
