"""Predict the footprint of other settings of a target, or of the model in int8; each is lowered and compiled, none is linked.

Imports TVM: only imported once a remedy is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import PassfitError
from ..frontend.imported_model import ImportedModel, load
from ..frontend.quantised.float_twin import has_numbers
from ..frontend.source.import_options import ImportOptions
from ..memory.footprint import Budget, Footprint
from ..quantise.judge import ChooseMetric, Judge, Samples
from ..quantise.prepare import prepare, write_model
from ..quantise.quantise_model import calibrated_on
from ..quantise.quantiser import Quantiser
from ..search.settings import SearchSettings, aim_of
from ..support.progress import silent
from ..support.temporary_folder import scratch_folder
from ..targets import Target, how_to_run
from ..verify.inputs import make_input
from .predict import EFFORT, SizePredictor
from .quick_plans import QuickPlan, quick_plans
from .remedies import INT8, Int8Reach, Remedy, Setting
from .verdict import FitVerdict, Sizes, TargetLimits

if TYPE_CHECKING:
    import onnx

#: least gain of flash, as a fraction: predictions of code are no better
_LEAST = 0.03
#: largest model to quantise or to build for a prediction, in bytes
_LARGEST = 32 << 20
#: samples that calibrate a prediction at most
CALIBRATED = 32


def in_int8(imported: ImportedModel, samples: Samples | None = None) -> onnx.ModelProto | None:
    """Return the model in int8 (QDQ), calibrated on samples, else on a random case; None if it cannot be.

    Sizes are those of any ranges; without samples, results mean nothing.
    """
    model = imported.drawn_for
    floats = [each for each in model.graph.initializer if each.data_type == each.FLOAT]
    if has_numbers(imported.onnx) or not floats or model.ByteSize() > _LARGEST:
        return None
    try:
        cases = [make_input(model, 0, 0)] if samples is None else calibrated_on(samples, CALIBRATED)
        return Quantiser(prepare(model), cases).quantise()
    except PassfitError:
        return None


def _load(quantised: onnx.ModelProto | None, name: str, io: str | None) -> ImportedModel | None:
    """Import a quantised model with the form `io` of inputs and outputs; None if it cannot have that."""
    if quantised is None:
        return None
    with scratch_folder() as folder, suppress(PassfitError):
        write_model(quantised, file := folder / f"{name}.onnx")
        return load(file, io=io)
    return None


def int8_remedy(
    name: str,
    quantised: onnx.ModelProto | None,
    target: Target,
    budget: Budget,
    settings: SearchSettings,
    stack: int = 0,
) -> Iterator[Remedy]:
    """Yield the model in int8 with its predicted sizes; `stack` in bytes counts where none is predicted."""
    twin = _load(quantised, name, None)
    if twin is None:
        return
    careful = _careful(settings)
    with _failures_skipped():
        plan = quick_plans(twin, target, careful, silent).plan(aim_of(careful, budget, target))
        sizes = SizePredictor(twin, plan, target, EFFORT).sizes(target)
        ram = sizes.ram if sizes.stack else sizes.ram + stack
        yield Remedy(INT8, (), ram, sizes.flash)


def _careful(settings: SearchSettings) -> SearchSettings:
    """Allow no slowdown: the fastest plan of a quick search is slower than that of a long one, which limits are relative to."""
    return settings if settings.max_slowdown is None else replace(settings, max_slowdown=1.0)


def quantised_sizes(
    target: Target, settings: SearchSettings, ports: ImportOptions
) -> Callable[[onnx.ModelProto], tuple[int, int] | None]:
    """Return a function that predicts ram and flash of a model by a quick plan; None where nothing can be compiled.

    `ports` are the choices of its import; integers are ports of a quantised model alone.
    """

    def predict(model: onnx.ModelProto) -> tuple[int, int] | None:
        with scratch_folder() as folder, _failures_skipped():
            write_model(model, file := folder / "model.onnx")
            imported = load(file, **(ports if has_numbers(model) else replace(ports, io=None)).keywords())
            plan = quick_plans(imported, target, settings, silent).chosen
            sizes = SizePredictor(imported, plan, target, EFFORT).sizes(target)
            return sizes.ram, sizes.flash
        return None

    return predict


def int8_reach(
    imported: ImportedModel, quantised: onnx.ModelProto | None, targets: Sequence[Target], limits: Mapping[str, TargetLimits], settings: SearchSettings,
    samples: Samples | None = None, choose: ChooseMetric | None = None,
) -> Int8Reach | None:  # fmt: skip
    """Return the first of `targets`, smallest first, that holds the model in int8; None if it gains nothing there.

    With samples the loss of all layers in int8 is measured.
    """
    io = "int8"
    twin = _load(quantised, imported.name, io)
    if twin is None:
        io, twin = "", _load(quantised, imported.name, None)
    if quantised is None or twin is None:
        return None
    with _failures_skipped():
        careful, predictors = _careful(settings), dict[QuickPlan, SizePredictor]()
        plans = quick_plans(twin, targets[0], careful, silent)
        for target in targets:
            within = Budget(limits[target.name].ram, limits[target.name].flash)
            plan = plans.plan(aim_of(careful, within, target))
            sizes = predictors.setdefault(plan, SizePredictor(twin, plan, targets[0], EFFORT)).sizes(target)
            if FitVerdict(target.name, sizes, limits[target.name]).fits:
                found = Int8Reach(target.name, sizes.ram, sizes.flash, io=io)
                if samples is None:
                    return found
                judge = Judge(imported.drawn_for, samples, choose)
                loss = judge.loss(judge.value(quantised))
                return replace(found, metric=judge.name, loss=loss, samples=judge.count)
    return None


@contextmanager
def _failures_skipped() -> Iterator[None]:
    """Skip the remedies of a block from the first that fails on: what cannot be predicted is not advised."""
    from ..passes.sequence.failures import failure_of

    try:
        yield
    except PassfitError:
        return
    except Exception as error:
        if failure_of(error) is None:
            raise


def smaller_code(imported: ImportedModel, target: Target, passes: tuple[str, ...], best: Footprint) -> Iterator[Remedy]:
    """Yield `opt: size`, if it lowers the flash of a library of these passes, with the footprint `best`."""

    def sizes(device: Target) -> Sizes:
        return SizePredictor(imported, QuickPlan(passes, 0, 0, 0, 0.0, 0.0), device).own_sizes(device)

    if imported.onnx.ByteSize() > _LARGEST or target.opt == "size":
        return
    with _failures_skipped():
        now, compact = sizes(target), sizes(target.with_opt("size"))
        flash = best.flash - now.flash + compact.flash
        if flash < (1 - _LEAST) * best.flash:
            setting = Setting(f"targets.{target.name}", "opt", "size")
            yield Remedy("smaller code", (setting,), best.ram - now.ram + compact.ram, flash)


def timed_remedies(
    imported: ImportedModel,
    target: Target,
    passes: tuple[str, ...],
    best: Footprint,
    quantity: str,
    faster: Iterable[Remedy],
) -> Iterator[Remedy]:
    """Yield remedies that make a library of these passes faster, each with its "latency" or "instructions" by a run.

    These are other plans, `faster` by the model of cycles, and `opt: speed`. Libraries are built anew: so both times are this machine's.
    """
    from ..kernels.schedule.tuned import Tuning
    from ..passes.sequence.sequence import Sequence
    from ..verify.build_plan import build_plan
    from ..verify.settings import VerifySettings

    def run(plan: tuple[str, ...], device: Target) -> tuple[float, int]:
        with scratch_folder() as folder:
            built = build_plan(imported, Sequence.parse(plan), Tuning(), None, device, folder, VerifySettings(cases=1))
        measured = built.measured
        time = measured.latency_ms if quantity == "latency" else measured.instructions
        return time or 0.0, built.library.code_bytes + built.lowered.program.weight_bytes

    if how_to_run(target).command is None or imported.onnx.ByteSize() > _LARGEST:
        return
    tried = [(each, each.passes, target) for each in faster]
    if target.opt != "speed":
        setting = Setting(f"targets.{target.name}", "opt", "speed")
        tried.append((Remedy("larger code", (setting,), best.ram, best.flash), passes, target.with_opt("speed")))
    with _failures_skipped():
        now, flash = run(passes, target)
        for remedy, plan, device in tried:
            then, size = run(plan, device)
            if now and then:
                yield replace(remedy, time=then / now, flash=best.flash - flash + size)
