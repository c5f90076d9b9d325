"""Show a quantisation: its points of accuracy and sizes, the one taken, the layers left in float; draw them as a picture."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from ...quantise.quantise_model import FLOAT_POINT, Quantised
from ...support.sizes import format_bytes
from ..fit import Name, fitted, table
from ..html.axes import BLUE, GREY, ORANGE, VEGA_LITE, Spec, bytes_axis

#: layers named in the table; quantize.json has all
_NAMED = 12
_SIDE = 260


def quantise_table(found: Quantised, name: str) -> RenderableType:
    """Show a row per point, and the layers in float below."""
    made = table(f"{name} quantised", "<", "<model", f">{found.metric}", ">loss", ">ram", ">flash")
    for each in found.points:
        ram, flash = ("–" if size is None else format_bytes(size) for size in (each.ram, each.flash))
        mark, loss = "→" if each.taken else "", "–" if each.name == FLOAT_POINT else f"{each.loss:.4f}"
        made.add_row(mark, Name(each.name), f"{each.value:.4f}", loss, ram, flash)
    lines = [
        f"{found.metric} by ONNX Runtime on {found.judged} samples, a loss of {found.settings.max_loss:g} is allowed"
    ]
    if found.target is not None:
        lines.append(f"ram and flash predicted for {found.target}: `passfit compile` finds the same or less")
    if found.calibrated:
        lines.append(f"ranges by {found.settings.method} of {found.calibrated} samples")
    if found.floats:
        lines.append(
            "1 layer computes on floats:"
            if len(found.floats) == 1
            else f"{len(found.floats)} layers compute on floats:"
        )
        lines += [f"  {each.operator} {each.layer}: {each.why}" for each in found.floats[:_NAMED]]
        if len(found.floats) > _NAMED:
            lines.append(f"  {len(found.floats) - _NAMED} more are in the record")
    return fitted(made, *lines)


def curve_picture(found: Quantised) -> str:
    """Draw accuracy against ram and against flash as SVG, with the point taken; equal results give equal bytes."""
    import vl_convert

    sized = [each for each in found.points if each.ram is not None and each.flash is not None]
    points = [
        {"point": each.name, "value": each.value, "ram": each.ram, "flash": each.flash, "taken": each.taken, "size": number}
        for number, each in enumerate(sized)
    ]  # fmt: skip
    sides = [_against(points, quantity, found.metric) for quantity in ("ram", "flash")]
    spec: Spec = {"data": {"values": points}, "hconcat": sides, "background": "white"}
    return str(vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE))


def _against(points: list[dict[str, Any]], quantity: str, metric: str) -> Spec:
    x = bytes_axis(quantity, 1.15 * max((each[quantity] for each in points), default=1), quantity)
    y = {"field": "value", "type": "quantitative", "title": metric, "scale": {"zero": False, "padding": 14}}
    colour = {"condition": {"test": "datum.taken", "value": ORANGE}, "value": BLUE}
    size = {"condition": {"test": "datum.taken", "value": 160}, "value": 70}
    named = {"type": "text", "align": "left", "dx": 8, "dy": -6, "fontSize": 10}
    place = {"x": x, "y": y}
    layers = [
        {
            "mark": {"type": "line", "color": GREY, "strokeDash": [3, 3]},
            "encoding": place | {"order": {"field": "size", "type": "quantitative"}},
        },
        {"mark": {"type": "point", "filled": True, "opacity": 1}, "encoding": place | {"color": colour, "size": size}},
        {"mark": named, "encoding": place | {"text": {"field": "point", "type": "nominal"}}},
    ]
    return {"width": _SIDE, "height": _SIDE, "layer": layers}
