"""Build the axes and marks that charts share, in Vega-Lite's words: https://vega.github.io/vega-lite/docs/

A chart is plain data. Texts of a model stand in its values alone, never in names of fields or in expressions, which
Vega would evaluate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Spec = dict[str, Any]
Values = Sequence[Mapping[str, Any]]

#: version of Vega-Lite in the pinned vl-convert-python
VEGA_LITE = "6.4"
#: colours told apart by the colour-blind, on light and on dark pages
#: (Okabe and Ito, https://jfly.uni-koeln.de/color/, with a lighter blue and a darker yellow)
BLUE, GREEN, ORANGE, PURPLE, GREY, RED = "#3b8ac4", "#1b9e77", "#dd8a24", "#b877a8", "#8a8f98", "#d55e3c"
#: label of an axis of bytes
_BYTES = (
    "datum.value >= 1048576 ? format(datum.value / 1048576, '.3~r') + ' MiB' : "
    "datum.value >= 1024 ? format(datum.value / 1024, '.3~r') + ' KiB' : format(datum.value, '.3~r') + ' B'"
)


def chart(values: Values, height: int, *layers: Spec, **more: Any) -> Spec:
    """Return a chart as wide as its place on the page, unless `more` says otherwise."""
    size = {"width": "container", "height": height, "autosize": {"type": "fit-x", "contains": "padding"}}
    return {"data": {"values": list(values)}, **size, "layer": list(layers), **more}


def tips(*names: str) -> list[Spec]:
    """Show these fields in a tooltip; each is called as it is."""
    return [{"field": name, "type": "nominal"} for name in names]


def bytes_axis(field: str, most: float, title: str | None = None, **more: Any) -> Spec:
    """Return an axis of bytes from 0 to `most`, with ticks at powers of two and their multiples."""
    axis = {"labelExpr": _BYTES, "values": byte_ticks(most), "title": title}
    scale = {"domain": [0, max(most, 1)], "nice": False}
    return {"field": field, "type": "quantitative", "axis": axis, "scale": scale, "stack": None, **more}


def byte_ticks(most: float) -> list[int]:
    """Return three to seven multiples of a power of two up to `most`."""
    step = 1
    while most / step > 6:
        step *= 2
    return list(range(0, int(most) + 1, step))


def coloured(field: str, colours: Mapping[str, str], **more: Any) -> Spec:
    """Colour marks by the words in a field, with a legend of `colours`."""
    legend = {"title": None, "orient": "top", "columns": {"expr": "width < 420 ? 3 : 7"}}
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend, **more}
