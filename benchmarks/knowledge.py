"""Measure the worth of knowledge of other models: evaluations until a search is within 1 % of the best, leave-one-out.

    .venv/bin/python benchmarks/knowledge.py learn                make knowledge.json anew, from models.toml and the zoo
    .venv/bin/python benchmarks/knowledge.py learn --graphs DIR   … and from the .onnx files of a folder
    .venv/bin/python benchmarks/knowledge.py learn --model NAME   learn one model again, and keep the others
    .venv/bin/python benchmarks/knowledge.py                      measure, in seconds; writes results/knowledge.md

Nothing is evaluated twice: the knowledge file holds the cost of every candidate on every model, so the orders in which
strategies try candidates are replayed on it, each with a knowledge that never saw the model at hand.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from head import head, last_change
from models import HERE, Model, models

from passfit import api
from passfit.errors import PassfitError
from passfit.passes.sequence.catalogue import parse_spec
from passfit.search.evaluate.candidates import TAILS, Candidate, starts
from passfit.search.knowledge import Knowledge, load_knowledge
from passfit.search.knowledge.record import ModelRecord
from passfit.search.knowledge.store import SHIPPED
from passfit.support.text_files import write_text
from passfit.targets import get_target

OBJECTIVES = ("ram", "sum")
#: of a search on a model; models that take minutes to search are left out, and the second size of one model
EVALUATIONS = 64
LEFT_OUT = (
    "ocr-det-640", "speech-dnsmos-sig", "speech-dnsmos-sig-bak-ovr", "speech-pdnsmos-sig-bak-ovr", "speech-aecmos-48k",
    "speech-aecmos-16k", "speech-aecmos-16k-scenario", "speech-plcmos", "nasnet", "randwire", "densenet121",
)  # fmt: skip


HEAD = """\
# Worth of knowledge of other models

{head}

Evaluations until the best known is reached within 1 %, for each of
{models} models ({states} graphs, {outcomes} different outcomes), the knowledge being that of all but the model's
family (the first word of its name; every graph of ReBench is a family of its own). Orders:

* none: every tail, the stock orders, the incumbent's tail on every graph, every tail on the promising ones;
* coreset: tvm-default, the coreset, then as before;
* predictor: tvm-default, then everything by predicted cost;
* both: tvm-default, the coreset, then everything by predicted cost.

Replayed on what `benchmarks/knowledge.py learn` recorded, last in {recorded} (at most 24 graphs and 64
evaluations a model: the best is that of those). Kernels have changed since; a search costs its candidates anew. Sequences
that lead to the same kernels count once, those that fail not at all.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("learn", "measure"), default="measure")
    parser.add_argument("--graphs", type=Path, help="learn: a folder of more models, each with static shapes")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="learn: the knowledge file")
    parser.add_argument("--model", action="append", help="learn: only this one, and keep the others; repeatable")
    arguments = parser.parse_args()
    if arguments.what == "learn":
        learn(arguments.out, arguments.graphs, arguments.model)
    else:
        origin = "\n".join(head().lines(".venv/bin/python benchmarks/knowledge.py"))
        write_text(HERE / "results" / "knowledge.md", report(load_knowledge(), origin, last_change(SHIPPED)))


def learn(out: Path, graphs: Path | None, only: list[str] | None) -> None:
    """Explore the models one by one; drop the records of a file of an earlier catalogue."""
    if not only:
        out.unlink(missing_ok=True)
    for model in [*folder(graphs), *(model for model in models() if model.name not in LEFT_OUT)]:
        if only and model.name not in only:
            continue
        started = time.monotonic()
        try:
            api.learn(
                [model.source or str(model.file())], get_target("x86-64"), out, name=model.name, shapes=model.shapes,
                fix=model.fix, evaluations=EVALUATIONS,
            )  # fmt: skip
        except PassfitError as error:
            sys.stdout.write(f"{model.name}: {error}\n")
        sys.stdout.write(f"{model.name}: {time.monotonic() - started:.1f} s\n")
        sys.stdout.flush()


def folder(graphs: Path | None) -> list[Model]:
    files = [] if graphs is None else sorted(graphs.glob("*.onnx"))
    return [Model(f"{graphs.name}-{file.stem}", str(file)) for file in files]


def report(knowledge: Knowledge, origin: str, recorded: str) -> str:
    """Return knowledge.md: every model without its family, then means without the family, and without the model alone."""
    family = {objective: measured(knowledge, objective, _same_family) for objective in OBJECTIVES}
    model = {objective: measured(knowledge, objective, _same_model) for objective in OBJECTIVES}
    head = [f"{objective}: {name}" for objective in OBJECTIVES for name in ORDERS]
    states = sum(len(record.states) for record in knowledge.records)
    outcomes = sum(len(record.outcomes) for record in knowledge.records)
    lines = [
        HEAD.format(head=origin, models=len(knowledge.records), states=states, outcomes=outcomes, recorded=recorded),
        f"| model | {' | '.join(head)} |",
        f"| --- |{' --- |' * len(head)}",
    ]
    for record in knowledge.records:
        counts = [family[objective][record.model][name] for objective in OBJECTIVES for name in ORDERS]
        lines.append(f"| {record.model} | {' | '.join(map(str, counts))} |")
    lines += ["", "## Geometric means", "", *map(verdict, OBJECTIVES, family.values())]
    lines += ["", f"| left out | models | {' | '.join(head)} |", f"| --- | --- |{' --- |' * len(head)}"]
    for left_out, found in (("family", family), ("model alone", model)):
        for listed, chosen in (("all", _all), ("tvm-default not within 1 %", _gains)):
            means = [_mean(found[objective], name, chosen) for objective in OBJECTIVES for name in ORDERS]
            lines.append(f"| {left_out} | {listed} | {' | '.join(f'{mean:.2f}' for mean in means)} |")
    lines += ["", "## Until the best itself is reached (0.01 %), without the family", "", *exact(knowledge)]
    return "\n".join(lines) + "\n"


