"""Parse NAME=VALUE options into arguments of the api."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import typer

from ..errors import ConfigError, did_you_mean
from ..memory.footprint import Budget
from ..params.latency_limit import LatencyLimit, parse_latency
from ..params.ports import EXAMPLES, InputPort, OutputPort, port_of
from ..support.sizes import parse_size


def number(value: float | None) -> float | None:
    """Refuse NaN, which is in every range to older typers. Raises typer.BadParameter."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value


def folder(text: str) -> Path:
    """Read the path of a folder; an empty one, as of an unset variable, is not this folder. Raises typer.BadParameter."""
    if not text:
        raise typer.BadParameter("it is empty. This folder is called '.'.")
    return Path(text)


def shapes(items: Iterable[str] | None) -> dict[str, tuple[int, ...]]:
    """Parse `INPUT=1x3x320x320` into shapes by input.

    Input names may contain `=`: the last one separates. Raises ConfigError.
    """
    found = {}
    for item in items or ():
        name, equals, text = item.rpartition("=")
        if not equals or not name or not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", text):
            raise ConfigError(f"--shape {item}: not a shape.", "Write it like --shape input=1x3x320x320.")
        found[name] = tuple(int(extent) for extent in text.split("x"))
    return found


def fixed(items: Iterable[str] | None) -> dict[str, object]:
    """Parse `INPUT=VALUE` into constants by input.

    VALUE is a JSON number, boolean, or list of these. Raises ConfigError.
    """
    found: dict[str, object] = {}
    for item in items or ():
        name, equals, text = item.partition("=")
        try:
            value = json.loads(text) if equals and name else None
        except json.JSONDecodeError:
            value = None
        if not isinstance(value, (bool, int, float, list)):
            raise ConfigError(f"--fix {item}: not a value.", "Write it like --fix rate=16000 or --fix scale=[1,2].")
        found[name] = value
    return found


def bounds(items: Iterable[str] | None) -> dict[str, int]:
    """Parse `NAME=300` into bounds by name. Raises ConfigError."""
    found: dict[str, int] = {}
    for item in items or ():
        name, equals, text = item.rpartition("=")
        if not equals or not name or not re.fullmatch(r"[1-9]\d*", text):
            raise ConfigError(f"--bound {item}: not a bound.", "Write it like --bound boxes=300.")
        if found.get(name, int(text)) != int(text):
            raise ConfigError(f"--bound {item}: '{name}' has the bound {found[name]} already.", "Give one of them.")
        found[name] = int(text)
    return found


def inputs(items: Iterable[str] | None) -> dict[str, InputPort]:
    """Parse `INPUT=FORM` into forms by input: see `params/ports.py`. Raises ConfigError."""
    found = {}
    for item in items or ():
        name, form = _split(item, InputPort)
        found[name] = port_of(InputPort, form, name) if form else None
        if not found[name]:
            raise ConfigError(f"--input {item}: no form.", f"Write it like --input {EXAMPLES[InputPort]}.")
    return {name: port for name, port in found.items() if port is not None}


def outputs(items: Iterable[str] | None) -> dict[str, OutputPort]:
    """Parse `NAME` or `NAME=FORM` into forms by output: see `params/ports.py`. Raises ConfigError."""
    chosen = (_split(item, OutputPort) for item in items or ())
    return {name: port_of(OutputPort, form, name) for name, form in chosen}


def _split(item: str, kind: type[InputPort] | type[OutputPort]) -> tuple[str, str]:
    """Split `NAME=FORM` at the first `=` before a form; either may contain more. Without a form all is a name."""
    for place in (index for index, sign in enumerate(item) if sign == "="):
        with suppress(ConfigError):
            port_of(kind, item[place + 1 :], item[:place])
            return item[:place], item[place + 1 :]
    return (item, "") if kind is OutputPort else (item.partition("=")[0], item.partition("=")[2])


def budget(items: Iterable[str] | None, memories: Iterable[str] = ()) -> tuple[Budget, dict[str, int]]:
    """Parse `ram=8MiB`, `flash=16MiB`, and limits of `memories` by name, such as `dtcm=64KiB`. Raises ConfigError."""
    known = dict.fromkeys(("ram", "flash", *memories))
    limits: dict[str, int] = {}
    for item in items or ():
        quantity, equals, text = item.partition("=")
        if quantity not in known or not equals:
            near = did_you_mean(quantity, known) if quantity not in known else f"Write it like {quantity}=512KiB."
            raise ConfigError(f"--budget {item}: not a budget.", near)
        if quantity in limits:
            raise ConfigError(f"--budget {item}: {quantity} has a budget already.", "Give one for each memory.")
        try:
            limits[quantity] = parse_size(text)
        except ConfigError as error:
            raise ConfigError(f"--budget {item}: {error.what}", error.hint) from error
    return Budget(limits.pop("ram", None), limits.pop("flash", None)), limits


def slowdown(text: str) -> float | None:
    """Parse a factor such as `1.25`; None for `none`. Raises ConfigError."""
    if text == "none":
        return None
    factor = math.nan
    with suppress(ValueError):
        factor = float(text)
    if math.isnan(factor):
        raise ConfigError(f"--max-slowdown {text}: not a number.", "Write a factor such as 1.25, or none.")
    return factor


def latency(text: str | None) -> LatencyLimit | None:
    """Parse `20ms` or `1.5x`; None without a limit. Raises ConfigError."""
    if text is None:
        return None
    try:
        return parse_latency(text)
    except ConfigError as error:
        raise ConfigError(f"--max-latency: {error.what}", error.hint) from error
