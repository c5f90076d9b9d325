"""Draw figures of a result as charts: the footprint, ram against time, kernels, effects of passes, the past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...memory.footprint import Baseline, Footprint
from ...support.sizes import format_bytes
from ..accuracy_table import score_text
from ..effects_table import implicit, shown, signed
from ..fit import nodes_in, shorten
from ..front_table import LEVER_WORDS
from ..kernel_names import kernel_label
from ..results import Commit, Json, Result
from .axes import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Spec, bytes_axis, chart, coloured, tips

#: parts of ram and of flash, from the left
PARTS = {
    "ram": {"arena": BLUE, "workspace": ORANGE, "stack": PURPLE, "weights": GREEN, "data": GREY},
    "flash": {"weights": GREEN, "code": GREY},
}
#: lines at limits
_DASHES = {"budget": [7, 4], "capacity": [2, 3]}
#: a limit further away than so many times the largest bar is said in words
_FAR = 4
#: characters of a name beside a chart
_ROOM = 26
#: width of a cell of the effects, in pixels: the matrix may be wider than the page, and scrolls
_CELL = 78
#: kernels drawn
KERNELS = 25


def footprint_chart(result: Result, quantity: str, limits: Mapping[str, int]) -> Spec:
    """Stack the parts of ram or flash beside TVM's default, with lines at limits."""
    best, base = result.footprint.best, result.footprint.baseline
    bars = [*_bars("passfit", best, quantity), *_bars(base.name, base, quantity)]
    longest = max((bar["to"] for bar in bars), default=0)
    near = {name: limit for name, limit in limits.items() if in_sight(limit, result, quantity)}
    most = 1.04 * max([longest, *near.values()])
    x = bytes_axis("from", most)
    colours = {part: colour for part, colour in PARTS[quantity].items() if any(bar["part"] == part for bar in bars)}
    encoding = {
        "x": x,
        "x2": {"field": "to"},
        "y": _rows("row"),
        "color": coloured("part", colours),
        "tooltip": tips("row", "part", "size"),
    }
    layers: list[Spec] = [{"mark": {"type": "bar", "cornerRadius": 2}, "encoding": encoding}]
    for name, limit in near.items():
        value = [{"at": limit, "limit": f"{name} {format_bytes(limit)}"}]
        rule = {"type": "rule", "color": RED, "size": 2, "strokeDash": _DASHES[name]}
        layers.append(
            {
                "data": {"values": value},
                "mark": rule,
                "encoding": {"x": bytes_axis("at", most), "tooltip": tips("limit")},
            }
        )
    return chart(bars, 84, *layers)


def in_sight(limit: int, result: Result, quantity: str) -> bool:
    """Return whether a limit is drawn: one far away would leave no room for the bars."""
    sizes = (getattr(each, quantity) or 0 for each in (result.footprint.best, result.footprint.baseline))
    return limit <= _FAR * max(sizes)


def overview_chart(results: Sequence[Result]) -> Spec:
    """Stack the parts of ram of each result, one below the other."""
    names = [result.name for result in results]
    # two folders may be about one model on one target
    rows = [name if names.count(name) == 1 else f"{number}: {name}" for number, name in enumerate(names, 1)]
    bars = [bar for row, result in zip(rows, results, strict=True) for bar in _bars(row, result.footprint.best, "ram")]
    colours = {part: colour for part, colour in PARTS["ram"].items() if any(bar["part"] == part for bar in bars)}
    x = bytes_axis("from", 1.04 * max((bar["to"] for bar in bars), default=0))
    encoding = {
        "x": x,
        "x2": {"field": "to"},
        "y": _rows("row", 150, "split(datum.label, ' @ ')"),  # the target below the model
        "color": coloured("part", colours),
        "tooltip": tips("row", "part", "size"),
    }
    return chart(bars, 36 * len(results), {"mark": {"type": "bar", "cornerRadius": 2}, "encoding": encoding})


def _bars(row: str, of: Footprint | Baseline, quantity: str) -> Iterator[dict[str, Any]]:
    end, total = 0, getattr(of, quantity)
    if total is None:  # of a baseline that was not built
        return
    for part in PARTS[quantity]:
        nbytes = getattr(of, part, None) or 0
        if quantity == "ram" and part in ("weights", "data"):
            # the rest: weights where a device copies them, and variables of the library
            nbytes = total - end if part == "data" else nbytes if end + nbytes <= total else 0
        if nbytes > 0:
            yield {"row": row, "part": part, "from": end, "to": end + nbytes, "size": format_bytes(nbytes)}
            end += nbytes


