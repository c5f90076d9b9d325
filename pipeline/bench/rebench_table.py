"""Format the comparison of strategies: reductions by strategy and by graph, in Markdown and JSON."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from .rebench import OURS, SEEDED, BenchGraph, FolderComparison, Found


def as_json(comparison: FolderComparison) -> dict:
    """Return the object of rebench.json: bytes, seconds, and percent for published reductions."""
    graphs = [asdict(graph) | {"better": [asdict(each) for each in graph.better]} for graph in comparison.graphs]
    return {"graphs": graphs, "refused": [asdict(each) for each in comparison.refused]}


def markdown(comparison: FolderComparison, command: str) -> str:
    """Format the whole report; `command` reproduces it."""
    graphs, refused = comparison.graphs, comparison.refused
    title = f"# {len(graphs)} graphs, every strategy\n\n`{command}`\n"
    parts = (
        [_strategies(graphs), _references(graphs), _per_graph(graphs), "\n".join(verdicts(graphs))] if graphs else []
    )
    if refused:
        rows = [(each.name, each.reason.replace("|", "\\|")) for each in refused]
        parts.append(f"{len(refused)} graphs not compared:\n\n" + _table(("graph", "reason"), rows))
    return "\n".join([title, *parts]).rstrip("\n") + "\n"


def verdicts(graphs: Sequence[BenchGraph]) -> list[str]:
    """Summarise the comparison, one finding a line."""
    over = f"over {len(graphs)} graphs"
    lines = [
        f"* mean reduction of the sum, {over}: {_mean(_sum_reduction(OURS), graphs):.1f} %; "
        f"bound {_mean(_ideal, graphs):.1f} %",
        f"* ram ÷ tvm-default, geometric mean {over}: {_geo(_ram_ratio(OURS), graphs):.3f}",
        f"* median seconds of a search, by the sum and by ram: {_median_seconds(graphs):.2f}",
        f"* closed (proved best of these actions): {_closed(graphs)}",
        f"* graphs where another strategy did better: {', '.join(_better(graphs)) or 'none'}",
    ]
    below = [graph.name for graph in graphs if min(each.sum for each in graph.found) < graph.ideal]
    if below:
        lines.append(f"* FAILED: below the bound on the sum: {', '.join(below)}")
    checks = [check for graph in graphs for check in graph.checks]
    lines += [f"* FAILED: {graph.name}: {check.failed}" for graph in graphs for check in graph.checks if check.failed]
    errors = [check.error for check in checks if check.error is not None]
    if errors:
        lines.append(
            f"* winners executed and compared: {len(errors)} of {len(checks)}, largest error {max(errors):.1e}"
        )
    return lines


def _better(graphs: Sequence[BenchGraph]) -> list[str]:
    """List better runs of other strategies: graph, objective, strategy, bytes saved."""
    found = []
    for graph in graphs:
        for each in graph.better:
            ours = graph.of(OURS, each.objective)[0]
            less = getattr(ours, each.objective) - getattr(each, each.objective)
            found.append(
                f"{graph.name} ({each.objective}, {each.strategy}: {less} B{', though closed' if ours.closed else ''})"
            )
    return list(dict.fromkeys(found))


def _strategies(graphs: Sequence[BenchGraph]) -> str:
    rows = []
    for strategy in _strategies_of(graphs):
        runs = [each for graph in graphs for each in graph.found if each.strategy == strategy]
        rows.append(
            (
                strategy,
                f"{_mean(_sum_reduction(strategy), graphs):.1f} %",
                f"{100 * (1 - _geo(_sum_ratio(strategy), graphs)):.1f} %",
                _spread(graphs, strategy),
                f"{_geo(_ram_ratio(strategy), graphs):.3f}",
                f"{statistics.mean(run.evaluations for run in runs):.0f}",
                f"{statistics.median(run.seconds for run in runs):.2f}",
            )
        )
    titles = (
        "strategy",
        "sum: mean reduction",
        "geo. mean",
        "over seeds",
        "ram ÷ tvm-default",
        "evaluations",
        "median s",
    )
    return _table(titles, rows)


def _references(graphs: Sequence[BenchGraph]) -> str:
    rows = [
        ("tvm-default, fused, as TVM does it", f"{_mean(lambda graph: _reduction(graph.default_sum, graph), graphs):.1f} %"),
        ("bound: inputs that results depend on, and results that differ", f"{_mean(_ideal, graphs):.1f} %"),
        ("ours by the published rules: outputs may become float16",
         f"{_mean(lambda graph: _reduction(graph.relaxed, graph), graphs):.1f} %"),
    ]  # fmt: skip
    known = [graph for graph in graphs if graph.published]
    for method in dict.fromkeys(method for graph in known for method in graph.published):
        values = [graph.published[method] for graph in known if method in graph.published]
        rows.append((f"published, {method}", f"{statistics.mean(values):.1f} %"))
    return _table(("reference", "sum: mean reduction"), rows)


def _per_graph(graphs: Sequence[BenchGraph]) -> str:
    strategies = _strategies_of(graphs)
    rows = []
    for graph in graphs:
        ours = graph.of(OURS, "sum")[0]
        rows.append(
            (
                graph.name,
                *(f"{_reduction(_median(graph.of(each, 'sum'), 'sum'), graph):.1f}" for each in strategies),
                f"{_ideal(graph):.1f}",
                f"{_reduction(graph.relaxed, graph):.1f}",
                f"{graph.published['Transfer']:.1f}" if "Transfer" in graph.published else "–",
                f"{_share(_best(graph, 'ram'), graph.default_ram):.3f}",
                f"{ours.seconds:.2f}",
            )
        )
    titles = ("graph", *strategies, "bound", "float16 outputs", "published", "ram ratio", "s")
    return "Reduction of the sum of all tensors by graph, in %:\n\n" + _table(titles, rows)


def _table(titles: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    titles = tuple(titles)
    lines = ["| " + " | ".join(titles) + " |", "| --- |" + " ---: |" * (len(titles) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _strategies_of(graphs: Sequence[BenchGraph]) -> list[str]:
    return list(dict.fromkeys(each.strategy for graph in graphs for each in graph.found))


def _median(found: Sequence[Found], objective: str) -> float:
    return statistics.median(getattr(each, objective) for each in found)


def _best(graph: BenchGraph, objective: str) -> float:
    return _median(graph.of(OURS, objective), objective)


def _share(nbytes: float, whole: int) -> float:
    """Return `nbytes` divided by `whole`; 1 for a graph without tensors."""
    return nbytes / whole if whole else 1.0


def _reduction(nbytes: float, graph: BenchGraph) -> float:
    return 100 * (1 - _share(nbytes, graph.start))


def _ideal(graph: BenchGraph) -> float:
    return _reduction(graph.ideal, graph)


def _sum_reduction(strategy: str) -> Callable[[BenchGraph], float]:
    return lambda graph: _reduction(_median(graph.of(strategy, "sum"), "sum"), graph)


def _sum_ratio(strategy: str) -> Callable[[BenchGraph], float]:
    return lambda graph: _share(_median(graph.of(strategy, "sum"), "sum"), graph.start)


def _ram_ratio(strategy: str) -> Callable[[BenchGraph], float]:
    return lambda graph: _share(_median(graph.of(strategy, "ram"), "ram"), graph.default_ram)


def _mean(figure: Callable[[BenchGraph], float], graphs: Sequence[BenchGraph]) -> float:
    return statistics.mean(figure(graph) for graph in graphs)


def _geo(figure: Callable[[BenchGraph], float], graphs: Sequence[BenchGraph]) -> float:
    """Return the geometric mean; figures below 1e-6 count as 1e-6."""
    return math.exp(statistics.mean(math.log(max(figure(graph), 1e-6)) for graph in graphs))


def _spread(graphs: Sequence[BenchGraph], strategy: str) -> str:
    """Format the lowest and highest mean reduction over the seeds."""
    if strategy not in SEEDED:
        return "–"
    seeds = sorted({each.seed for graph in graphs for each in graph.of(strategy, "sum")})
    means = [
        statistics.mean(
            _reduction(each.sum, graph) for graph in graphs for each in graph.of(strategy, "sum") if each.seed == seed
        )
        for seed in seeds
    ]
    return f"{min(means):.1f}–{max(means):.1f} %"


def _median_seconds(graphs: Sequence[BenchGraph]) -> float:
    return statistics.median(each.seconds for graph in graphs for each in graph.found if each.strategy == OURS)


def _closed(graphs: Sequence[BenchGraph]) -> str:
    ours = [each.closed for graph in graphs for each in graph.found if each.strategy == OURS]
    return f"{sum(ours)} of {len(ours)} searches"
