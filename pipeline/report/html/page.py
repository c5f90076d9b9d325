"""Put a page together: sections in a template, with the plotting library inside, in one file of the same bytes each time.

The page asks for nothing from any network, and may not: its content security policy allows only its own two scripts, by
their digests. So a name in a model that looks like a script is text, and would not run if it were not.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from ...support.result_store import kept_bytes
from ...support.sizes import format_bytes, format_milliseconds
from ..accuracy_table import score_text, share
from ..fit import printable, shorten
from ..results import Json, Result, Results
from .axes import VEGA_LITE, Spec
from .changes import changes_section
from .charts import effect_cells, effects_chart, overview_chart
from .parts import Article, Chart, Part, Section, Table, Text
from .samples import samples_section
from .sections import (
    accuracy_section,
    arena_section,
    error_text,
    footprint_section,
    history_section,
    nodes_section,
    sequence_section,
    time_section,
)

#: columns of a cell; its tooltip has the whole text
_ROOM = 64


def page(results: Results, passes: str = "") -> str:
    """Return the page of all results as HTML; `passes` is the address of the page of passes, empty without one."""
    articles = list(_articles(results))
    opened = next((each.place for each in articles if not each.good), articles[0].place if articles else "")
    link = (passes, "For compiler engineers: the effects of passes on each other") if passes else None
    return _page(results, results.title, [_overview(results)], link, articles, opened)


def passes_page(results: Results, report: str) -> str:
    """Return the page of the effects of passes on each other as HTML; `report` is the address of that of all results."""
    sections = [_effects(model, effects) for model, effects in results.effects.items()] or [_NO_EFFECTS]
    return _page(results, f"Passes of {results.title}", sections, (report, "All results"))


def _page(
    results: Results, title: str, sections: Sequence[Section], link: tuple[str, str] | None,
    articles: Sequence[Article] = (), opened: str = "",
) -> str:  # fmt: skip
    """Fill the template; the article `opened` is unfolded."""
    import jinja2

    folder = Path(__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value,
    )
    environment.filters |= {"chart": _chart, "shortened": lambda cell: shorten(printable(cell), _ROOM)}
    environment.tests["chart"] = lambda part: isinstance(part, Chart)
    environment.tests["table"] = lambda part: isinstance(part, Table)
    environment.tests["sentence"] = lambda part: isinstance(part, Text)
    draw = (folder / "draw.js").read_text(encoding="utf-8")
    return environment.get_template("page.html.j2").render(
        title=title,
        versions=results.versions,
        sections=sections,
        articles=articles,
        opened=opened,
        link=link,
        style=_safe((folder / "style.css").read_text(encoding="utf-8")),
        scripts=[_safe(_library()), _safe(draw)],
        digests=[_digest(_library()), _digest(draw)],
    )


def _articles(results: Results) -> Iterator[Article]:
    for number, result in enumerate(results.results, 1):
        sections = [
            footprint_section(result), arena_section(result), sequence_section(result), time_section(result),
            nodes_section(result), accuracy_section(result), samples_section(result), changes_section(result, results),
            history_section(result, results.history),
        ]  # fmt: skip
        ram = format_bytes(result.footprint.best.ram)
        yield Article(
            f"result-{number}", result.name, f"ram {ram}, {_verdict(results, result)}", results.holds(result), sections
        )


def _verdict(results: Results, result: Result) -> str:
    if not result.footprint.fits:
        return "does NOT fit"
    return "fits" if results.holds(result) else "FAILS"


def _overview(results: Results) -> Section:
    """Open with the answer: how many results fit, and each with its limits, the tightest first."""
    tightest_first = sorted(enumerate(results.results, 1), key=lambda each: (-_strain(results, each[1]), each[0]))
    evaluated = any(result.accuracy for result in results.results)
    columns = ["model @ target", "", ">ram", ">limit", ">left", ">flash", ">limit", ">left", ">time"]
    columns += [*([">accuracy"] if evaluated else []), ">max error", ">ram ÷ tvm-default"]
    rows, links = [], []
    for number, result in tightest_first:
        row = [result.name, _verdict(results, result), *_memories(result), _time(result)]
        rows.append([*row, *([_accuracy(result)] if evaluated else []), *_others(result)])
        links.append(f"#result-{number}")
    parts: list[Part] = [*_answer(results, tightest_first), Table(columns, rows, links=links)]
    if any(result.footprint.baseline.ram for result in results.results):
        parts.append(Text("tvm-default: the same model by TVM's own default pipeline, measured by the same rules."))
    if len(rows) > 1:
        parts.append(Chart("ram of each", overview_chart(results.results)))
    parts += [Text(each, loud=True) for each in results.missing]
    return Section("All results", parts)


def _accuracy(result: Result) -> str:
    report = result.accuracy
    if report is None or report.value is None:
        return "–" if report is None else f"{share(report.library.agreement)} agree"
    named = "" if report.metric == "accuracy" else f" {report.metric}"
    return f"{score_text(report.value)}{named}"


def _answer(results: Results, tightest_first: list[tuple[int, Result]]) -> Iterator[Text]:
    """Yield how many results keep their limits, why others do not, and the tightest that does."""
    good = [result for _, result in tightest_first if results.holds(result)]
    total = len(tightest_first) + len(results.missing)
    alone = all(results.holds(result) for _, result in tightest_first if result.footprint.fits)
    if total:
        yield Text(f"{len(good)} of {total} {'fit' if alone else 'keep their limits'}.", loud=len(good) < total)
    for _, result in tightest_first:
        if result.pair in results.judged and not results.holds(result):
            yield Text(f"{result.name}: {results.judged[result.pair].why}", loud=True)
    if good and (left := _left(results, good[0])):
        yield Text(f"The tightest{' of the others' if len(good) < total else ''} is {good[0].name}: {left}.")


def _strain(results: Results, result: Result) -> float:
    """Return the part of the limit most in use."""
    judged = results.judged.get(result.pair)
    return max(_use(result).values(), default=0.0) if judged is None else judged.strain


def _limit(result: Result, quantity: str) -> int | None:
    """Return the budget of ram or flash, else the capacity of the device; None where neither is known."""
    budget = getattr(result.footprint.budget, quantity)
    return budget if budget is not None or result.capacity is None else getattr(result.capacity, quantity)


def _use(result: Result) -> dict[str, float]:
    """Return the parts of the limits in use, by memory."""
    limits = ((name, _limit(result, name)) for name in ("ram", "flash"))
    return {name: getattr(result.footprint.best, name) / limit for name, limit in limits if limit}


def _left(results: Results, result: Result) -> str:
    """Say how much of the limit most in use is, or how much is left of the fuller memory; empty without a limit."""
    if result.pair in results.judged:
        return results.judged[result.pair].tightest
    fuller = max(used, key=lambda name: used[name]) if (used := _use(result)) else ""
    limit = _limit(result, fuller) if fuller else None
    if limit is None:
        return ""
    return f"{format_bytes(limit - getattr(result.footprint.best, fuller))} of {format_bytes(limit)} of {fuller} left"


def _memories(result: Result) -> Iterator[str]:
    """Yield the use, the limit and the rest of ram and flash."""
    for quantity in ("ram", "flash"):
        used, limit = getattr(result.footprint.best, quantity), _limit(result, quantity)
        yield format_bytes(used)
        yield from ("–", "–") if limit is None else (format_bytes(limit), format_bytes(limit - used))


def _time(result: Result) -> str:
    measured = result.footprint.measured
    if measured.latency_ms is not None:
        return f"{measured.latency_ms:.3g} ms"
    if measured.estimated is not None:
        return f"≈ {format_milliseconds(measured.estimated.likely)}"
    return "–" if measured.instructions is None else f"{measured.instructions:,} instructions"


def _others(result: Result) -> tuple[str, str]:
    """Return the largest error, and the ram relative to TVM's default."""
    report = result.footprint
    ratio = f"{report.best.ram / report.baseline.ram:.2f}" if report.baseline.ram else "–"
    return error_text(report.measured.matched_error), ratio


