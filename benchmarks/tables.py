"""Format the rows of main_tables.py as three tables: memory, latency, compile time. Nothing is measured here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from models import Model, geometric_mean
from predictions import fit_of, rate_of
from timing import fastest

from passfit.support.sizes import format_bytes

Row = Mapping
#: seconds within which a model should compile
SOON = 60
#: levers of search.json, in order; docs/splits.md describes them
LEVERS = ("given", "order", "share", "split", "repeat", "grow")


def memory(rows: Mapping[Model, Row], head: Iterable[str]) -> str:
    """Return memory.md: sizes beside those of tvm-default, the error, and the arena after each lever."""
    lines = [
        *_opening("Memory", head, rows),
        "`passfit compile`, all defaults, for x86-64. Ram: predicted, without the stack, as nobody measures that of tvm-default;",
        "measured: anonymous memory a run gains, in whole pages; stack: measured apart. Error: the largest, relative to the",
        "range of the output of ONNX Runtime. Bound: no plan of this order has a smaller arena. Flash ratio: to that of tvm-default. Arithmetic: run again to save ram. At any price: the least ram",
        "that the search found, which `--max-slowdown none` takes, and its time ÷ that of the default, both predicted.",
        "",
    ]

    def cells(row: Row) -> list[str]:
        best, baseline, measured = (row["footprint"][part] for part in ("best", "baseline", "measured"))
        return [
            format_bytes(_planned(best)), format_bytes(baseline["ram"]), f"{ram_ratio(row):.3f}",
            _known(measured["ram"], format_bytes), _known(measured["max_rel_error"], "{:.1e}".format), _known(measured.get("stack"), format_bytes),
            format_bytes(best["bound"]), format_bytes(best["flash"]), _known(flash_ratio(row), "{:.3f}".format),
            f"{row['search']['extra_compute']:.1%}", str(best["kernels"]),
            format_bytes(_cheapest(row)["ram"]), f"{price_ratio(row):.3f}", f"{slowdown(row):.2f}",
        ]  # fmt: skip

    titles = (
        "ram", "tvm-default", "ratio", "measured", "error", "stack", "bound", "flash", "flash ratio", "arithmetic", "kernels",
        "at any price", "ratio at any price", "its time",
    )  # fmt: skip
    means = {
        "ratio": (ram_ratio, ".3f"),
        "flash ratio": (flash_ratio, ".3f"),
        "ratio at any price": (price_ratio, ".3f"),
        "its time": (slowdown, ".2f"),
    }
    lines += _table(rows, titles, cells, means)
    done = _done(rows)
    reached = sum(row["footprint"]["best"]["proved"] for row in done.values())
    lines += ["", f"Arena equal to the bound: {reached} of {len(done)} models.", "", *_levers(done)]
    return "\n".join(lines) + "\n"


def latency(rows: Mapping[Model, Row], head: Iterable[str]) -> str:
    """Return latency.md: milliseconds a run beside ONNX Runtime's."""
    lines = [
        *_opening("Latency", head, rows),
        "Milliseconds a run, one thread each, turn by turn in one process; the best turn's median counts. passfit: the",
        "library of least ram, built for x86-64-v3, and filling its inputs; AVX-512: its sequence built for x86-64-v4, with",
        "VNNI where the machine has it. ONNX Runtime: its vectors are the machine's widest, its inputs and outputs bound; on",
        "the file as shipped or on the imported model, whichever is faster. Ratios: ÷ ONNX Runtime. Worst: the slowest turn",
        "÷ the best, of any. Predicted: the cycles of the model, at the rate that fits all rows best.",
        "",
    ]
    timed = {
        model: {"failed": row["latency"]["failed"]} if "failed" in row.get("latency", {}) else row
        for model, row in rows.items()
    }

    pairs = {
        model.title: (_chosen(row)["cycles"], min(row["latency"]["passfit"])) for model, row in _done(timed).items()
    }
    rate = rate_of(pairs)

    def cells(row: Row) -> list[str]:
        ours, theirs = min(row["latency"]["passfit"]), fastest(row["latency"])
        worst = max(max(turns) / min(turns) for turns in row["latency"].values())
        wide = _known(min(row["latency"].get("wide", ()), default=None), "{:.3f}".format)
        ratios = [f"{latency_ratio(row):.2f}", wide, _known(wide_ratio(row), "{:.2f}".format)]
        return [f"{theirs:.3f}", f"{ours:.3f}", *ratios, f"{worst:.2f}", f"{_chosen(row)['cycles'] / rate / 1e6:.3f}"]

    titles = ("ONNX Runtime", "passfit", "ratio", "AVX-512", "ratio, AVX-512", "worst", "predicted")
    lines += _table(timed, titles, cells, {"ratio": (latency_ratio, ".2f"), "ratio, AVX-512": (wide_ratio, ".2f")})
    lines += ["", fit_of(pairs)]
    return "\n".join(lines) + "\n"


