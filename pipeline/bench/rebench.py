"""Run every search strategy on a folder of ONNX graphs, for the published metric and for ram.

The published metric is the sum of all tensors: inputs + constants + results of the calls left at graph level. Searches
start from the same imported graph, with the same actions and the same number of evaluations; randomised ones run with
several seeds. Winners of passfit's own strategy are compiled, executed and compared with ONNX Runtime.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ModelError, NumericError, PassfitError, reason_of
from ..support.temporary_folder import scratch_folder
from ..targets import Target

if TYPE_CHECKING:
    from ..frontend.imported_model import ImportedModel
    from ..search.search import SearchResult

#: passfit's own strategy, compared with the others
OURS = "orchestrated"
#: randomised strategies
SEEDED = ("annealing", "opass", "random")


@dataclass(frozen=True)
class Found:
    """Result of one search; `ram` and `sum` are bytes of the best sequence by the objective."""

    strategy: str
    objective: str
    seed: int
    ram: int
    sum: int
    evaluations: int
    closed: bool
    seconds: float
    passes: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """Winner of a search, compiled and executed.

    `error` is relative to the range of an output; `ram` is measured, `predicted` predicted, in bytes. `failed` describes
    wrong results.
    """

    objective: str
    how: str
    error: float | None
    ram: int | None
    predicted: int
    failed: str = ""


@dataclass(frozen=True)
class BenchGraph:
    """Results of all searches on one graph.

    `start` is the sum of all tensors of the file, `ideal` a lower bound on that of any program (see
    `bench/sum_bound.py`), `default_*` tvm-default, all in bytes; `published` is the reduction of each published method,
    in %. `relaxed` is the sum by the published rules: outputs may become float16.
    """

    name: str
    start: int
    ideal: int
    default_ram: int
    default_sum: int
    found: tuple[Found, ...]
    checks: tuple[Check, ...]
    relaxed: int
    published: dict[str, float]

    def of(self, strategy: str, objective: str) -> list[Found]:
        return [each for each in self.found if (each.strategy, each.objective) == (strategy, objective)]

    @property
    def better(self) -> list[Found]:
        """Collect the runs of other strategies with a lower objective than ours."""
        ours = {each.objective: each for each in self.found if each.strategy == OURS}
        return [
            each for each in self.found
            if getattr(each, each.objective) < getattr(ours[each.objective], each.objective)
        ]  # fmt: skip


@dataclass(frozen=True)
class Refused:
    """Graph without a comparison, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True)
class FolderComparison:
    """Graphs of a folder, compared and refused."""

    graphs: tuple[BenchGraph, ...]
    refused: tuple[Refused, ...] = ()


def rebench(
    folder: Path,
    target: Target,
    *,
    evaluations: int = 64,
    seeds: int = 3,
    check: bool = True,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> FolderComparison:
    """Compare the strategies on every graph of `folder`, by name; one that cannot be compared is told with the reason. Raises ModelError where there
    is none."""
    from ..passes.sequence.failures import failure_of

    files = sorted(folder.glob("*.onnx"))
    if not files:
        raise ModelError(f"There is no .onnx file in '{folder}'.", "Give a folder of ONNX graphs.")
    published = _read_published(folder / "published.json")
    graphs, refused = [], []
    for done, file in enumerate(files):
        progress(file.name, done, len(files))
        try:
            graphs.append(_graph(file, target, evaluations, seeds, check, published.get(file.stem, {})))
        except Exception as error:
            if not isinstance(error, PassfitError) and failure_of(error) is None:
                raise
            refused.append(Refused(file.stem, reason_of(error)))
    return FolderComparison(tuple(graphs), tuple(refused))


def _graph(
    file: Path, target: Target, evaluations: int, seeds: int, check: bool, published: dict[str, float]
) -> BenchGraph:
    from ..frontend.imported_model import load
    from ..search.search import OBJECTIVES
    from ..search.strategies import STRATEGIES
    from .sum_bound import least_sum

    imported = load(file)
    found: list[Found] = []
    checks: list[Check] = []
    # ours goes first: caches of TVM and passfit speed up the later strategies, never the first
    for strategy in (OURS, *(name for name in STRATEGIES if name != OURS)):
        for objective in OBJECTIVES:
            for seed in range(seeds if strategy in SEEDED else 1):
                started = time.monotonic()
                result = _search(imported, target, strategy, objective, evaluations, seed)
                found.append(_found(strategy, objective, seed, result, time.monotonic() - started))
                if check and strategy == OURS:
                    checks.append(_check(file, target, objective, result))
    default = result.baseline
    if default.ram is None or default.sum is None:
        raise ModelError(f"tvm-default is not available: {default.unavailable}")
    return BenchGraph(
        file.stem, imported.start.sum, least_sum(imported.onnx), default.ram, default.sum,
        tuple(found), tuple(checks), _relaxed_sum(imported, target, evaluations, found), published,
    )  # fmt: skip


def _search(
    imported: ImportedModel,
    target: Target,
    strategy: str,
    objective: str,
    evaluations: int,
    seed: int,
    lossy: bool = False,
) -> SearchResult:
    from ..frontend.imported_model import port_names
    from ..search.search import search
    from ..search.strategies.trace import Limits

    ports = port_names(imported.onnx)
    limits = Limits(evaluations=evaluations)
    return search(
        imported.graph, imported.name, target, *ports,
        strategy=strategy, objective=objective, limits=limits, seed=seed, lossy=lossy,
    )  # fmt: skip


def _found(strategy: str, objective: str, seed: int, result: SearchResult, seconds: float) -> Found:
    return Found(
        strategy, objective, seed, result.best.ram, result.best.sum, result.evaluations, result.closed,
        round(seconds, 3), result.sequence.specs,
    )  # fmt: skip


def _relaxed_sum(imported: ImportedModel, target: Target, evaluations: int, found: list[Found]) -> int:
    """Return the least sum with float16 allowed, also in outputs, as in the published winners."""
    from .half_outputs import half_outputs

    halved = replace(imported, graph=half_outputs(imported.graph))
    kept = next(each.sum for each in found if (each.strategy, each.objective) == (OURS, "sum"))
    return min(kept, _search(halved, target, OURS, "sum", evaluations, 0, lossy=True).best.sum)


def _check(file: Path, target: Target, objective: str, result: SearchResult) -> Check:
    """Compile and run the winner of a search."""
    from ..api import compile_model
    from ..passes.sequence.sequence import write_sequence

    with scratch_folder() as scratch:
        sequence = scratch / "sequence.json"
        write_sequence(result.sequence, sequence)
        try:
            report = compile_model(file, target, out=scratch / "out", sequence=sequence)
        except NumericError as error:
            return Check(objective, "failed", None, None, result.best.ram, error.what)
    measured = report.measured
    return Check(objective, measured.how, measured.max_rel_error, measured.ram, report.best.ram)


def _read_published(path: Path) -> dict[str, dict[str, float]]:
    """Read the published reduction of the sum per graph and method, in %; empty without the file."""
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {name: dict(_reductions(entry["static"])) for name, entry in data.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PassfitError(
            f"'{path}' is not a table of published results: {error!r}.", "Correct or remove it."
        ) from None


def _reductions(methods: dict[str, dict]) -> Iterator[tuple[str, float]]:
    start = methods["Origin"]["mib"]
    for method, result in methods.items():
        if method != "Origin" and result.get("mib") is not None:
            yield method, 100 * (1 - result["mib"] / start)
