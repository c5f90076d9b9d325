"""Tell the results of one model on one target, section by section; a section with nothing to show says why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...memory import lifetimes
from ...program import Program
from ...search.refine.lever import Lever
from ...support.sizes import format_bytes
from ..accuracy_table import score_text
from ..arena.blocks import blocks_of, body_blocks, highest
from ..arena.explain import peak_step
from ..arena.explain_bodies import explain_bodies
from ..arena.explain_flash import ALIGNMENT, REST
from ..arena.explain_nodes import CYCLES_ARE, title_of
from ..effects_table import signed
from ..fit import nodes_in
from ..footprint_table import footprint_rows, measured_phrase, verdict_phrase
from ..front_table import tradeoff_lines
from ..kernel_names import kernel_label
from ..levers import WORDS, percent
from ..results import Commit, Result
from .arena_chart import arena_chart, arena_rows, kernel_of
from .charts import (
    footprint_chart,
    history_chart,
    history_rows,
    in_sight,
    kernel_rows,
    kernels_chart,
    tradeoff_chart,
    tradeoff_points,
)
from .parts import Chart, Part, Row, Section, Table, Text

#: how limits are drawn
_LINES = {"budget": "dashed line", "capacity": "dotted line"}
#: rows of a table; there may be thousands of buffers
_ROWS = 200


def footprint_section(result: Result) -> Section:
    """Show the parts of ram and flash against budget and capacity, and the measurements."""
    parts: list[Part] = [Text(verdict_phrase(result.footprint), loud=not result.footprint.fits)]
    parts += [Text(each) for each in result.advice]
    charts = []
    for quantity in ("ram", "flash"):
        limits = _limits(result, quantity)
        lines = {
            name: f" ({_LINES[name]})" if in_sight(limit, result, quantity) else "" for name, limit in limits.items()
        }
        said = (
            ", ".join(f"{name} {format_bytes(limit)}{lines[name]}" for name, limit in limits.items())
            or "no limit is known"
        )
        used = getattr(result.footprint.best, quantity)
        charts.append(Chart(f"{quantity} {format_bytes(used)}; {said}", footprint_chart(result, quantity, limits)))
    table = Table(("", ">passfit", ">tvm-default", ">ratio"), list(footprint_rows(result.footprint)))
    remarks = [Text(said) for said in (result.footprint.without_baseline, measured_phrase(result.footprint)) if said]
    return Section("Footprint", [*parts, Row(charts), table, *remarks, *_parts_of_flash(result)])


def _parts_of_flash(result: Result) -> Iterator[Part]:
    """Yield the bytes of each initializer and of each kernel."""
    flash = result.flash()
    if flash is None:
        return
    weights = [
        (part.title, "/".join(part.dtypes), format_bytes(part.nbytes), nodes_in(part.nodes) or "–")
        for part in flash.weights[:_ROWS]
    ]
    if weights:
        weights.append((ALIGNMENT, "", format_bytes(flash.alignment), ""))
        columns = ("initializer", "dtype", ">size", "ONNX nodes")
        yield Table(columns, weights, fold=f"Weights by initializer ({len(flash.weights)})")
    code = [(part.name, format_bytes(part.nbytes), nodes_in(part.nodes) or "–") for part in flash.code[:_ROWS]]
    if flash.rest is not None:
        code.append((REST, format_bytes(flash.rest), ""))
        yield Table(("kernel", ">size", "ONNX nodes"), code, fold=f"Code by kernel ({len(flash.code)})")


def _limits(result: Result, quantity: str) -> dict[str, int]:
    budget = getattr(result.footprint.budget, quantity)
    found = {} if budget is None else {"budget": budget}
    return found | ({} if result.capacity is None else {"capacity": getattr(result.capacity, quantity)})


def arena_section(result: Result) -> Section:
    """Show the arena before and after, the buffers at the peak, and levers."""
    explained = result.explanation()
    if result.saved is None or explained is None:
        return Section("Arena", [Text("There is no plan.json: compile the model to see its arena.")])
    sides = (
        [("after", result.saved)]
        if result.before is None
        else [
            ("before: the order given, nothing shared or split", result.before),
            ("after", result.saved),
        ]
    )
    drawn = [(title, saved, blocks_of(saved.program, saved.plan, saved.alignment)) for title, saved in sides]
    most = max(highest(blocks) for _, _, blocks in drawn)
    charts, tables = [], []
    for title, saved, blocks in drawn:
        program, plan = saved.program, saved.plan
        steps = max(1, len(program.steps))
        peak = peak_step(program, plan, lifetimes(program), saved.alignment)
        rows = arena_rows(blocks, kernel_of(program), steps, most)
        charts.append(
            Chart(
                f"{title}: {format_bytes(plan.arena)}", arena_chart(rows, steps, most, peak if program.steps else None)
            )
        )
    proof = (
        "equal to its bound: no plan of this order is smaller"
        if result.saved.plan.proved
        else f"its bound is {format_bytes(explained.bound)}"
    )
    said = f"The arena takes {format_bytes(explained.arena)}, {proof}. The dashed line is the peak"
    said += "." if explained.peak is None else f", at {kernel_label(explained.peak.step, explained.peak.kernel)}."
    alive = [
        (
            each.name,
            format_bytes(each.nbytes),
            each.dtype,
            each.role,
            each.producer or "the caller",
            nodes_in(each.nodes) or "–",
        )
        for each in explained.alive[:_ROWS]
    ]
    tables.append(
        Table(
            ("buffer", ">size", "dtype", "role", "kernel", "ONNX nodes"),
            alive,
            fold=f"Buffers at the peak ({len(explained.alive)})",
        )
    )
    missing = [] if result.before else [Text("There is no plan-before.json: compile again to see the arena before.")]
    return Section(
        "Arena",
        [
            Text(said),
            Row(charts),
            *missing,
            *tables,
            *map(Text, (*explained.advice, *result.remedies())),
            *_bodies(result.saved.program),
        ],
    )


def _bodies(program: Program) -> Iterator[Part]:
    """Yield a map of the values inside each loop and each region."""
    for body in explain_bodies(program):
        blocks = body_blocks(body)
        if not blocks:
            continue
        stages, most = max(block.end for block in blocks), highest(blocks)
        rows = arena_rows(blocks, lambda _: ("", ""), stages, most)
        loop = f"{'a loop of ' if body.inside else ''}{kernel_label(body.step, body.kernel)}"
        title = f"inside {loop}, {body.trips} iterations: {format_bytes(body.nbytes)} of values"
        yield Chart(title, arena_chart(rows, stages, most, body.peak, "stage"))


def sequence_section(result: Result) -> Section:
    """Show the passes with the worth of each, and the levers that lowered the arena."""
    if result.passes is None:
        return Section("Sequence", [Text("There is no sequence.json.")])
    worth = {each["spec"]: each for each in (result.search or {}).get("ablation", ())}
    rows = []
    for number, spec in enumerate(result.passes, 1):
        found = worth.get(spec)
        rows.append(
            (f"{number}  {spec}", *("" if found is None else _cost(found[name]) for name in ("ram", "weights", "sum")))
        )
    parts: list[Part] = []
    if worth:
        parts.append(Text("Numbers: what leaving this pass out alone would cost (+) or save (−)."))
        parts.append(Table(("pass", ">ram", ">weights", ">sum of tensors"), rows))
    else:
        parts.append(Table(("pass",), [row[:1] for row in rows]))
        parts.append(Text("What each pass is worth is not known: the search measured none alone."))
    levers = [Lever(**each) for each in (result.search or {}).get("levers", ())]
    if levers:
        steps = [
            (WORDS.get(each.lever, each.lever), format_bytes(each.arena), percent(each.extra_compute))
            for each in levers
        ]
        parts += [
            Text("What lowers the arena, one lever after the other:"),
            Table(("lever", ">arena", ">extra compute"), steps),
        ]
    return Section("Sequence", parts)


def _cost(nbytes: int | None) -> str:
    return "fails" if nbytes is None else signed(nbytes) if nbytes else "–"


def time_section(result: Result) -> Section:
    """Show ram against time over the candidates of the search."""
    points, unit = tradeoff_points(result)
    drawn = tradeoff_chart(result)
    lines = (
        [Text(each) for each in tradeoff_lines(result.search["tradeoff"])]
        if result.search and "tradeoff" in result.search
        else []
    )
    if not points:
        return Section(
            "Ram against time", [Text("There are no candidates to compare: no search left its search.json here.")]
        )
    rows = [
        ("→ " * each["chosen"] + each["candidate"], each["size"], each["cost"], each["extra compute"])
        for each in points
    ]
    table = Table(("candidate", ">ram", f">{unit}", ">extra compute"), rows, fold=f"Candidates ({len(rows)})")
    shown = (
        [Chart(f"ram against {unit}; the chosen one is large", drawn)]
        if drawn
        else [Text("One candidate is best in ram and in time: there is nothing to weigh.")]
    )
    return Section("Ram against time", [*shown, *lines, table])


def nodes_section(result: Result) -> Section:
    """Show the nodes of a run, and kernels by time beside their roofline."""
    nodes = result.nodes()
    parts: list[Part] = []
    if nodes is not None and nodes.parts:
        rows = [
            (title_of(part) if part else f"{len(nodes.parts) - _ROWS} more", *cells)
            for part, cells in nodes.rows(_ROWS)
        ]
        parts += [Text(f"{nodes.summary}.")] if nodes.summary else []
        parts += [Text(f"{CYCLES_ARE}.")] if nodes.mhz else []
        parts.append(Table(nodes.columns, rows, fold=f"Nodes ({len(nodes.parts)})"))
    return Section("Nodes and their time", [*parts, *_timed_kernels(result)])


def _timed_kernels(result: Result) -> Iterator[Part]:
    """Yield the kernels as timed, or why they were not."""
    if result.kernels is None or result.why_untimed:
        slow, why = result.footprint.slow_summary, result.why_untimed
        if result.cycles is None:
            yield Text(f"The kernels were not timed: {why}.")
        if slow:
            yield Text(slow)
        return
    rows = [
        (each["name"], each["nodes"], f"{each['µs']:,.1f}", f"{each['at least µs']:,.1f}", f"{each['roofline']:.2f}")
        for each in kernel_rows(result.kernels)
    ]
    total = result.kernels["run_ns"] / 1e6
    yield Chart(f"{total:,.3f} ms a run; the mark is the least time by the roofline", kernels_chart(result.kernels))
    columns = ("kernel", "ONNX nodes", ">µs", ">at least µs", ">roofline")
    yield Table(columns, rows[:_ROWS], fold=f"All kernels ({len(rows)})")


def accuracy_section(result: Result) -> Section:
    """Show how far outputs are from the model's."""
    measured = result.footprint.measured
    if not measured.ran:
        return Section("Accuracy", [Text(f"The library did not run: {measured.how}.")])
    if measured.unverified:
        return Section("Accuracy", [Text(f"Outputs were not compared: {measured.unverified}.", loud=True)])
    rows = [
        ("largest error, of the range of the output", error_text(measured.max_rel_error)),
        ("largest error", error_text(measured.max_abs_error)),
    ]
    if measured.reordered is not None:
        rows.append(("the same, matched", measured.error_summary))
    if measured.error is not None and measured.error.library_to_double is not None:
        rows += [
            ("from double precision: the library", error_text(measured.error.library_to_double)),
            ("from double precision: ONNX Runtime", error_text(measured.error.onnxruntime_to_double)),
        ]
    parts: list[Part] = [Table((f"compared with {measured.verified_by or 'ONNX Runtime'}", ">"), rows)]
    if measured.given is not None and measured.given.outputs:
        cells = [
            (
                each.output,
                f"{each.elements:,}",
                _count(each.differing),
                _count(each.max_lsb),
                "–" if not each.decisions else f"{each.same_decisions} of {each.decisions}",
            )
            for each in measured.given.outputs
        ]
        parts += [
            Text(f"Beside the quantised model as given: {measured.given.summary}."),
            Table(("output", ">elements", ">differ", ">most LSB", ">same decisions"), cells),
        ]
    if not result.footprint.exact:
        parts.append(Text("The sequence is lossy: it has passes that change results by more than rounding.", loud=True))
    return Section("Accuracy", [*parts, *(Text(each.summary, loud=True) for each in result.footprint.defects)])


def error_text(value: float | None) -> str:
    """Write an error; a dash where it is not known."""
    return "–" if value is None else f"{value:.1e}" if value else "0"


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def history_section(result: Result, history: Sequence[Commit]) -> Section:
    """Show ram over the commits that changed it."""
    rows = history_rows(history, result)
    if len(rows) < 2:
        return Section(
            "History", [Text("Git has no other footprint of it: commit footprints/ after each `dvc repro`.")]
        )
    known = any(each["accuracy"] != score_text(None) for each in rows)
    shown = ("commit", "subject", "ram size", "flash size", "time", *(("accuracy",) if known else ()))
    cells = [tuple(each[name] for name in shown) for each in reversed(rows)]
    columns = ("commit", "message", ">ram", ">flash", ">latency", ">accuracy")[: len(shown)]
    return Section(
        "History",
        [
            Chart("ram over commits", history_chart(rows)),
            Table(columns, cells, fold=f"Commits ({len(rows)})"),
        ],
    )
