"""Command line options of the form NAME=VALUE, read into what the api takes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from ..errors import ConfigError, did_you_mean
from ..memory.footprint import Budget
from ..support.latency_limit import LatencyLimit, parse_latency
from ..support.sizes import parse_size


def shapes(items: Iterable[str] | None) -> dict[str, tuple[int, ...]]:
    """`INPUT=1x3x320x320`. An input's name may hold `=`: the last one counts."""
    found = {}
    for item in items or ():
        name, equals, text = item.rpartition("=")
        if not equals or not name or not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", text):
            raise ConfigError(f"--shape {item}: not a shape.", "Write it like --shape input=1x3x320x320.")
        found[name] = tuple(int(extent) for extent in text.split("x"))
    return found


def fixed(items: Iterable[str] | None) -> dict[str, object]:
    """`INPUT=VALUE`, the value a number, a truth value or a list of them in JSON."""
    found = {}
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


def budget(items: Iterable[str] | None) -> Budget:
    """`ram=8MiB` and `flash=16MiB`."""
    limits: dict[str, int] = {}
    for item in items or ():
        quantity, equals, text = item.partition("=")
        if quantity not in ("ram", "flash") or not equals:
            raise ConfigError(f"--budget {item}: not a budget.", did_you_mean(quantity, ("ram", "flash")))
        try:
            limits[quantity] = parse_size(text)
        except ConfigError as error:
            raise ConfigError(f"--budget {item}: {error.what}", error.hint) from error
    return Budget(**limits)


def latency(text: str | None) -> LatencyLimit | None:
    """`20ms` or `1.5x`."""
    if text is None:
        return None
    try:
        return parse_latency(text)
    except ConfigError as error:
        raise ConfigError(f"--max-latency: {error.what}", error.hint) from error
