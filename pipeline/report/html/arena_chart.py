"""Draw an arena over time: steps to the right, offsets upwards, a rectangle for each buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...program import Program
from ...support.sizes import format_bytes
from ..arena.blocks import Block
from ..fit import nodes_in
from ..kernel_names import kernel_label
from .axes import BLUE, GREEN, ORANGE, PURPLE, Spec, bytes_axis, chart, coloured, tips

COLOURS = {"input": BLUE, "output": GREEN, "result": ORANGE, "ring": PURPLE}
_TIPS = ("buffer", "size", "dtype", "offset", "alive", "kernel", "ONNX nodes")
#: a name is written into a rectangle of at least this share of the steps, and of the bytes
_WIDE, _HIGH = 0.09, 0.055
#: width of an outline in pixels; with more steps, outlines would hide the colours
_OUTLINE, _MANY = 0.6, 150
#: pixels of a map
HEIGHT = 300


def arena_chart(rows: Sequence[dict[str, Any]], steps: int, most: int, peak: int | None, unit: str = "step") -> Spec:
    """Draw rectangles over `steps` and `most` bytes, so that two maps can have one scale; `peak` is a step."""
    x = {
        "field": "from",
        "type": "quantitative",
        "title": unit,
        "scale": {"domain": [0, max(1, steps)], "nice": False},
        "axis": {"format": "d", "tickMinStep": 1, "grid": False},
    }
    y = bytes_axis("low", most)
    place = {"x": x, "x2": {"field": "to"}, "y": y, "y2": {"field": "high"}}
    pointed = {"name": "pointed", "select": {"type": "point", "on": "pointerover", "clear": "pointerout"}}
    alive = {
        "color": coloured(
            "role", {role: colour for role, colour in COLOURS.items() if any(row["role"] == role for row in rows)}
        ),
        "fillOpacity": {
            "condition": [{"param": "pointed", "empty": False, "value": 1}, {"test": "datum.peak", "value": 0.9}],
            "value": 0.4,
        },
        "strokeWidth": {
            "condition": {"param": "pointed", "empty": False, "value": 2.5},
            "value": _OUTLINE if steps <= _MANY else 0,
        },
        "tooltip": tips(*_TIPS),
    }
    named = {
        "transform": [{"filter": "datum.named"}],
        "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11, "limit": {"expr": f"(datum.to - datum.from) / {max(1, steps)} * width - 8"}},
        "encoding": {"x": x, "y": {**y, "field": "middle"}, "text": {"field": "label"}, "color": {"condition": {"test": "datum.peak", "value": "#111111"}}, "tooltip": tips(*_TIPS)},
    }  # fmt: skip
    layers: list[Spec] = [
        {"mark": {"type": "rect", "stroke": "#888888"}, "params": [pointed], "encoding": place | alive},
        named,
    ]
    if peak is not None:
        at = {"data": {"values": [{"at": peak + 0.5}]}, "mark": {"type": "rule", "strokeDash": [5, 3], "size": 1.5}}
        layers.append(at | {"encoding": {"x": {**x, "field": "at"}}})
    return chart(rows, HEIGHT, *layers)


def arena_rows(
    blocks: Sequence[Block], kernel: Callable[[int], tuple[str, str]], steps: int, most: int
) -> list[dict[str, Any]]:
    """List rectangles with the words of their tooltips; `kernel` names the kernel of a step, and its ONNX nodes."""
    rows = []
    for block in blocks:
        made, nodes = ("the caller", "–") if block.made_by is None else kernel(block.made_by)
        last = block.end - 1
        rows.append(
            {
                "buffer": block.name,
                "label": block.name if block.made_by is None else made,
                "size": format_bytes(block.nbytes),
                "dtype": block.dtype,
                "offset": f"{block.offset:,}",
                "alive": f"step {last}" if last == block.start else f"steps {block.start} to {last}",
                "kernel": made,
                "ONNX nodes": nodes,
                "role": block.role,
                "peak": block.at_peak,
                "from": block.start,
                "to": block.end,
                "low": block.offset,
                "high": block.top,
                "middle": (block.offset + block.top) / 2,
                "named": block.end - block.start >= _WIDE * steps and block.top - block.offset >= _HIGH * most,
            }
        )
    return rows


def kernel_of(program: Program) -> Callable[[int], tuple[str, str]]:
    """Return a function that names the kernel of a step, and its ONNX nodes."""

    def named(step: int) -> tuple[str, str]:
        call = program.steps[step]
        return kernel_label(step, call.kernel), nodes_in(call.nodes) or "–"

    return named
