"""Define the `passfit` command: its subcommands, and the exit code of each error."""

from __future__ import annotations

import sys
import traceback

import typer

from ..errors import NumericError, PassfitError, PlanError, environment_error
from ..support.interrupts import interruptible
from ..support.rare_collection import collect_rarely
from .model_commands import compile_, image, learn, optimize, profile, tune
from .output import BAD_INPUT, BUG
from .repo_commands import add, gate, init, track
from .report_commands import compare, report
from .table_commands import explain, passes, rebench, targets

app = typer.Typer(
    name="passfit",
    help="Compile ONNX models into C libraries that fit a device, and prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (init, add, optimize):
    app.command()(command)
app.command(name="compile")(compile_)
for command in (image, tune, profile, learn, gate, track, explain, report, compare, passes, targets):
    app.command()(command)

bench = typer.Typer(help="Run the comparisons in the README.", no_args_is_help=True)
bench.command()(rebench)
app.add_typer(bench, name="bench")


def main() -> None:
    """Run the command; turn errors into exit codes.

    User errors: one line on stderr, exit code 2. Bugs: a traceback, exit code 3. Ctrl-C: 130; a termination signal: 128
    + its number (see `support/interrupts.py`).
    """
    collect_rarely()
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
