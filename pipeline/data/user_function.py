"""Load a function of the user's own, `FILE.py:function`; its errors name the line of the user's file."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import ConfigError, PassfitError, did_you_mean


def split_function(source: str) -> tuple[str, str]:
    """Return file and function of `FILE.py:function`; any other source is a file."""
    file, _, name = source.rpartition(":")
    return (file, name) if file.endswith(".py") and name.isidentifier() else (source, "")


def is_function(source: str) -> bool:
    """Return whether a source names a function of a Python file."""
    return bool(split_function(source)[1])


def load_function(source: str) -> Callable[..., Any]:
    """Run the file of `FILE.py:function` and return the function. Raises ConfigError."""
    file, name = split_function(source)
    path = Path(file)
    if not path.is_file():
        raise ConfigError(f"'{file}' is missing: '{source}' names a function in it.", "Correct the path.")
    module = ModuleType(f"passfit_user_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # as dataclasses in it want
    folder = str(path.parent.absolute())
    with users_errors(path):
        sys.path.insert(0, folder)  # modules next to it
        try:
            # no import, which writes bytecode into the user's folder, and may take that of the file before
            exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
        finally:
            sys.path.remove(folder)
    function = getattr(module, name, None)
    if not callable(function):
        known = [word for word, value in vars(module).items() if callable(value) and not word.startswith("_")]
        raise ConfigError(f"'{file}' has no function '{name}'.", did_you_mean(name, known) or "Define it there.")
    return function


@contextmanager
def users_errors(path: Path) -> Iterator[None]:
    """Turn any error of the user's code into a ConfigError that names its last line in `path`."""
    try:
        yield
    except PassfitError:
        raise
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        lines = [
            each.lineno
            for each in traceback.extract_tb(error.__traceback__)
            if Path(each.filename).resolve() == path.resolve()
        ]
        if isinstance(error, SyntaxError) and Path(str(error.filename)).resolve() == path.resolve():
            lines.append(error.lineno)
        where = f", line {lines[-1]}" if lines else ""
        raise ConfigError(f"'{path}'{where}: {type(error).__name__}: {error}", "Correct the function.") from error