def compile_time(rows: Mapping[Model, Row], head: Iterable[str]) -> str:
    """Return compile_time.md: seconds of `passfit compile`."""
    done = _done(rows)
    soon = sum(row["compile"]["wall"] <= SOON for row in done.values())
    lines = [
        *_opening("Compile time", head, rows),
        "Seconds of `passfit compile`, all defaults: start, import, search, build, run, comparison. Processor: of all its",
        "processes. Others: cores that other work kept busy meanwhile. States: evaluated ones; closed: there are no others.",
        f"{soon} of {len(done)} models within {SOON} s.",
        "",
    ]

    def cells(row: Row) -> list[str]:
        spent, search = row["compile"], row["search"]
        return [
            f"{spent['wall']:.1f}", f"{spent['processor']:.1f}", _known(spent["others"], "{:.1f}".format),
            str(search["evaluations"]), "yes" if search["closed"] else "no", str(row["footprint"]["best"]["kernels"]),
        ]  # fmt: skip

    titles = ("wall", "processor", "others", "states", "closed", "kernels")
    lines += _table(rows, titles, cells, {"wall": (lambda row: row["compile"]["wall"], ".1f")})
    return "\n".join(lines) + "\n"


def ram_ratio(row: Row) -> float:
    """Divide the ram by tvm-default's."""
    return _planned(row["footprint"]["best"]) / row["footprint"]["baseline"]["ram"]


def _planned(best: Mapping) -> int:
    """Return the ram of a footprint without the stack, in bytes; results of older commits lack it."""
    return best["ram"] - best.get("stack", 0)


def price_ratio(row: Row) -> float:
    """Divide the least ram at any price by tvm-default's."""
    return _cheapest(row)["ram"] / row["footprint"]["baseline"]["ram"]


def slowdown(row: Row) -> float:
    """Divide the predicted times: of the least ram at any price, and of the plan taken."""
    return _cheapest(row)["cycles"] / _chosen(row)["cycles"]


def _cheapest(row: Row) -> Mapping:
    return min(row["search"]["tradeoff"]["points"], key=lambda point: (point["ram"], point["cycles"]))


def _chosen(row: Row) -> Mapping:
    tradeoff = row["search"]["tradeoff"]
    return tradeoff["points"][tradeoff["chosen"]]


def flash_ratio(row: Row) -> float | None:
    """Divide weights and code by tvm-default's; None if its code is unknown."""
    flash = row["footprint"]["baseline"]["flash"]
    return row["footprint"]["best"]["flash"] / flash if flash else None


def latency_ratio(row: Row) -> float:
    """Divide the milliseconds of a run by ONNX Runtime's."""
    return min(row["latency"]["passfit"]) / fastest(row["latency"])


def wide_ratio(row: Row) -> float | None:
    """Divide the milliseconds with AVX-512 by ONNX Runtime's; None if it was not timed."""
    wide = row["latency"].get("wide")
    return min(wide) / fastest(row["latency"]) if wide else None


