"""Share the frame of all stages: command line, params.yaml, exit codes, whole files."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from passfit.artifacts.failures import record_failure
from passfit.artifacts.places import REMAKE
from passfit.errors import ConfigError, NumericError, PassfitError, did_you_mean, environment_error
from passfit.memory.footprint import Budget
from passfit.params.params import Params, load_params
from passfit.support.interrupts import interruptible
from passfit.support.own_memory import collect_rarely
from passfit.support.text_files import decode, read_text, sorted_json
from passfit.targets import Target
from passfit.targets.catalogue import get_target

#: folder of all stages' results, relative to the repo
OUT = Path("out")

#: exit codes of the `passfit` command: bad usage or input; a bug, including a library with wrong outputs
BAD_INPUT, BUG = 2, 3


def run_stage(work: Callable[..., str | None], *arguments: str, argv: Sequence[str] | None = None) -> None:
    """Call `work(params, *values)` with params.yaml and the named command line arguments.

    DVC runs every stage in the folder of dvc.yaml, so all paths are relative to it. The process ends with the exit code of
    `attempt`, unless that is 0.
    """
    parser = argparse.ArgumentParser(description=work.__doc__)
    for name in arguments:
        parser.add_argument(name)
    values = vars(parser.parse_args(argv))
    prepare()
    if code := attempt(work, values):
        raise SystemExit(code)


def prepare() -> None:
    """Set up a process of stages: its log, and its collection of garbage."""
    logging.basicConfig(level=logging.WARNING, format="passfit: %(message)s")
    collect_rarely()


def attempt(work: Callable[..., str | None], values: Mapping[str, str], params: Params | None = None) -> int:
    """Call `work(params, *values)`, by default with params.yaml; return the exit code.

    A PassfitError becomes one line on stderr and exit code 2, a NumericError 3, Ctrl-C one line and 130. Any other exception
    is a bug: it keeps its traceback and exits with 3. The line returned by `work`, if any, is printed with the seconds taken.
    The message of a failure is kept for the gate.
    """

    def fail(message: str, code: int) -> int:
        record_failure(Path(), work.__name__, message, values.get("model"), values.get("target"))
        sys.stderr.write(f"passfit: {message}\n")
        return code

    record_failure(Path(), work.__name__, None, values.get("model"), values.get("target"))
    try:
        started = time.monotonic()
        with interruptible():
            line = work(params or load_params(Path("params.yaml")), *values.values())
        if line:
            sys.stdout.write(f"{line} ({time.monotonic() - started:.1f} s)\n")
    except PassfitError as error:
        return fail(str(error), BUG if isinstance(error, NumericError) else BAD_INPUT)
    except Exception as error:  # Python's own exit code is 1, reserved for a failed gate
        if used_up := environment_error(error):
            return fail(str(used_up), BAD_INPUT)
        traceback.print_exc()
        return fail("a bug in passfit. Report it with the lines above.", BUG)
    return 0


def entry(params: Params, section: str, name: str):
    """Return `models.NAME` or `targets.NAME` of params.yaml. Raises ConfigError with the nearest name."""
    known = getattr(params, section)
    if name not in known:
        raise ConfigError(f"params.yaml: {section}.{name} is missing.", did_you_mean(name, known))
    return known[name]


def budget_of(params: Params, model: str, target: str) -> Budget:
    """Return the budget of `model` on `target`. Raises ConfigError if either is not declared."""
    entry(params, "models", model)
    entry(params, "targets", target)
    return params.budget(model, target)


def target_of(params: Params, model: str, name: str, catalogue: Mapping[str, Target] | None = None) -> Target:
    """Return the device `name` with its choices in params.yaml, for a model. Raises TargetError; ConfigError for bad threads.

    `catalogue` is the repo's, if it was read already.
    """
    device = get_target(name, Path()) if catalogue is None else catalogue[name]
    return entry(params, "targets", name).apply(device, model)


def write_json(path: Path, data: dict) -> None:
    """Write `data` as JSON with sorted keys, atomically; a file that holds it already stays, so that DVC need not read it."""
    text = sorted_json(data)
    if path.is_file() and path.read_bytes() == text.encode():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def read_json(path: Path) -> dict:
    """Read the JSON object written by a stage. Raises ConfigError."""
    return decode(dict, read_text(path, REMAKE), str(path), REMAKE)


def copy_file(source: Path, path: Path) -> None:
    """Copy one file, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    shutil.copyfile(source, new)
    os.replace(new, path)
