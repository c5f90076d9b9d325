"""Measure each rule's share of `simplify`: where it fires, and the sum of tensors and ram without it.

    .venv/bin/python benchmarks/rules.py ../shared/rebench                    graphs of a folder, and MODELS
    .venv/bin/python benchmarks/rules.py ../shared/rebench --model ocr-cls    other models; repeatable

Sequences are `simplify` or `simplify{without=RULE}`, then TVM's default: no search, so that figures compare. Rules that
are not part of `simplify` stand alone before the default. Writes benchmarks/results/rules.md.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from head import head
from models import HERE, models

from passfit import api
from passfit.frontend.imported_model import ImportedModel, port_names
from passfit.passes.graph.rules.book import CLEAN, RULES
from passfit.passes.graph.rules.rule import apply_rules
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.search.evaluate.scoring import EvaluationRequest, Scorer
from passfit.support.text_files import write_text
from passfit.targets import get_target

RESULT = HERE / "results" / "rules.md"
MODELS = ("ocr-cls", "mtcnn-rnet", "wake-alexa", "tinyocr-rec", "vad-16k-sequence", "vad-half", "speech-dnsmos-p808")


@dataclass
class Measured:
    """Figures of one graph, in bytes, by the graph passes before the default tail; `fired` counts values replaced."""

    name: str
    start: int
    seconds: float
    sums: dict[str, int] = field(default_factory=dict)
    rams: dict[str, int] = field(default_factory=dict)
    fired: Counter[str] = field(default_factory=Counter)


def measured(imported: ImportedModel) -> Measured:
    started = time.process_time()
    fired: Counter[str] = Counter()
    apply_rules(imported.graph, [rule() for rule in CLEAN], lambda rule, count: fired.update({rule.name: count}))
    found = Measured(imported.name, imported.start.sum, time.process_time() - started, fired=fired)
    scorer = Scorer(imported.graph, imported.name, get_target("x86-64"), *port_names(imported.onnx))
    for spec in ("", "simplify", *(_spec(rule.name) for rule in RULES if rule.name in fired or not rule.clean)):
        outcome = scorer.outcome(EvaluationRequest((*filter(None, [spec]), *TVM_DEFAULT)))
        if outcome.footprint is not None:
            found.sums[spec], found.rams[spec] = outcome.footprint.sum, outcome.footprint.ram
        if spec and spec == next((rule.name for rule in RULES if rule.name == spec), ""):
            found.fired[spec] += found.sums.get(spec) != found.sums[""] or found.rams.get(spec) != found.rams[""]
    return found


def _spec(rule: str) -> str:
    """Return the sequence's graph pass that shows a rule's share."""
    return f"simplify{{without={rule}}}" if rule in {each.name for each in CLEAN} else rule


def table(graphs: Sequence[Measured]) -> str:
    """Return the share of each rule as Markdown."""
    whole = sum(_reduction(each, "simplify") for each in graphs) / len(graphs)
    none = sum(_reduction(each, "") for each in graphs) / len(graphs)
    lines = [
        f"Mean reduction of the sum: {none:.2f} % by TVM's default, {whole:.2f} % with `simplify` before it; geometric mean of"
        f" ram: × {_ratio(graphs, 'simplify', ''):.4f}.",
        "",
        "| rule | fires on | values | sum: share, points | ram without it | graphs |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for rule in (each.name for each in RULES):
        at = [each for each in graphs if each.fired[rule]]
        spec = _spec(rule)
        base = "simplify" if spec != rule else ""
        changed = [each for each in at if spec in each.sums]
        share = sum(_reduction(each, base) - _reduction(each, spec) for each in changed) / len(graphs)
        share = share if spec != rule else -share
        names = " ".join(each.name for each in at[:12]) + (" …" if len(at) > 12 else "")
        lines.append(
            f"| {rule} | {len(at)} | {sum(each.fired[rule] for each in at)} | {share:+.3f} |"
            f" × {_ratio(changed, spec, base):.4f} | {names} |"
        )
    lines += [
        "",
        "| graph | start | default | simplify | ram | ram, simplify | seconds |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {each.name} | {each.start} | {each.sums['']} | {each.sums['simplify']} | {each.rams['']} |"
        f" {each.rams['simplify']} | {each.seconds:.2f} |"
        for each in graphs
    ]
    return "\n".join(lines)


def _reduction(each: Measured, spec: str) -> float:
    return 100 * (1 - each.sums.get(spec, each.sums[""]) / each.start)


def _ratio(graphs: Sequence[Measured], spec: str, base: str) -> float:
    """Return the geometric mean of ram by one sequence over ram by another."""
    logarithms = [math.log(each.rams.get(spec, each.rams[base]) / each.rams[base]) for each in graphs]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of ONNX graphs")
    parser.add_argument("--model", action="append", help=f"instead of {', '.join(MODELS)}; repeatable")
    arguments = parser.parse_args()
    origin, chosen = head(), arguments.model or MODELS
    known = {model.name: model for model in models()}
    graphs = []
    for load in (
        *(lambda file=file: api.load(file, file.stem) for file in sorted(arguments.folder.glob("*.onnx"))),
        *(
            lambda model=known[name]: api.load(model.file(), model.name, shapes=model.shapes, fix=model.fix)
            for name in chosen
        ),
    ):
        graphs.append(measured(load()))
        sys.stdout.write(
            f"{graphs[-1].name}: {dict(graphs[-1].fired)}, sum {graphs[-1].sums['']} to {graphs[-1].sums['simplify']}\n"
        )
        sys.stdout.flush()
    models_asked = "".join(f" --model {name}" for name in arguments.model or ())
    lines = [
        "# Rules, each left out of `simplify`", "",
        *origin.lines(f".venv/bin/python benchmarks/rules.py DIR{models_asked}"), "",
        "Share: points of the mean reduction of the sum of tensors that are lost without the rule; ram without it: of the",
        "graphs it fires on, the geometric mean of ram without ÷ with. Rules outside of `simplify` are tried alone.", "",
        table(graphs),
    ]  # fmt: skip
    write_text(RESULT, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
