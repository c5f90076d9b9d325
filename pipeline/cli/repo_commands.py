"""Commands on a model repo: init, add, gate, track."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError, PassfitError
from . import options
from .option_groups import BoundOption, CalibrationOption, InputOption, IoOption, NameOption, OutputOption, ShapeOption

DataOption = Annotated[
    str | None,
    typer.Option(
        "--data", help="samples of the models, with labels if there are any: an .npz, .npy, folder or FILE.py:function"
    ),
]

QuantizeOption = Annotated[
    str | None,
    typer.Option("--quantize", help="quantise the models by --data: int8, float16, int8-weights or int4-weights"),
]


def init(
    model: Annotated[
        list[str] | None, typer.Option("--model", help="model in this repo, or pypi: source; repeatable")
    ] = None,
    target: Annotated[list[str] | None, typer.Option("--target", help="device; repeatable")] = None,
    shape: ShapeOption = None,
    bound: BoundOption = None,
    input_: InputOption = None,
    output: OutputOption = None,
    io: IoOption = None,
    data: DataOption = None,
    quantize: QuantizeOption = None,
    calibration: CalibrationOption = None,
    folder: Annotated[
        Path, typer.Option("--folder", help="write into this folder, beside a dvc.yaml of your own")
    ] = Path(),
    merge: Annotated[
        bool, typer.Option("--merge", help="append to the dvc.yaml and params.yaml that are there, and show the diff")
    ] = False,
    ci: Annotated[
        str | None, typer.Option("--ci", help="write a file that runs the gate and comments: github or gitlab")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite files that are there, and show the diff")] = False,
) -> None:
    """Write dvc.yaml and params.yaml into this git and DVC repo.

    With --ci alone, write only the file for CI.
    """
    from ..scaffold import check_service, init_repo, write_ci

    if merge and force:
        raise ConfigError("--merge keeps what is there, and --force replaces it.", "Give one of them.")
    if ci is not None:
        check_service(ci)
    if model or target or ci is None:
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            written = init_repo(
                folder, model or [], target or [], options.shapes(shape), force, merge, typer.echo, data=data,
                quantize=quantize, calibration=calibration, bounds=options.bounds(bound), inputs=options.inputs(input_), outputs=options.outputs(output), io=io,
            )  # fmt: skip
        except PassfitError:
            if made:
                folder.rmdir()
            raise
        for path in written:
            typer.echo(f"wrote {path}")
        there = f"`cd {folder}`, " if folder != Path() else ""
        typer.echo(f"Next: {there}`dvc repro --keep-going`, then `passfit gate`.")
    if ci is not None:
        files, next_step = write_ci(folder, ci, force)
        for path in files:
            typer.echo(f"wrote {folder / path}")
        typer.echo(f"Next, for CI: {next_step}.")


def add(
    model: Annotated[list[str] | None, typer.Argument(help="models in this repo, or pypi: sources")] = None,
    target: Annotated[list[str] | None, typer.Option("--target", help="device; repeatable")] = None,
    shape: ShapeOption = None,
    bound: BoundOption = None,
    input_: InputOption = None,
    output: OutputOption = None,
    io: IoOption = None,
    data: DataOption = None,
    quantize: QuantizeOption = None,
    calibration: CalibrationOption = None,
    name: NameOption = None,
) -> None:
    """Add models and targets to params.yaml and dvc.yaml; samples to models that are there too."""
    from ..scaffold import add_to_repo

    written = add_to_repo(
        Path(), model or [], target or [], options.shapes(shape), name, data=data, quantize=quantize,
        calibration=calibration, bounds=options.bounds(bound), inputs=options.inputs(input_), outputs=options.outputs(output), io=io,
    )  # fmt: skip
    for path in written:
        typer.echo(f"wrote {path}")
    typer.echo(
        "Next: `dvc repro --keep-going`, then `passfit gate`."
        if written
        else "Nothing to add: all is declared already."
    )


def remove(
    model: Annotated[list[str] | None, typer.Argument(help="models of params.yaml, by name or file")] = None,
    target: Annotated[list[str] | None, typer.Option("--target", help="device; repeatable")] = None,
) -> None:
    """Take models and targets out of params.yaml and dvc.yaml."""
    from ..scaffold import remove_from_repo

    written, left = remove_from_repo(Path(), model or [], target or [])
    for path in written:
        typer.echo(f"wrote {path}")
    if left:
        typer.echo(f"Results that remain on disk: {', '.join(map(str, left))}")
        typer.echo("Next: delete them (`git rm -r` those in footprints/), then `dvc repro --keep-going`.")


def gate(
    against: Annotated[
        str | None, typer.Option("--against", help="compare with this git revision; default: none")
    ] = None,
    max_growth: Annotated[
        str | None, typer.Option("--max-growth", help="limit the growth over --against: 5% or 16KiB; default: 5%")
    ] = None,
    format: Annotated[str, typer.Option("--format", help="output format: text, md, junit, github or json")] = "text",
    explain: Annotated[
        bool, typer.Option("--explain", help="name the ONNX node behind each failure, and the next lever")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="show every row; default: failures, and each pair's tightest limit")
    ] = False,
) -> None:
    """Check every footprint, and every accuracy, against its limits.

    Exit code 0: all hold.
    Exit code 1: a limit is exceeded.
    Exit code 2: a check is impossible (no data, stale or altered data, no such revision).

    A result is stale if the model, its side files or params.yaml have changed since.
    It is altered if one of its own files has.
    An accuracy is stale if its samples, their settings or the library have changed since.
    Growth is checked for the models and targets declared at --against.
    Models and targets added since are noted.
    """
    from ..gate import run_gate

    result = run_gate(Path(), against=against, max_growth=max_growth, format=format, explain=explain, every=every)
    typer.echo(result.text.rstrip("\n"))
    raise typer.Exit(result.exit_code)


def track(
    register: Annotated[
        bool, typer.Option("--register", help="register what the gate passes as versions of MLflow's models")
    ] = False,
) -> None:
    """Log all results on disk to MLflow; skip those already logged.

    With --register, each result that the gate passes becomes a version of the registered model of its name.
    The alias champion-TARGET moves to it, and champion to one that this machine can serve.
    Exit code 1: a result was refused: it fails the gate, or is of a DVC experiment.
    Exit code 2: MLflow could not register one.
    """
    from ..gate import why_refused
    from ..params.params import load_params
    from ..tracking import track as log

    params = load_params(Path("params.yaml"))
    result = log(Path(), params, why_refused(Path(), params) if register else None)
    for run in result.runs:
        typer.echo(f"{'logged' if run.new else 'already logged'}: {run.name}")
    for link in result.links:
        typer.echo(link)
    for line in (*result.refused, *result.warnings):
        typer.echo(f"passfit: {line}", err=True)
    if register and (result.warnings or result.refused):
        raise typer.Exit(2 if result.warnings else 1)
