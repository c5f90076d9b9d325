"""Fit tables and sentences into 100 columns: names give way, numbers stay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.constrain import Constrain
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

#: columns of a terminal, of a log, of a page
WIDTH = 100
#: the least columns left of a name
LEAST = 8
_NOT_PRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    """Return `text` with a sign of replacement for each character that is not shown."""
    return _NOT_PRINTABLE.sub("\ufffd", text)


class Name:
    """Cell of a name, shortened from the middle to the width of its column."""

    def __init__(self, text: str):
        self.text = printable(text)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        most = cell_len(self.text)
        return Measurement(min(most, LEAST), most).with_maximum(options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        yield Text(self.shown(options.max_width), no_wrap=True)

    def shown(self, room: int) -> str:
        """Return the text in at most `room` columns."""
        return shorten(self.text, room)


class Nodes(Name):
    """Cell of ONNX nodes: the first, the last and their number, or with `wide` all of them."""

    def __init__(self, nodes: Iterable[str], wide: bool = False):
        self.nodes, self.wide = tuple(nodes), wide
        super().__init__(", ".join(self.nodes) if wide or len(self.nodes) < 2 else nodes_in(self.nodes))

    def shown(self, room: int) -> str:
        return super().shown(room) if self.wide else nodes_in(self.nodes, room)


def nodes_in(nodes: tuple[str, ...], room: int | None = None) -> str:
    """Name ONNX nodes in at most `room` columns: `conv_12 … relu_13 (5 nodes)`, or `conv_12 +4`."""
    if len(nodes) < 2:
        text = _NOT_PRINTABLE.sub("\ufffd", "".join(nodes))
        return text if room is None else shorten(text, room)
    first, last = (_NOT_PRINTABLE.sub("\ufffd", each) for each in (nodes[0], nodes[-1]))
    tail = f" ({len(nodes)} nodes)"
    if room is None or cell_len(f"{first} … {last}{tail}") <= room:
        return f"{first} … {last}{tail}"
    left = room - len(tail) - len(" … ")
    if left < 2 * LEAST:
        more = f" +{len(nodes) - 1}"
        return shorten(first, room - len(more)) + more
    half = max(left // 2, left - cell_len(last))
    first = shorten(first, half)
    return f"{first} … {shorten(last, left - cell_len(first))}{tail}"


def shorten(text: str, room: int) -> str:
    """Return `text` in at most `room` columns; the end is kept too, since names often differ only there."""
    if cell_len(text) <= room:
        return text
    if room < 1:
        return ""
    head, tail = (room - 1) // 2, room - 1 - (room - 1) // 2
    return f"{_longest(text, head)}…{_longest(text[::-1], tail)[::-1]}"


def _longest(text: str, room: int) -> str:
    """Return the longest beginning of at most `room` columns."""
    widths = accumulate(map(cell_len, text))
    return text[: sum(width <= room for width in widths)]


def table(title: str, *columns: str) -> Table:
    """Make a table of columns: `<name` to the left, `>name` to the right and never shortened."""
    made = Table(title=_folding(title, "bold") if title else None, title_justify="left")
    for column in columns:
        right = column.startswith(">")
        made.add_column(Text(column[1:]), justify="right" if right else "left", no_wrap=right)
    return made


def fitted(*parts: RenderableType, wide: bool = False) -> RenderableType:
    """Stack tables and sentences within WIDTH columns; with `wide`, as wide as they are."""
    lines = [part if not isinstance(part, str) else Text(part) if wide else _folding(part) for part in parts]
    return Group(*lines) if wide else Constrain(Group(*lines), WIDTH)


def _folding(text: str, style: str = "") -> Text:
    """Make text that folds even on a console that keeps long lines, as for logs."""
    lines = "\n".join(_NOT_PRINTABLE.sub("\ufffd", line) for line in text.split("\n"))
    return Text(lines, style=style, no_wrap=False, overflow="fold")
