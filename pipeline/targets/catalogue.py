"""Read the catalogue of targets: catalogue.toml, and the additions of a model repo.

Those are `[tool.passfit.targets]` of its pyproject.toml, and `boards` of its params.yaml, which win.
"""

from __future__ import annotations

import functools
import re
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import tomli

from ..errors import PassfitError, TargetError, did_you_mean
from ..support.sizes import parse_size
from ..support.yaml_file import read_yaml
from .desk import read_runner
from .memory import Kind, read_memories, select_kind
from .target import Target

_CATALOGUE = Path(__file__).with_name("catalogue.toml")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_SIZES = ("ram", "flash")
_KEYS = tuple(f.name for f in fields(Target) if f.name not in ("name", "threads", "opt", "index_checks"))
_REQUIRED = tuple(f.name for f in fields(Target) if f.default is MISSING and f.name != "name")


def load_catalogue(repo: Path | None = None) -> dict[str, Target]:
    """Read every target by name: passfit's own, then those of `repo`.

    The repo's targets may replace passfit's. An entry with `base` inherits its missing keys, from another entry or from
    passfit's entry of its own name. Raises TargetError for a malformed entry, naming file, entry and key.
    """
    builtin, own = _own()
    entries, origin = dict(builtin), dict.fromkeys(builtin, _CATALOGUE.name)
    project = repo / "pyproject.toml" if repo is not None else None
    if project is not None and project.is_file():
        added = _read(project)
        for key in ("tool", "passfit", "targets"):
            added = _table(added.get(key, {}), f"[tool.passfit.targets] of {project}")
        entries |= added
        origin |= dict.fromkeys(added, str(project))
    params = repo / "params.yaml" if repo is not None else None
    if params is not None and params.is_file():
        content = read_yaml(params)
        boards = _table(content.get("boards") or {}, f"boards of {params}") if isinstance(content, dict) else {}
        entries |= boards
        origin |= dict.fromkeys(boards, str(params))
    if all(each is builtin.get(name) for name, each in entries.items()):
        return dict(own)
    return {name: _target(name, entries, builtin, origin[name]) for name in entries}


@functools.cache
def _own() -> tuple[dict[str, Any], dict[str, Target]]:
    """Read passfit's own entries and their targets, once in a process."""
    entries = _read(_CATALOGUE)
    return entries, {name: _target(name, entries, entries, _CATALOGUE.name) for name in entries}


def get_target(name: str, repo: Path | None = None) -> Target:
    """Return the target called `name`. Raises TargetError naming the nearest one."""
    catalogue = load_catalogue(repo)
    if name not in catalogue:
        raise TargetError(f"There is no target '{name}'.", did_you_mean(name, catalogue))
    return catalogue[name]


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomli.loads(path.read_text(encoding="utf-8"))
    except (tomli.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TargetError(f"{path} is not valid TOML: {error}.", "Correct the file.") from error
    except OSError as error:
        raise TargetError(f"{path} cannot be read: {error.strerror}.", "Check its permissions.") from error


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TargetError(f"{where} is {value!r}, not a table of keys.", "Write key = value lines in it.")
    return value


def _target(name: str, entries: dict[str, Any], builtin: dict[str, Any], origin: str) -> Target:
    where = f"Target '{name}' in {origin}"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TargetError(f"{where} has a malformed name.", "Use lower-case letters, digits and hyphens.")
    values = {key: _value(key, value, where) for key, value in _inherited(name, entries, builtin, where).items()}
    memories = values.get("memories", ())
    if memories:
        values = {kind: sum(each.size for each in select_kind(memories, kind)) for kind in get_args(Kind)} | values
    missing = [key for key in _REQUIRED if key not in values]
    if missing:
        raise TargetError(
            f"{where} lacks the keys {', '.join(missing)}.", 'Add the keys, or inherit with base = "rpi4".'
        )
    target = Target(name=name, **values)
    if target.runner and not target.bare:
        raise TargetError(
            f"{where} has a runner, but an operating system ({target.triple}).", "Runners are for devices without one."
        )
    if target.bare != bool(memories):
        system = "without" if target.bare else "with"
        raise TargetError(
            f"{where} is a device {system} an operating system ({target.triple}).",
            "Give `memories` to one without, and only there.",
        )
    return replace(target, opt="size") if target.bare else target


def _inherited(name: str, entries: dict[str, Any], builtin: dict[str, Any], where: str) -> dict[str, Any]:
    """Merge the entry's keys over its base's, the base's base's, and so on."""
    seen, scope = [name], entries
    values: dict[str, Any] = {}
    while True:
        own = dict(_table(scope[seen[-1]], where))
        base = own.pop("base", None)
        values = own | values
        if base is None:
            return values
        if base == seen[-1]:  # an entry that replaces passfit's own may start from it
            scope = builtin
        elif base in seen:
            raise TargetError(f"{where} inherits from itself: {' → '.join([*seen, base])}.", "Break the circle.")
        if not isinstance(base, str) or base not in scope:
            raise TargetError(f"{where} has the unknown base {base!r}.", did_you_mean(str(base), scope))
        seen.append(base)


def _value(key: str, value: Any, where: str) -> Any:
    """Check the value of one key and return it as Target holds it. Raises TargetError."""
    if key not in _KEYS:
        raise TargetError(f"{where} has the unknown key '{key}'.", did_you_mean(key, (*_KEYS, "base")))
    if key in _SIZES:
        return _size(key, value, where)
    if key == "features":
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise TargetError(f"{where}: features is {value!r}.", 'Give a list of words, such as ["+neon"].')
        return tuple(value)
    if key == "mhz":
        if type(value) is not int or value <= 0:
            raise TargetError(f"{where}: mhz is {value!r}.", "Give a whole number above zero.")
        return value
    if key == "runner":
        return read_runner(value, where)
    if key == "memories":
        return read_memories(value, where)
    if key == "alignment":
        if type(value) is not int or value < 64 or value & (value - 1):
            raise TargetError(f"{where}: alignment is {value!r}.", "Give a power of two of at least 64.")
        return value
    if not isinstance(value, str) or not value.strip():
        raise TargetError(f"{where}: {key} is {value!r}.", "Give a text in quotes.")
    if key == "weights":
        choices = get_args(get_type_hints(Target)["weights"])
        if value not in choices:
            raise TargetError(f"{where}: weights is {value!r}.", did_you_mean(value, choices))
    return value


def _size(key: str, value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TargetError(f"{where}: {key} is {value!r}.", 'Give a size, such as "512MiB".')
    try:
        size = parse_size(value)
    except PassfitError as error:
        raise TargetError(f"{where}: {key}: {error.what}", error.hint) from error
    if size <= 0:
        raise TargetError(f"{where}: {key} is {value!r}.", 'Give a size above zero, such as "512MiB".')
    return size
