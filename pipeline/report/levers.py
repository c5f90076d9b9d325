"""What lowered the arena, one lever after the other, as search.json tells it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from ..search.refine.lever import Lever
from ..support.sizes import format_bytes
from ..support.text_files import decode, read_text

#: what the levers of `search.refine.levers` are called
WORDS = {
    "given": "order given, nothing shared",
    "order": "best order",
    "share": "memory shared",
    "split": "kernels split, none run twice",
    "repeat": "kernels run again, within the limit",
    "next": "with twice the limit",
}
_HINT = "Run the search that writes it again."


@dataclass(frozen=True)
class LeversFound:
    """The part of search.json about levers. `next` says why no more extra compute was tried; empty where it was."""

    levers: tuple[Lever, ...] = ()
    next: str = ""

    @property
    def chosen(self) -> Lever | None:
        """What the search ended with."""
        return next((each for each in reversed(self.levers) if each.lever != "next"), None)

    @property
    def further(self) -> Lever | None:
        """What twice the limit would give, where that was tried."""
        return next((each for each in self.levers if each.lever == "next"), None)


def read_levers(path: Path, arena: int) -> LeversFound | None:
    """The levers of the search that led to an arena of these bytes; None where the file is not there, or of another.

    Raises ConfigError for a malformed file.
    """
    if not path.is_file():
        return None
    found = decode(LeversFound, read_text(path, _HINT), str(path), _HINT)
    return found if found.chosen is not None and found.chosen.arena == arena else None


def levers_table(levers: tuple[Lever, ...]) -> Table:
    """Arena and extra compute after each of them."""
    table = Table(title="what lowers the arena", title_justify="left", title_style="bold")
    for column, justify in (("lever", "left"), ("arena", "right"), ("extra compute", "right")):
        table.add_column(column, justify=justify)
    for each in levers:
        table.add_row(WORDS.get(each.lever, each.lever), format_bytes(each.arena), percent(each.extra_compute))
    return table


def percent(fraction: float) -> str:
    """`12.5 %`, and a dash for nothing."""
    return f"{fraction:.1%}".replace("%", " %") if fraction else "–"