def _rows(field: str, room: int = 90, label: str = "datum.label") -> Spec:
    return {
        "field": field,
        "type": "nominal",
        "sort": None,
        "title": None,
        "axis": {"labelExpr": label, "labelLimit": room, "ticks": False, "domain": False},
    }


def tradeoff_chart(result: Result) -> Spec | None:
    """Draw ram against time over the candidates of the search: measured ones, else by the model of cycles."""
    points, unit = tradeoff_points(result)
    if len(points) < 2:
        return None
    most = 1.08 * max(each["ram"] for each in points)
    x = {"field": "time", "type": "quantitative", "title": unit, "scale": {"zero": False, "nice": True, "padding": 12}}
    place = {"x": x | {"axis": {"format": "~s", "tickCount": 5}}, "y": bytes_axis("ram", most, "ram")}
    tip = tips("candidate", "size", "cost", "extra compute")
    here = {"condition": {"test": "datum.chosen", "value": ORANGE}, "value": BLUE}
    marks = {"color": here, "size": {"condition": {"test": "datum.chosen", "value": 160}, "value": 70}}
    return chart(
        points, 220, {"mark": {"type": "line", "interpolate": "step-after", "color": GREY, "strokeDash": [3, 3]}, "encoding": place},
        {"mark": {"type": "point", "filled": True, "opacity": 1}, "encoding": place | marks | {"tooltip": tip}},
    )  # fmt: skip


def tradeoff_points(result: Result) -> tuple[list[dict[str, Any]], str]:
    """Return the candidates by time, and the unit of time."""
    found: Json | None = result.front
    unit, key = (found["unit"], "latency") if found else ("cycles", "cycles")
    if found is None:
        found = (result.search or {}).get("tradeoff")
    if not found:
        return [], unit
    points = [
        {
            "candidate": LEVER_WORDS.get(each["lever"], each["lever"]),
            "ram": each["ram"],
            "size": format_bytes(each["ram"]),
            "time": each[key],
            "cost": f"{each[key]:,.4g} {unit}" if isinstance(each[key], float) else f"{each[key]:,} {unit}",
            "extra compute": f"{each['extra_compute']:.1%}",
            "chosen": number == found["chosen"],
        }
        for number, each in enumerate(found["points"])
    ]
    return sorted(points, key=lambda each: (each["time"], each["ram"])), unit


def kernels_chart(kernels: Json) -> Spec:
    """Draw the times of kernels as bars, with marks at their rooflines."""
    values = kernel_rows(kernels)[:KERNELS]
    y = _rows("kernel", 150)
    x = {"field": "µs", "type": "quantitative", "title": "µs a run", "axis": {"tickCount": 6}}
    tip = tips("name", "nodes", "µs", "at least µs", "roofline")
    return chart(
        values, 20 * len(values),
        {"mark": {"type": "bar", "cornerRadius": 2, "color": BLUE}, "encoding": {"x": x, "y": y, "tooltip": tip}},
        {"mark": {"type": "tick", "color": ORANGE, "thickness": 3}, "encoding": {"x": {**x, "field": "at least µs"}, "y": y, "tooltip": tip}},
    )  # fmt: skip


def kernel_rows(kernels: Json) -> list[dict[str, Any]]:
    """List kernels with their time and the least time by the roofline, the slowest first."""
    found = sorted(kernels["kernels"], key=lambda each: (-each["ns"], each["step"]))
    return [
        {
            "kernel": shorten(kernel_label(each["step"], each["kernel"]), _ROOM),
            "name": kernel_label(each["step"], each["kernel"]),
            "nodes": nodes_in(tuple(each["nodes"])),
            "µs": round(each["ns"] / 1e3, 3),
            "at least µs": round(each["least_ns"] / 1e3, 3),
            "roofline": round(each["least_ns"] / max(1, each["ns"]), 3),
        }
        for each in found
    ]