def _opening(title: str, head: Iterable[str], rows: Mapping[Model, Row]) -> list[str]:
    return [f"# {title}", "", *head, f"* models: {len(rows)}, {len(rows) - len(_done(rows))} of them failed", ""]


def _done(rows: Mapping[Model, Row]) -> dict[Model, Row]:
    return {model: row for model, row in rows.items() if "failed" not in row}


def _table(
    rows: Mapping[Model, Row],
    titles: Sequence[str],
    cells: Callable[[Row], Sequence[str]],
    means: Mapping[str, tuple[Callable[[Row], float | None], str]],
) -> list[str]:
    """Return a row a model, and the geometric mean of each group; a failed model says why.

    `means` maps the title of a column to its value and format.
    """
    lines = [f"| model | {' | '.join(titles)} |", "| --- |" + " ---: |" * len(titles)]
    for model, row in rows.items():
        shown = cells(row) if "failed" not in row else [f"failed: {plain(row['failed'])}", *[""] * (len(titles) - 1)]
        lines.append(f"| {model.title} | {' | '.join(shown)} |")
    groups: dict[str, Callable[[Model], bool]] = {
        "all": lambda model: True,
        "without recurrent": lambda model: not model.recurrent,
        "models.toml": lambda model: bool(model.source),
        "zoo": lambda model: not model.source,
    }
    for title, wanted in groups.items():
        group = [row for model, row in _done(rows).items() if wanted(model)]
        if group and (title == "all" or len(group) < len(_done(rows))):
            shown = [_mean(group, *means[each]) if each in means else "" for each in titles]
            lines.append(f"| **geometric mean, {title}** ({len(group)}) | {' | '.join(shown)} |")
    return lines


def _mean(rows: Sequence[Row], value: Callable[[Row], float | None], form: str) -> str:
    """Format the geometric mean of the values that are known, and their number if some are not."""
    values = [found for row in rows if (found := value(row)) is not None]
    if not values:
        return ""
    return f"**{geometric_mean(values):{form}}**" + (f" (of {len(values)})" if len(values) < len(rows) else "")


def _levers(rows: Mapping[Model, Row]) -> list[str]:
    """Return the section on levers: the arena after each, on top of those before it, ÷ the arena of tvm-default."""
    named = [
        (model, _arenas(row["search"]["levers"]), row["footprint"]["baseline"]["arena"]) for model, row in rows.items()
    ]
    listed = [
        (model, arenas, arena) for model, arenas, arena in named if arena and all(arenas.get(each) for each in LEVERS)
    ]
    lines = [
        "## Arena after each lever",
        "",
        "÷ the arena of tvm-default; each lever on top of those before it: [docs/splits.md](../../docs/splits.md#levers).",
        "",
        f"| model | {' | '.join(LEVERS)} |",
        "| --- |" + " ---: |" * len(LEVERS),
    ]
    for model, arenas, arena in listed:
        lines.append(f"| {model.title} | {' | '.join(f'{arenas[each] / arena:.3f}' for each in LEVERS)} |")
    if listed:
        means = [geometric_mean([arenas[each] / arena for _, arenas, arena in listed]) for each in LEVERS]
        lines.append(f"| **geometric mean** ({len(listed)}) | {' | '.join(f'**{mean:.3f}**' for mean in means)} |")
    return lines


def _arenas(levers: Iterable[Mapping]) -> dict[str, int]:
    """Return the arena after each lever in bytes; one that the winner does not take leaves the arena as it is."""
    arenas = {each["lever"]: each["arena"] for each in levers}
    for before, lever in pairwise(LEVERS) if "repeat" in arenas else ():
        arenas.setdefault(lever, arenas[before])
    return arenas


def _known(value: float | None, form: Callable[[float], str]) -> str:
    return "–" if value is None else form(value)


def plain(text: str, most: int = 200) -> str:
    """Return the first `most` characters of a text in one line, for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")[:most]