def verdict(objective: str, found: dict[str, dict[str, int]]) -> str:
    """Say in a sentence how many evaluations are left."""
    parts = {name: _mean(found, name, _all) / _mean(found, "none", _all) for name in ORDERS}
    return (
        f"* {objective}: the coreset leaves {parts['coreset']:.2f} of the evaluations, the predictor alone "
        f"{parts['predictor']:.2f}, the predictor after the coreset {parts['both']:.2f}."
    )


def exact(knowledge: Knowledge) -> list[str]:
    """Return the same means, until the best itself is reached."""
    lines = [f"| objective | {' | '.join(ORDERS)} |", f"| --- |{' --- |' * len(ORDERS)}"]
    for objective in OBJECTIVES:
        found = measured(knowledge, objective, _same_family, within=0.0001)
        lines.append(f"| {objective} | {' | '.join(f'{_mean(found, name, _all):.2f}' for name in ORDERS)} |")
    return lines


def measured(
    knowledge: Knowledge, objective: str, same: Callable[[ModelRecord, ModelRecord], bool], within: float = 0.01
) -> dict[str, dict[str, int]]:
    """Count evaluations by model and order."""
    found: dict[str, dict[str, int]] = {}
    for record in knowledge.records:
        others = Knowledge(tuple(other for other in knowledge.records if not same(record, other)))
        found[record.model] = {
            name: evaluations(record, order(record, others, objective), objective, within)
            for name, order in ORDERS.items()
        }
    return found


#: a state and a tail of a record
Cell = tuple[int, int]


def evaluations(record: ModelRecord, cells: Iterable[Cell], objective: str, within: float) -> int:
    """Count the different outcomes until one is within a fraction of the best."""
    limit, seen = record.best(objective) * (1 + within), set()
    for state, tail in cells:
        outcome = record.states[state].outcomes[tail]
        if outcome is not None:
            seen.add(outcome)
            if record.outcomes[outcome].cost(objective) <= limit:
                return len(seen)
    raise AssertionError("an order that leaves out the best")


def today(record: ModelRecord, others: Knowledge, objective: str) -> Iterator[Cell]:
    """Order candidates as `orchestrated` does without any knowledge."""
    return _continued(record, _cells(record, starts()), objective)


def coreset_first(record: ModelRecord, others: Knowledge, objective: str) -> Iterator[Cell]:
    cells = _cells(record, [Candidate(), *others.coreset(objective), *starts()])
    return _continued(record, cells, objective)


def predicted(record: ModelRecord, others: Knowledge, objective: str) -> Iterator[Cell]:
    yield 0, 0
    yield from _ranked(record, others, objective)


def both(record: ModelRecord, others: Knowledge, objective: str) -> Iterator[Cell]:
    yield from _cells(record, [Candidate(), *others.coreset(objective)])
    yield from _ranked(record, others, objective)


ORDERS: dict[str, Callable[[ModelRecord, Knowledge, str], Iterator[Cell]]] = {
    "none": today, "coreset": coreset_first, "predictor": predicted, "both": both,
}  # fmt: skip


def _cells(record: ModelRecord, candidates: Iterable[Candidate]) -> list[Cell]:
    """Return the cells that candidates lead to, as far as they are known."""
    found = []
    for each in candidates:
        state = record.state_after(step.spec for step in each.prefix)
        if state is not None:
            found.append((state, record.tails.index(tuple(step.spec for step in each.tail))))
    return found


def _continued(record: ModelRecord, begun: list[Cell], objective: str) -> Iterator[Cell]:
    """Yield the incumbent's tail on every graph, then every tail on the graphs promising by it."""

    def cost(cell: Cell) -> tuple[float, float]:
        outcome = record.states[cell[0]].outcomes[cell[1]]
        if outcome is None:
            return (math.inf, math.inf)
        found = record.outcomes[outcome]
        return (found.ram, found.sum) if objective == "ram" else (found.sum, found.ram)

    yield from begun
    first = min(begun, key=cost)[1]
    states = list(record.prefixes())
    yield from ((state, first) for state in states)
    promising = sorted(states, key=lambda state: cost((state, first)))
    yield from ((state, tail) for state in promising for tail in range(len(record.tails)))


def _ranked(record: ModelRecord, others: Knowledge, objective: str) -> list[Cell]:
    """Rank every graph by every tail as the predictor does."""
    prefixes = {tuple(map(parse_spec, prefix)): state for state, prefix in record.prefixes().items()}
    ranking = others.ranking(objective, lambda prefix: record.states[prefixes[prefix]].features)
    return _cells(record, ranking([Candidate(prefix, tail) for prefix in prefixes for tail in TAILS]))


def _same_model(record: ModelRecord, other: ModelRecord) -> bool:
    return record.digest == other.digest


def _same_family(record: ModelRecord, other: ModelRecord) -> bool:
    return record.digest == other.digest or _family(record.model) == _family(other.model)


def _family(name: str) -> str:
    return name if name.startswith("rebench") else name.partition("-")[0].removeprefix("tiny")


def _all(counts: dict[str, int]) -> bool:
    return True


def _gains(counts: dict[str, int]) -> bool:
    return counts["none"] > 1


def _mean(found: dict[str, dict[str, int]], name: str, chosen: Callable[[dict[str, int]], bool]) -> float:
    counts = [each[name] for each in found.values() if chosen(each)]
    return math.exp(sum(map(math.log, counts)) / len(counts)) if counts else math.nan


if __name__ == "__main__":
    main()
