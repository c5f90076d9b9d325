"""Draw the few shapes of passfit's pictures.

They need no script and no font of their own, and have no background: legible on light and on dark pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape

from ..fit import shorten

#: widths of one character of the small text and of a title, in pixels, in the widest of the usual fonts
CHARACTER, TITLE_CHARACTER = 6.8, 10.0
#: of even contrast to white and to black
INK = "#767676"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def picture(width: int, height: int, title: str, shapes: Iterable[str]) -> str:
    """Return a whole SVG file, `width` × `height` pixels; `title` is its tooltip and its name to screen readers."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="Helvetica, Arial, sans-serif" font-size="11" fill="{INK}">'
    )
    return "\n".join([head, f"<title>{xml(title)}</title>", *shapes, "</svg>"]) + "\n"


def swatch(x: float, y: float, colour: str) -> str:
    """Draw a small square left of a label at height `y`."""
    return f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'


def line(x1: float, y1: float, x2: float, y2: float, more: str = "") -> str:
    """Draw a line from (x1, y1) to (x2, y2)."""
    return f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="{INK}" {more}/>'.replace(" />", "/>")


def label(x: float, y: float, text: str, more: str = "", tip: str = "") -> str:
    """Write text at (x, y), with an optional tooltip."""
    tooltip = f"<title>{xml(tip)}</title>" if tip else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{xml(text)}{tooltip}</text>'.replace('" >', '">')


def heading(x: float, y: float, text: str, width: float) -> str:
    """Write a title, shortened from the middle to `width` pixels; its tooltip is the whole."""
    fitting = shorten(text, int(width / TITLE_CHARACTER))
    return label(x, y, fitting, 'font-size="15" font-weight="bold"', text if fitting != text else "")


def xml(text: str) -> str:
    """Escape text, and replace the characters XML cannot hold at all."""
    return escape(_NOT_XML.sub("\ufffd", text))
