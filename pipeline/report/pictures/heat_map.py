"""Draw the effects of passes on each other as SVG: a row per first pass, a column per pass after it.

The colour of a cell is the implicit effect in bytes of ram: what the second pass takes or adds after the first one,
less what it takes or adds alone. The colour-blind tell blue and orange apart too, and every cell says its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..effects_table import implicit, shown, signed
from ..fit import shorten
from .svg import CHARACTER, INK, heading, label, picture, swatch, xml

CELL_WIDTH, CELL_HEIGHT = 60, 30
LEFT, BOTTOM = 236, 62
#: room for the last column's name, which leans over the right edge; least room for the key
RIGHT, LEAST_WIDTH = 150, 860
#: characters of a pass's name
ROOM = 34
HEADING = "ram that a pass costs (+) or saves (−) more after another one than alone"
LESS, NOTHING, MORE = (33, 102, 172), (240, 240, 240), (224, 130, 20)
#: colour grows with the square root of bytes, so that small effects are seen beside large ones
STOPS = (-1.0, -0.5, 0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Frame:
    """Layout of the cells: the specs of rows and columns, and the height of the names over them in pixels."""

    rows: list[str]
    columns: list[str]
    top: int

    @property
    def size(self) -> tuple[int, int]:
        width = LEFT + CELL_WIDTH * len(self.columns) + RIGHT
        return max(width, LEAST_WIDTH), self.top + CELL_HEIGHT * len(self.rows) + BOTTOM

    def corner(self, row: float, column: float) -> tuple[float, float]:
        return LEFT + CELL_WIDTH * column, self.top + CELL_HEIGHT * row


@dataclass(frozen=True)
class Cell:
    """Pair of passes: its effect (of effects.json), and the implicit change of ram and sum in bytes."""

    effect: str
    ram: int
    sum: int
    tip: str


def heat_map(effects: dict, title: str) -> str:
    """Draw the object of effects.json as SVG text. Only passes that change something are shown."""
    cells = {(pair["first"], pair["second"]): _cell(pair) for pair in effects["pairs"]}
    frame = _frame(effects, cells)
    largest = max((abs(cell.ram) for cell in cells.values()), default=0)
    said = HEADING if cells else "no pass changes the effect of another one"
    shapes = [
        heading(12, 20, title, frame.size[0] - 24),
        label(12, 36, said),
        *_names(frame),
        *_grid(frame, cells, largest),
        *(_key(frame.size[1], largest) if cells else ()),
    ]
    return picture(*frame.size, f"{title}: {said}", shapes)


def _cell(pair: dict) -> Cell:
    ram, total = implicit(pair)
    alone, after = (f"ram {signed(each['ram'])}, sum {signed(each['sum'])}" for each in (pair["alone"], pair["delta"]))
    relation = pair["effect"] or "does nothing to"
    tip = f"{pair['first']} {relation} {pair['second']}: alone {alone}; after it {after}"
    return Cell(pair["effect"], ram, total, tip + (f"; failed: {pair['failed']}" if "failed" in pair else ""))


def _frame(effects: dict, cells: Mapping[tuple[str, str], Cell]) -> Frame:
    """Lay out rows and columns in the order of the catalogue; each changes something."""
    specs = [each["spec"] for each in effects["passes"]]
    rows = [spec for spec in specs if any(spec == first for first, _ in cells)]
    columns = [spec for spec in specs if any(spec == second for _, second in cells)]
    longest = max((len(_name(spec)) for spec in columns), default=0)
    return Frame(rows, columns, 62 + round(longest * CHARACTER * 0.71))  # leaning by 45 degrees


def _name(spec: str) -> str:
    return shorten(shown(spec), ROOM)


def _names(frame: Frame) -> Iterator[str]:
    if frame.rows:
        yield label(LEFT - 10, frame.top - 24, "first ↓", 'text-anchor="end" font-style="italic"')
        yield label(LEFT - 10, frame.top - 8, "then →", 'text-anchor="end" font-style="italic"')
    for number, spec in enumerate(frame.rows):
        x, y = frame.corner(number + 0.5, 0)
        yield label(x - 10, y + 4, _name(spec), 'text-anchor="end"')
    for number, spec in enumerate(frame.columns):
        x, y = frame.corner(0, number + 0.5)
        yield label(x, y - 8, _name(spec), f'transform="rotate(-45 {x:.1f} {y - 8:.1f})"')


def _grid(frame: Frame, cells: Mapping[tuple[str, str], Cell], largest: int) -> Iterator[str]:
    for row, first in enumerate(frame.rows):
        for column, second in enumerate(frame.columns):
            x, y = frame.corner(row, column)
            if (first, second) in cells:
                yield from _filled(x, y, cells[first, second], largest)
            elif first != second:
                yield _box(x, y, f'fill="none" stroke="{INK}" stroke-opacity="0.3"')


def _filled(x: float, y: float, cell: Cell, largest: int) -> Iterator[str]:
    position = _position(cell.ram, largest)
    ink = "#ffffff" if position < -0.6 else "#111111"
    yield _box(x, y, f'fill="{_colour(position)}"', cell.tip)
    if cell.effect in _MARKS:
        yield _MARKS[cell.effect](x + 8, y + 8, ink)
    style = f'text-anchor="middle" pointer-events="none" fill="{ink}"'
    if cell.ram:
        yield label(x + CELL_WIDTH / 2, y + CELL_HEIGHT - 7, signed(cell.ram), f'{style} font-size="10"')
    elif cell.sum:
        # nothing in ram, but something in the sum of tensors, which decides between equals
        yield label(x + CELL_WIDTH / 2, y + CELL_HEIGHT - 7, f"Σ {signed(cell.sum)}", f'{style} font-size="8"')


def _box(x: float, y: float, style: str, tip: str = "") -> str:
    box = f'<rect x="{x + 1}" y="{y + 1}" width="{CELL_WIDTH - 2}" height="{CELL_HEIGHT - 2}" rx="2" {style}'
    return f"{box}><title>{xml(tip)}</title></rect>" if tip else f"{box}/>"


def _enables(x: float, y: float, ink: str) -> str:
    return f'<path d="M{x - 3.5:.1f} {y + 3.5:.1f}h7l-3.5 -7z" fill="{ink}"/>'


def _disables(x: float, y: float, ink: str) -> str:
    return f'<path d="M{x - 3.5:.1f} {y - 3.5:.1f}l7 7m0 -7l-7 7" fill="none" stroke="{ink}" stroke-width="1.8"/>'


_MARKS = {"enables": _enables, "disables": _disables}


def _position(nbytes: int, largest: int) -> float:
    """Place a number of bytes on the scale of colours, from -1 to 1."""
    size = (abs(nbytes) / largest) ** 0.5 if largest else 0.0
    return -size if nbytes < 0 else size


def _colour(position: float) -> str:
    end = LESS if position < 0 else MORE
    mixed = (round(a + (b - a) * abs(position)) for a, b in zip(NOTHING, end, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _key(height: int, largest: int) -> Iterator[str]:
    y, x = height - 32.0, 12.0
    stops = STOPS if largest else (0.0,)
    for stop in stops:
        words = signed(round(largest * stop * abs(stop)))
        yield swatch(x, y, _colour(stop))
        yield label(x + 15, y, words)
        x += 32 + CHARACTER * len(words)
    x += 12
    for mark, words in (("enables", "first pass makes the second possible"), ("disables", "leaves it nothing to do")):
        yield _MARKS[mark](x, y - 4, INK)
        yield label(x + 10, y, words)
        x += 30 + CHARACTER * len(words)
    note = "Outlined: the second pass changes nothing, alone or after the first. Σ: equal ram, another sum of tensors."
    yield label(12, height - 12.0, note)
