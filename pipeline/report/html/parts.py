"""Hold the parts of a page: sections of sentences, tables and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .axes import Spec


@dataclass(frozen=True)
class Text:
    """Sentence. `loud` marks what must not be overlooked."""

    words: str
    loud: bool = False


@dataclass(frozen=True)
class Table:
    """Table of cells; a column whose name begins with > is of numbers. `fold` is the title of a table that is closed at first.

    `links` are the places on the page that the first cells lead to, if any.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    fold: str = ""
    links: Sequence[str] = ()


@dataclass(frozen=True)
class Chart:
    """Chart with its title. One that `scrolls` is as wide as it needs, in a place that scrolls."""

    title: str
    spec: Spec
    scrolls: bool = False


@dataclass(frozen=True)
class Row:
    """Charts side by side, if there is room."""

    charts: Sequence[Chart]


Part: TypeAlias = Text | Table | Chart | Row


@dataclass(frozen=True)
class Section:
    """Titled part of a page."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Article:
    """Sections about one result; `place` is its anchor, `said` its verdict, and `good` tells whether it fits."""

    place: str
    title: str
    said: str
    good: bool
    sections: Sequence[Section]