def effects_chart(effects: Json) -> Spec | None:
    """Draw the effects of passes on each other: a row for each first pass, a column for each one after it."""
    cells = effect_cells(effects)
    if not cells:
        return None
    most = max(1, *(abs(cell["ram"]) for cell in cells))
    firsts, thens = ([shorten(shown(spec), _ROOM) for spec in _specs(effects, key)] for key in ("first", "second"))
    axis = {"labelLimit": 170, "ticks": False, "domain": False}
    scale = {"domain": [-1, 0, 1], "range": [BLUE, "#eeeeee", ORANGE]}
    for cell in cells:
        # by the square root of bytes, so that small effects are seen beside large ones
        cell["shade"] = (1 if cell["ram"] > 0 else -1) * (abs(cell["ram"]) / most) ** 0.5
    encoding = {
        "x": {
            "field": "then",
            "type": "nominal",
            "sort": thens,
            "title": "then",
            "axis": axis | {"labelAngle": -45, "orient": "top"},
        },
        "y": {"field": "first", "type": "nominal", "sort": firsts, "title": "first", "axis": axis},
    }
    tip = tips("first pass", "second pass", "relation", "ram more than alone", "sum more than alone")
    colour = {"field": "shade", "type": "quantitative", "scale": scale, "legend": None}
    ink = {"condition": {"test": "datum.shade < -0.75", "value": "#ffffff"}, "value": "#111111"}
    return chart(
        cells, 26 * len(firsts),
        {"mark": {"type": "rect", "cornerRadius": 2}, "encoding": encoding | {"color": colour, "tooltip": tip}},
        {"mark": {"type": "text", "fontSize": 10}, "encoding": encoding | {"text": {"field": "label"}, "color": ink, "tooltip": tip}},
        width={"step": _CELL}, autosize="pad",
    )  # fmt: skip


def effect_cells(effects: Json) -> list[dict[str, Any]]:
    """List the tried pairs of passes, with the bytes the second adds or saves beyond its own."""
    found = []
    for pair in effects["pairs"]:
        ram, total = implicit(pair)
        first, second = shown(pair["first"]), shown(pair["second"])
        found.append(
            {
                "first": shorten(first, _ROOM),
                "then": shorten(second, _ROOM),
                "first pass": first,
                "second pass": second,
                "relation": pair["effect"] or "independent",
                "ram": ram,
                "sum": total,
                "ram more than alone": signed(ram),
                "sum more than alone": signed(total),
                "label": signed(ram) if ram else f"Σ {signed(total)}" if total else "0",
            }
        )
    return found


def _specs(effects: Json, key: str) -> list[str]:
    """Return the specs of rows or columns, in the order of the catalogue."""
    used = {pair[key] for pair in effects["pairs"]}
    return [each["spec"] for each in effects["passes"] if each["spec"] in used]


def history_chart(rows: Sequence[Mapping[str, Any]]) -> Spec:
    """Draw the ram of a library over commits, with its budget."""
    most = 1.1 * max(each["ram"] for each in rows)
    x = {
        "field": "commit",
        "type": "ordinal",
        "sort": None,
        "title": None,
        "axis": {"labelAngle": -45, "labelOverlap": True},
    }
    place = {"x": x, "y": bytes_axis("ram", most, "ram")}
    return chart(
        rows, 170, {"mark": {"type": "line", "interpolate": "step-after", "color": BLUE}, "encoding": place},
        {"mark": {"type": "point", "filled": True, "opacity": 1, "size": 70, "color": BLUE}, "encoding": place | {"tooltip": tips("commit", "subject", "ram size", "flash size", "time")}},
    )  # fmt: skip


def history_rows(history: Sequence[Commit], result: Result) -> list[dict[str, Any]]:
    """List the commits in which a result changed, and the present state."""
    rows, pair = [], result.pair
    states = [
        *((each.hash, each.subject, each.footprints.get(pair), each.accuracies.get(pair)) for each in history),
        ("now", "the present results", result.footprint, result.accuracy),
    ]
    last = None
    for name, subject, report, accuracy in states:
        value = None if accuracy is None else accuracy.value
        if report is None or (last is not None and (report.best, report.budget, value) == last):
            continue
        last = (report.best, report.budget, value)
        time = report.measured.latency_ms
        rows.append(
            {
                "commit": name,
                "subject": subject,
                "ram": report.best.ram,
                "ram size": format_bytes(report.best.ram),
                "flash size": format_bytes(report.best.flash),
                "time": "–" if time is None else f"{time:.3g} ms",
                "accuracy": score_text(value),
            }
        )
    return rows
