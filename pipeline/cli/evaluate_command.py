"""The command `evaluate`: how good a model's library is on the user's samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError
from .model_commands import Model
from .option_groups import ModelOptions, grouped
from .output import print_table

Data = Annotated[
    str, typer.Option("--data", help="samples: an .npz, .npy, a folder of one file a sample, or FILE.py:function")
]


@grouped
def evaluate(
    model: Model,
    data: Data,
    given: ModelOptions,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", help="device of a library to compile and run; repeatable; default: this machine"),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="accuracy, top-5, f1, auc, … or FILE.py:function; default: that of the labels"),
    ] = None,
    samples: Annotated[
        int | None, typer.Option("--samples", min=1, help="run at most so many samples, evenly spread; default: all")
    ] = None,
    emulated: Annotated[
        int, typer.Option("--emulated", min=1, help="run at most so many of them under an emulator, or on a device")
    ] = 64,
    original: Annotated[
        str | None, typer.Option("--original", help="float model behind a quantised one, to compare with, too")
    ] = None,
    result: Annotated[
        Path | None,
        typer.Option("--result", help="run the library in this folder of `passfit compile`; default: compile one"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="write accuracy.json to this folder, by target if there are several; default: --result"
        ),
    ] = None,
) -> None:
    """Compare the accuracy of a model's file and of its executed library on samples.

    Decisions are compared with the file's in ONNX Runtime; with labels, the metric tells how many are right.
    """
    from .. import api
    from ..artifacts.places import ACCURACY
    from ..artifacts.write import write_accuracy
    from ..evaluate.open_result import open_result
    from ..report.accuracy_table import accuracy_tables
    from ..report.progress import console_progress
    from ..targets.catalogue import get_target

    if result is not None and target:
        raise ConfigError("--result is the library of a target.", "Omit --target.")
    names = [str(open_result(result).manifest["target"])] if result is not None else target or [_this_machine()]
    targets = [get_target(each, Path()) for each in names]
    settings = api.EvaluateSettings(metric, samples, emulated)
    remarks: list[str] = []
    with console_progress() as progress:
        reports = api.evaluate(
            model, targets, data, result=result, original=original, settings=settings, progress=progress,
            remark=remarks.append, **given.keywords(),
        )  # fmt: skip
    if (folder := out or result) is not None:
        for report in reports:
            write_accuracy(report, (folder / report.target if len(reports) > 1 else folder) / ACCURACY)
    for table in accuracy_tables(reports):
        print_table(table)
    for text in remarks:
        typer.echo(text)


def _this_machine() -> str:
    """Return the target that runs here natively. Raises ConfigError."""
    from ..targets.native import native_target

    found = native_target()
    if found is None:
        raise ConfigError("No target of the catalogue runs natively on this machine.", "Give one with --target.")
    return found.name
