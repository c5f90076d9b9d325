"""The default strategy against the others on the models of models.toml: ram at equal budgets of evaluated states.

    .venv/bin/python benchmarks/strategies.py                    all models; results in benchmarks/results/strategies.md
    .venv/bin/python benchmarks/strategies.py --model ocr-cls

What one strategy has evaluated is not worked out again for the next, but counted again. So only the seconds of the
default strategy, which goes first and starts from nothing, are those of a search. Results are kept per model.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

import tomli

from passfit import api
from passfit.bench.rebench import OURS, SEEDED
from passfit.errors import PassfitError
from passfit.frontend.imported_model import port_names
from passfit.search.evaluate.workers import InProcess
from passfit.search.knowledge import load_knowledge
from passfit.search.knowledge.knowledge import Knowledge
from passfit.search.search import search
from passfit.search.strategies import STRATEGIES
from passfit.search.strategies.trace import Limits
from passfit.support.sizes import format_bytes
from passfit.support.text_files import write_text
from passfit.targets import get_target

HERE = Path(__file__).parent
SEEDS = range(3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", help="only this one; repeatable")
    parser.add_argument("--evaluations", type=int, default=64)
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    models = tomli.loads((HERE / "models.toml").read_text(encoding="utf-8"))["model"]
    results = HERE / "results" / "strategies"
    results.mkdir(parents=True, exist_ok=True)
    for model in models:
        file = results / f"{model['name']}.json"
        if (arguments.model and model["name"] not in arguments.model) or (file.exists() and not arguments.again):
            continue
        try:
            found = compared(model, arguments.evaluations)
        except PassfitError as error:
            sys.stdout.write(f"{model['name']}: {error}\n")
            continue
        write_text(file, json.dumps(found, indent=1) + "\n")
        sys.stdout.write(f"{model['name']}: {row(found)}\n")
        sys.stdout.flush()
    kept = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*.json"))]
    write_text(HERE / "results" / "strategies.md", table(kept))


def compared(model: dict, evaluations: int) -> dict:
    imported = api.load(model["source"], model["name"], model.get("shapes"), model.get("fix"))
    shared: list[InProcess] = []

    def workers(scorer):
        shared[:] = shared or [InProcess(scorer)]
        return shared[0]

    baseline = None
    found = {"model": model["name"], "evaluations": evaluations, "ram": {}}
    for strategy in (OURS, *(name for name in STRATEGIES if name != OURS)):
        rams = []
        for seed in SEEDS if strategy in SEEDED else (0,):
            started = time.monotonic()
            result = search(
                imported.graph, imported.name, get_target("x86-64"), *port_names(imported.onnx),
                strategy=strategy, seed=seed, limits=Limits(evaluations=evaluations), workers=workers, baseline=baseline,
                knowledge=load_knowledge() if strategy == OURS else Knowledge(),
            )  # fmt: skip
            rams.append(result.best.ram)
            baseline = result.baseline
            if strategy == OURS:
                found |= {
                    "seconds": round(time.monotonic() - started, 1),
                    "states": result.evaluations,
                    "closed": result.closed,
                    "baseline": result.baseline.ram,
                    "sequence": list(result.sequence.specs),
                }
        found["ram"][strategy] = rams
    return found


def row(found: dict) -> str:
    ours = found["ram"][OURS][0]
    better = [name for name, rams in found["ram"].items() if statistics.median(rams) < ours]
    proof = "closed" if found["closed"] else "not closed"
    return f"{format_bytes(ours)}, {proof} in {found['seconds']} s; better: {', '.join(better) or 'none'}"


def table(models: list[dict]) -> str:
    names = [name for name in models[0]["ram"]] if models else []
    lines = [
        "# Strategies on real models",
        "",
        "`.venv/bin/python benchmarks/strategies.py`: ram ÷ tvm-default (median over seeds) at a budget of evaluated states.",
        "",
        "| model | " + " | ".join(names) + " | states | closed | s |",
        "| --- |" + " ---: |" * (len(names) + 3),
    ]
    for found in models:
        ratios = [f"{statistics.median(found['ram'][name]) / found['baseline']:.3f}" for name in names]
        closed = "yes" if found["closed"] else "no"
        lines.append(f"| {found['model']} | {' | '.join(ratios)} | {found['states']} | {closed} | {found['seconds']} |")
    means = [
        math.exp(statistics.mean(math.log(statistics.median(each["ram"][name]) / each["baseline"]) for each in models))
        for name in names
    ]
    lines.append("| geometric mean | " + " | ".join(f"{mean:.3f}" for mean in means) + " | | | |")
    slowest = max(models, key=lambda each: each["seconds"])
    worse = [each["model"] for each in models if "none" not in row(each)]
    lines += [
        "",
        f"Closed: {sum(each['closed'] for each in models)} of {len(models)}. Slowest: {slowest['model']}, "
        f"{slowest['seconds']} s. Models on which another strategy does better: {', '.join(worse) or 'none'}.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
