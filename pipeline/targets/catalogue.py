"""Read the catalogue of targets: catalogue.toml, and the additions of a model repo.

Those are `[tool.passfit.targets]` of its pyproject.toml, and `boards` of its params.yaml, which win.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import tomli

from ..errors import PassfitError, TargetError, did_you_mean
from ..support.sizes import parse_size
from ..support.yaml_file import read_yaml
from .desk import read_runner
from .memory import Kind, read_memories, refuse_devices, select_kind
from .target import Target

_CATALOGUE = Path(__file__).with_name("catalogue.toml")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_SIZES = ("ram", "flash")
_KEYS = tuple(f.name for f in fields(Target) if f.name not in ("name", "threads", "opt", "index_checks"))
_REQUIRED = tuple(f.name for f in fields(Target) if f.default is MISSING and f.name != "name")


class Catalogue(Mapping[str, Target]):
    """Targets by name, each read when it is asked for, so that a malformed one stops nothing else.

    An entry with `base` inherits its missing keys, from another entry or from passfit's entry of its own name. Asking for a
    malformed one raises TargetError, naming file, entry and key.
    """

    def __init__(self, entries: dict[str, Any], builtin: dict[str, Any], origin: dict[str, str]) -> None:
        self._entries, self._builtin, self._origin = entries, builtin, origin
        self._made: dict[str, Target] = {}

    def __getitem__(self, name: str) -> Target:
        if name not in self._made:
            self._made[name] = _target(name, self._entries, self._builtin, self._origin[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def readable(self, needed: Collection[str] = ()) -> dict[str, Target]:
        """Return all targets but malformed ones, with a warning for each. Raises TargetError for one that is `needed`."""
        found = {}
        for name in self:
            try:
                found[name] = self[name]
            except TargetError as error:
                if name in needed:
                    raise
                logging.getLogger("passfit").warning("left out: %s", error)
        return found


def load_catalogue(repo: Path | None = None) -> Catalogue:
    """Read the catalogue: passfit's own targets, then those of `repo`, which may replace them.

    Raises TargetError for a file that cannot be read, and a malformed name.
    """
    if repo is None:
        return _own()
    builtin = _own_entries()
    entries, origin = dict(builtin), dict.fromkeys(builtin, _CATALOGUE.name)
    if (project := repo / "pyproject.toml").is_file():
        added = _read(project)
        for key in ("tool", "passfit", "targets"):
            added = _table(added.get(key, {}), f"[tool.passfit.targets] of {project}")
        entries |= added
        origin |= dict.fromkeys(added, str(project))
    if (params := repo / "params.yaml").is_file():
        content = read_yaml(params)
        boards = _table(content.get("boards") or {}, f"boards of {params}") if isinstance(content, dict) else {}
        entries |= boards
        origin |= dict.fromkeys(boards, str(params))
    for name in entries:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise TargetError(
                f"{_where(name, origin[name])} has a malformed name.", "Use lower-case letters, digits and hyphens."
            )
    return Catalogue(entries, builtin, origin)


@functools.cache
def _own_entries() -> dict[str, Any]:
    """Read passfit's own entries, once in a process."""
    return _read(_CATALOGUE)


@functools.cache
def _own() -> Catalogue:
    """Return passfit's own targets, each made once in a process."""
    entries = _own_entries()
    return Catalogue(entries, entries, dict.fromkeys(entries, _CATALOGUE.name))


def get_target(name: str, repo: Path | None = None) -> Target:
    """Return the target called `name`. Raises TargetError for a malformed one, and for no such one, naming the nearest."""
    catalogue = load_catalogue(repo)
    if name not in catalogue:
        raise TargetError(f"There is no target '{name}'.", did_you_mean(name, catalogue))
    return catalogue[name]


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomli.loads(path.read_text(encoding="utf-8"))
    except (tomli.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TargetError(f"{path} is not valid TOML: {error}.", "Correct the file.") from error
    except OSError as error:
        raise TargetError(f"{path} cannot be read: {error.strerror}.", "Check its permissions.") from error


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TargetError(f"{where} is {value!r}, not a table of keys.", "Write key = value lines in it.")
    return value


def _target(name: str, entries: dict[str, Any], builtin: dict[str, Any], origin: str) -> Target:
    where = _where(name, origin)
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
    if target.triple.startswith("thumb"):
        refuse_devices(memories, where)
    return replace(target, opt="size") if target.bare else target


def _where(name: str, origin: str) -> str:
    return f"Target '{name}' in {origin}"


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
