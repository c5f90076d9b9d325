"""Many cases at once: in several processes, counted, and the faults kept."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .cases import operator_case
from .execute import Drawer, run_seeds
from .judge import FAULTS, VERDICTS, Result

#: cases of one library by default
BATCHES = {"operators": 64, "networks": 1}
#: faults of a class that are reduced; cases between two lines of progress
_EACH, _PROGRESS = 1, 500


def drawer(kind: str, only: str = "") -> Drawer:
    """Return the function from a seed to its case."""
    if kind == "operators":
        return partial(operator_case, only=only)
    from .networks import network_case

    return partial(network_case, only=only)


def campaign(
    kind: str, seeds: Sequence[int], only: str = "", batch: int = 0, processes: int = 2, keep: Path | None = None
) -> list[Result]:
    """Run the cases of all seeds; return their results by seed. Faults are printed at once, and kept reduced in `keep`."""
    results: list[Result] = []
    for result in running(kind, seeds, only, batch, processes):
        results.append(result)
        if len(results) % _PROGRESS == 0:
            print(f"{len(results)} of {len(seeds)} done", flush=True)
        if result.verdict in FAULTS:
            print(result.line, flush=True)
    if keep:
        keep_faults(results, drawer(kind, only), keep)
    return sorted(results, key=lambda result: result.seed)


def running(kind: str, seeds: Sequence[int], only: str = "", batch: int = 0, processes: int = 2) -> Iterator[Result]:
    """Run the cases of all seeds in several processes; yield each result when it is there."""
    preload()
    size = batch or BATCHES[kind]
    batches = [list(seeds[start : start + size]) for start in range(0, len(seeds), size)]
    context = multiprocessing.get_context("fork")
    taken, done = context.Value("l", 0), context.SimpleQueue()
    lanes = [
        context.Process(target=_lane, args=(kind, only, batches, taken, done))
        for _ in range(min(processes, len(batches)))
    ]
    for lane in lanes:
        lane.start()
    for _ in seeds:
        yield done.get()
    for lane in lanes:
        lane.join()


def keep_faults(results: Sequence[Result], draw: Drawer, keep: Path) -> None:
    """Reduce some faults of each class, and write them below `keep`."""
    from .reduce import keep_reduced

    seen: Counter[tuple[str, str]] = Counter()
    for result in results:
        seen[result.title, result.kind] += 1
        if result.verdict in FAULTS and seen[result.title, result.kind] <= _EACH:
            keep_reduced(draw(result.seed), result, keep)


def preload() -> None:
    """Load once all that forked processes need."""
    import onnx.reference  # noqa: F401
    import onnxruntime  # noqa: F401

    import passfit.backend.built
    import passfit.codegen.quick_shared
    import passfit.frontend.canonicalise
    import passfit.frontend.relax.to_relax
    import passfit.passes.sequence.replay
    import passfit.tuning.slow_kernels  # noqa: F401

    from .execute import lower_case

    # what the first import and lowering load and remember costs seconds: once, instead of in each fork
    with tempfile.TemporaryDirectory() as folder:
        lower_case(operator_case(0), Path(folder))


def _lane(
    kind: str, only: str, batches: Sequence[Sequence[int]], taken: Any, done: multiprocessing.SimpleQueue
) -> None:
    """Run the next batch that no other process has taken, until there is none."""
    while True:
        with taken:
            number, taken.value = taken.value, taken.value + 1
        if number >= len(batches):
            return
        for result in run_seeds(drawer(kind, only), batches[number]):
            done.put(result)


def print_table(results: Sequence[Result]) -> None:
    """Print counts by operator and verdict, then the reasons of refusals by count."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for each in results:
        rows[each.title][each.verdict] += 1
    total = Counter(each.verdict for each in results)
    shown = [verdict for verdict in VERDICTS if total[verdict]]
    print(f"{'operator':28}" + "".join(f"{verdict:>10}" for verdict in shown))
    for title in sorted(rows):
        print(f"{title:28}" + "".join(f"{rows[title][verdict] or '·':>10}" for verdict in shown))
    print(f"{'all':28}" + "".join(f"{total[verdict]:>10}" for verdict in shown))
    reasons = Counter((each.title.split("-")[0], each.kind) for each in results if each.verdict == "refused")
    for (title, reason), count in reasons.most_common(40):
        print(f"refused {count:5}  {title}: {reason}")
