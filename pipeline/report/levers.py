"""Show the levers that lowered the arena, one after the other, from search.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from ..errors import ConfigError
from ..search.refine.lever import Lever
from ..search.tradeoff import Tradeoff
from ..support.sizes import format_bytes
from ..support.text_files import decode, read_text
from .fit import Name, table

#: words for the levers of search/refine/levers.py
WORDS = {
    "given": "order given, nothing shared",
    "order": "best order",
    "share": "memory shared",
    "split": "kernels split, none run twice",
    "repeat": "kernels run again, within the limit",
    "grow": "results grow over operands",
    "next": "with twice the limit",
    "chosen": "another plan, for its time or flash",
}
_HINT = "Run the search that writes it again."


@dataclass(frozen=True)
class _Worth:
    """Types of a row of `ablation`: see `search/refine/minimise.py`."""

    spec: str
    ram: int | None
    weights: int | None
    kernels: int | None
    sum: int | None


@dataclass(frozen=True)
class _Search:
    """Types of the values of search.json that readers rely on; each may be missing, and others be there."""

    strategy: str = ""
    evaluations: int = 0
    closed: bool = False
    ablation: tuple[_Worth, ...] = ()
    levers: tuple[Lever, ...] = ()
    next: str = ""
    failures: dict[str, str] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)
    family: str = ""
    ended_by: str = ""
    objective: str = ""
    tradeoff: Tradeoff | None = None
    made_from: dict[str, Any] = field(default_factory=dict)


def read_search(path: Path) -> dict[str, Any]:
    """Read search.json as an object of JSON. Raises ConfigError for a malformed file."""
    text = read_text(path, _HINT)
    checked = decode(_Search, text, str(path), _HINT)
    if checked.tradeoff is not None and not 0 <= checked.tradeoff.chosen < len(checked.tradeoff.points):
        raise ConfigError(f"'{path}': tradeoff.chosen is not the number of a point.", _HINT)
    return decode(dict, text, str(path), _HINT)


@dataclass(frozen=True)
class LeversFound:
    """Levers of search.json; `next` says why no more extra compute was tried, empty where it was."""

    levers: tuple[Lever, ...] = ()
    next: str = ""

    @property
    def chosen(self) -> Lever | None:
        """Return the lever the search ended with."""
        return next((each for each in reversed(self.levers) if each.lever != "next"), None)


def read_levers(path: Path, arena: int) -> LeversFound | None:
    """Read the levers of the search behind an arena of these bytes; None without the file, or for another arena.

    Raises ConfigError for a malformed file.
    """
    if not path.is_file():
        return None
    found = decode(LeversFound, read_text(path, _HINT), str(path), _HINT)
    return found if found.chosen is not None and found.chosen.arena == arena else None


def levers_table(levers: tuple[Lever, ...]) -> Table:
    """Show arena and extra compute after each lever."""
    made = table("what lowers the arena", "<lever", ">arena", ">extra compute")
    for each in levers:
        made.add_row(Name(WORDS.get(each.lever, each.lever)), format_bytes(each.arena), percent(each.extra_compute))
    return made


def percent(fraction: float) -> str:
    """Write a fraction as `12.5 %`, and nothing as a dash."""
    return f"{fraction:.1%}".replace("%", " %") if fraction else "–"
