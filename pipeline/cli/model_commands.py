"""Commands on models: optimize, compile, image, package, quantize, tune, profile, learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from ..quantise.quantise_model import QuantiseSettings
from ..support.strictness import STRICT, be_strict
from ..tuning.settings import TuneSettings
from . import options
from .option_groups import (
    BuildOptions,
    CalibrationOption,
    DataOption,
    Evaluations,
    LibraryOptions,
    MaxAccuracyLoss,
    MetricOption,
    Model,
    ModelOptions,
    Out,
    Seed,
    SequenceFile,
    TargetName,
    grouped,
)  # fmt: skip
from .output import print_table, show_report

if TYPE_CHECKING:
    from ..memory.footprint import FootprintReport


@grouped
def optimize(build: BuildOptions) -> None:
    """Search the sequence of passes with the smallest footprint, or the fastest within a budget.

    Exit code 1: the predicted footprint exceeds --budget, or the device's capacity.
    All results are written either way.
    """
    from .. import api

    if build.samples.data is not None and not build.search.allow_lossy:
        raise ConfigError("--data is to quantise by what does not fit, which loses something.", "Add --allow-lossy.")
    report = _make(build, api.optimize, build.samples.consent(build.search))
    show_report(report, build.out, front=build.search.max_latency is not None)


@grouped
def compile_(
    build: BuildOptions,
    library: LibraryOptions,
    tuning: Annotated[
        Path | None, typer.Option("--tuning", help="apply this tuning.json of `passfit tune`; default: none")
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="fail on a plan or a comparison that crashes, or a plan that computes wrong, instead of building the next best",
            envvar=STRICT,
        ),
    ] = False,
) -> None:
    """Build the library, run it, compare it with ONNX Runtime, measure it.

    Exit code 1: the footprint exceeds --budget, or the device's capacity.
    All results are written either way.
    """
    if strict:
        be_strict()
    _compile(build, library, tuning=tuning)


@grouped
def image(build: BuildOptions, library: LibraryOptions) -> None:
    """Link the library into an image that boots without an operating system, and run it under an emulator.

    Writes what `compile` does, and the image with its map, its sources, and the inputs and outputs of a run. Exit code 1: the
    image exceeds --budget, or the device's memories.
    """
    target = build.device.device()
    if not target.bare:
        raise ConfigError(
            f"{target.name} has an operating system, which loads programs.",
            "Use `passfit compile`, or a target that has memories.",
        )
    _compile(build, library, image=True)


def _compile(build: BuildOptions, library: LibraryOptions, *, tuning: Path | None = None, image: bool = False) -> None:
    """Build and verify a library, keep its `image` and source, write its packages; show the report."""
    from .. import api
    from ..package import check_folder, write_package

    packages = [(kind, build.out / "package" / kind) for kind in library.package or []]
    for kind, folder in packages:
        check_folder(folder, kind, build.device.device())
    verify = api.VerifySettings(
        seed=build.search.seed, max_error=build.search.max_error, image=image, source=library.source
    )
    made = partial(api.compile_model, sequence=library.sequence, tuning=tuning, verify=verify, data=build.samples.data)
    searched = library.sequence is None
    report = _make(build, made, build.samples.consent(build.search) if searched else None)
    for kind, folder in packages:
        write_package(build.out, kind, folder, over_any=True)
    show_report(report, build.out, searched=searched, front=build.search.max_latency is not None)


def _make(build: BuildOptions, make: Callable[..., FootprintReport], consent: str | None) -> FootprintReport:
    """Make a result by `make`, of a model quantised by the samples `consent` where it does not fit."""
    from .. import api
    from ..report.progress import console_progress

    with console_progress() as progress:
        target = build.device.device()
        made = partial(
            make, target=target, budget=build.device.limits(), out=build.out,
            search=build.search.settings(), progress=progress,
        )  # fmt: skip
        return api.build_within(
            made, build.model, consent, target, build.out, progress=progress, **build.samples.keywords(), **build.given.keywords(),
        )  # fmt: skip


def package(
    folder: Annotated[
        Path, typer.Argument(help="result folder of `passfit compile` or `passfit image`", metavar="DIR")
    ],
    kind: Annotated[
        str, typer.Option("--kind", help="build system: cmake, zephyr, platformio, arduino, cmsis-pack or esp-idf")
    ],
    out: Out,
    version: Annotated[
        str, typer.Option("--version", help="version of the package, as its build system shows it")
    ] = "1.0.0",
    cases: Annotated[
        int, typer.Option("--cases", min=1, help="golden vectors of at most this many cases in the self test")
    ] = 1,
    author: Annotated[
        str, typer.Option("--author", help="author of the package, as its build system shows it")
    ] = "passfit",
    url: Annotated[
        str, typer.Option("--url", help="page of the package, as its build system shows it")
    ] = "https://example.com/",
    source: Annotated[
        bool,
        typer.Option(
            "--source", help="C and assembly instead of the archive, of a result of `passfit compile --source`"
        ),
    ] = False,
) -> None:
    """Package a library for a build system, with an example and a self test over golden vectors."""
    from ..package import write_package

    write_package(folder, kind, out, version, cases, author=author, url=url, source=source)
    typer.echo(f"wrote {out}: see {out / 'README.md'}")


@grouped
def quantize(
    model: Model,
    given: ModelOptions,
    out: Annotated[
        Path,
        typer.Option("--out", help="write the quantised model to this file, quantize.json and curve.svg next to it"),
    ],
    data: DataOption = None,
    form: Annotated[
        str,
        typer.Option("--form", help="int8 (layers and weights), float16, or weights alone: int8-weights, int4-weights"),
    ] = QuantiseSettings.form,
    max_accuracy_loss: MaxAccuracyLoss = QuantiseSettings.max_loss,
    method: Annotated[
        str, typer.Option("--method", help="ranges by `minmax`, `entropy` or `percentile`")
    ] = QuantiseSettings.method,
    samples: Annotated[
        int, typer.Option("--samples", min=1, help="calibrate with at most this many samples, spread over all")
    ] = QuantiseSettings.samples,
    calibration: CalibrationOption = None,
    metric: MetricOption = None,
    target: Annotated[
        str,
        typer.Option("--target", help="predict ram and flash for this device; `none`: for no device, which is faster"),
    ] = "mps2-an386",
) -> None:
    """Quantise a float model by samples, within a loss of accuracy.

    With labels the loss is that of the metric, else that of decisions, else the error of the outputs.
    """
    from .. import api
    from ..report.pages.quantise_table import quantise_table
    from ..report.progress import console_progress
    from ..targets.catalogue import get_target

    settings = QuantiseSettings(form, method, samples, max_accuracy_loss, given.io or QuantiseSettings.io)
    device = None if target == "none" else get_target(target, Path())
    keywords = given.keywords()
    del keywords["io"]
    name = keywords.pop("name") or Path(model.rpartition("!")[2]).stem
    with console_progress() as progress:
        found = api.quantize(
            model, data, out, settings=settings, target=device, metric=metric, calibration=calibration,
            progress=progress, **keywords,
        )  # fmt: skip
    print_table(quantise_table(found, name))
    typer.echo(f"wrote {out}" + (": compile it with --io int8" if settings.io == "int8" else ""))


@grouped
def tune(
    model: Model,
    target: TargetName,
    out: Annotated[Path, typer.Option("--out", help="write tuning.json to this file")],
    given: ModelOptions,
    sequence: SequenceFile = None,
    seconds: Annotated[
        float,
        typer.Option("--seconds", min=0.0, callback=options.number, help="tune for this many seconds; 0: tune nothing"),
    ] = TuneSettings.seconds,
    trials: Annotated[
        int, typer.Option("--trials", min=0, help="let MetaSchedule measure at most this many schedules per kernel")
    ] = TuneSettings.trials,
    seed: Seed = TuneSettings.seed,
) -> None:
    """Tune layouts and the schedules of the slowest kernels, for `compile --tuning`."""
    from .. import api
    from ..report.progress import console_progress
    from ..report.tuning_table import tuning_table
    from ..targets.catalogue import get_target

    with console_progress() as progress:
        found = api.tune(
            model, get_target(target, Path()), out, sequence=sequence, settings=api.TuneSettings(seconds, seed, trials),
            search=api.SearchSettings(seed=seed), progress=progress, **given.keywords(),
        )  # fmt: skip
    print_table(tuning_table(found))


@grouped
def profile(
    model: Model,
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="write effects.json to this file, and its picture beside it; kernels.json with --kernels"
        ),
    ],
    given: ModelOptions,
    target: TargetName = "x86-64",
    kernels: Annotated[
        bool, typer.Option("--kernels", help="time the kernels of the library beside their rooflines instead")
    ] = False,
    sequence: SequenceFile = None,
) -> None:
    """Measure each pass alone and after every other, or with --kernels each kernel of the library."""
    import time

    from .. import api
    from ..report.effects_table import effects_table
    from ..report.kernels_table import kernels_table
    from ..report.progress import console_progress
    from ..targets.catalogue import get_target

    device = get_target(target, Path())
    if sequence is not None and not kernels:
        raise ConfigError(
            "--sequence goes with --kernels: passes are profiled on the model as imported.", "Add --kernels."
        )
    with console_progress() as progress:
        if kernels:
            found = api.profile_kernels(model, device, out, sequence=sequence, progress=progress, **given.keywords())
            shown = kernels_table(found)
        else:
            started = time.monotonic()
            clock: dict[str, float] = {}
            found = api.profile(model, device, out, progress=progress, clock=clock, **given.keywords())
            shown = effects_table(found, time.monotonic() - started, clock)
    print_table(shown)


@grouped
def learn(
    models: Annotated[list[str], typer.Argument(help="models: paths or pypi: sources", metavar="MODEL...")],
    out: Annotated[Path, typer.Option("--out", help="add to this knowledge file; created if missing")],
    given: ModelOptions,
    target: TargetName = "x86-64",
    evaluations: Evaluations = 256,
) -> None:
    """Explore models, and record the results for searches on other models."""
    from .. import api
    from ..report.progress import console_progress
    from ..report.search_table import knowledge_table
    from ..targets.catalogue import get_target

    with console_progress() as progress:
        knowledge = api.learn(
            models, get_target(target, Path()), out, evaluations=evaluations, progress=progress, **given.keywords()
        )
    print_table(knowledge_table(knowledge))
