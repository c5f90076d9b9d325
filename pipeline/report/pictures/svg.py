"""The few shapes passfit's pictures are made of. They need no script and no font of their own, and have no background,
so that they are legible on light and on dark pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape

#: about the width of one character of the small text, in pixels
CHARACTER = 6.2
#: of even contrast to white and to black
INK = "#767676"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def picture(width: int, height: int, title: str, shapes: Iterable[str]) -> str:
    """A whole SVG file, `width` × `height` pixels; `title` is its tooltip and what a screen reader says."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="Helvetica, Arial, sans-serif" font-size="11" fill="{INK}">'
    )
    return "\n".join([head, f"<title>{xml(title)}</title>", *shapes, "</svg>"]) + "\n"


def swatch(x: float, y: float, colour: str) -> str:
    """A small square left of a label whose text starts at height `y`."""
    return f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'


def line(x1: float, y1: float, x2: float, y2: float, more: str = "") -> str:
    return f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="{INK}" {more}/>'.replace(" />", "/>")


def label(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{xml(text)}</text>'.replace('" >', '">')


def short(text: str, room: int) -> str:
    """`text` in at most `room` characters; the end is kept too, since names often differ only there."""
    if len(text) <= room:
        return text
    head = (room - 1) // 2
    return f"{text[:head]}…{text[len(text) - (room - 1 - head) :]}"


def xml(text: str) -> str:
    """Escaped, and without the characters XML cannot hold at all."""
    return escape(_NOT_XML.sub("\ufffd", text))
