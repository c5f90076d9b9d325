"""Define the `passfit` command: its subcommands, and the exit code of each error."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from ..errors import NumericError, PassfitError, PlanError, environment_error
from ..support.interrupts import interruptible
from ..support.own_memory import collect_rarely
from .completions import complete_values
from .evaluate_command import evaluate
from .fit_command import fit
from .model_commands import compile_, image, learn, optimize, package, profile, quantize, tune
from .output import BAD_INPUT, BUG, CLOSED_PIPE
from .repo_commands import add, gate, init, remove, track
from .report_commands import compare, report
from .table_commands import explain, passes, rebench, targets

app = typer.Typer(
    name="passfit",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"passfit {version('passfit')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="show the version and exit")
    ] = False,
) -> None:
    """Compile ONNX models into C libraries that fit a device, and prove it."""


for command in (init, add, remove, optimize):
    app.command()(complete_values(command))
app.command(name="compile")(complete_values(compile_))
for command in (
    evaluate,
    fit,
    image,
    package,
    quantize,
    tune,
    profile,
    learn,
    gate,
    track,
    explain,
    report,
    compare,
    passes,
    targets,
):
    app.command()(complete_values(command))

bench = typer.Typer(help="Run the comparisons in the README.", no_args_is_help=True)
bench.command()(complete_values(rebench))
app.add_typer(bench, name="bench")


def main() -> None:
    """Run the command; turn errors into exit codes.

    User errors: one line on stderr, exit code 2. Bugs: a traceback, exit code 3. Ctrl-C: 130; a termination signal: 128
    + its number (see `support/interrupts.py`). A reader that closes stdout ends it as SIGPIPE would: 141.
    """
    collect_rarely()
    logging.basicConfig(level=logging.WARNING, format="passfit: %(message)s")
    if sys.stdout is None or sys.stderr is None:  # the caller closed it
        nowhere = Path(os.devnull).open("w")  # noqa: SIM115  until the process ends
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    try:
        with interruptible():
            app(prog_name="passfit")
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError) or _stdout_is_closed():
            raise SystemExit(CLOSED_PIPE) from None  # libraries exit with 1, which is the gate's
        raise
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


def _stdout_is_closed() -> bool:
    """Return whether the reader of stdout is gone; drop it then, or Python would complain at its end."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def _fail(message: str, code: int) -> None:
    sys.stderr.write(f"passfit: {message}\n")
    raise SystemExit(code)


if __name__ == "__main__":
    main()