_NO_EFFECTS = Section(
    "Effects of passes on each other",
    [Text("The passes were not profiled: the stage profile, or `passfit profile`, does.")],
)


def _effects(model: str, effects: Json) -> Section:
    drawn, title = effects_chart(effects), f"Effects of passes on each other: {model}, on {effects['target']}"
    if drawn is None:
        return Section(title, [Text("No pass changes the effect of another one.")])
    rows = [
        (
            cell["first pass"],
            cell["second pass"],
            cell["relation"],
            cell["ram more than alone"],
            cell["sum more than alone"],
        )
        for cell in effect_cells(effects)
    ]
    said = (
        "ram that a pass costs (+) or saves (−) more after another one than alone; Σ: equal ram, another sum of tensors"
    )
    table = Table(("first", "then", "relation", ">ram", ">sum"), rows, fold=f"Pairs ({len(rows)})")
    return Section(title, [Chart(said, drawn, scrolls=True), table])


def _chart(spec: Spec):
    """Return a chart as JSON that may stand in a script element."""
    text = json.dumps(spec, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return _safe(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _safe(text: str):
    from markupsafe import Markup

    return Markup(text)


@lru_cache(maxsize=1)
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, which takes a second to bundle."""
    from importlib.metadata import version

    def bundle() -> bytes:
        import vl_convert

        return vl_convert.javascript_bundle(vl_version=VEGA_LITE).encode()

    return kept_bytes("scripts", f"vega-{VEGA_LITE}-{version('vl-convert-python')}", bundle).decode()


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
