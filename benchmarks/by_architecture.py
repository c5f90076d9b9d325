"""Compare `--strategy by-architecture` with the default: seconds of the search, and the ram it reaches.

    .venv/bin/python benchmarks/by_architecture.py                    all models; writes results/by_architecture.md
    .venv/bin/python benchmarks/by_architecture.py --trained          those of models.toml, a quarter of an hour; written too
    .venv/bin/python benchmarks/by_architecture.py --model ocr-cls    one model; its table is printed, not written

Each search runs in a process of its own with an empty store, for x86-64. Its knowledge lacks the records of the model
and of its relatives (the first word of its name), as if it were unknown. Rows are kept by commit.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping

from head import begin, publish
from models import Model, geometric_mean, models

import passfit.search.knowledge
import passfit.search.search
from passfit import api
from passfit.search.find_sequence import find_sequence
from passfit.support.progress import silent
from passfit.support.sizes import format_bytes
from passfit.targets import get_target

FULL, OURS = "orchestrated", "by-architecture"
#: seconds for one search
LIMIT = 900


def search(name: str, strategy: str) -> dict[str, object]:
    """Search one model in this process. Returns the row of a strategy."""
    from passfit.search.knowledge import Knowledge, load_knowledge

    model = next(each for each in models() if each.name == name)
    source, family = model.source or str(model.file()), _relatives(name)
    known = Knowledge(tuple(record for record in load_knowledge().records if _relatives(record.model) != family))
    passfit.search.knowledge.load_knowledge = lambda extra=None: known
    imported = api.load(source, name, shapes=model.shapes, fix=model.fix)
    started, spent = time.monotonic(), _processor()
    found, _ = find_sequence(imported, get_target("x86-64"), None, api.SearchSettings(strategy), silent)
    return {
        "wall": round(time.monotonic() - started, 2), "processor": round(_processor() - spent, 3), "states": found.evaluations,
        "closed": found.closed, "ram": found.best.ram, "family": found.family,
    }  # fmt: skip


def _processor() -> float:
    """Return the processor seconds of this process and of its children that ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def _relatives(name: str) -> str:
    return name if name.startswith("rebench") else name.partition("-")[0].removeprefix("tiny")


def measure(model: Model) -> dict[str, object]:
    """Search a model by both strategies, each in a process of its own; a row with `failed` gives the reason."""
    row: dict[str, object] = {"load": round(os.getloadavg()[0], 1)}
    for strategy in (OURS, FULL):
        command = [sys.executable, __file__, "--search", model.name, strategy]
        try:
            with tempfile.TemporaryDirectory() as store:
                done = subprocess.run(
                    command,
                    env=os.environ | {"PASSFIT_STORE": store},
                    capture_output=True,
                    text=True,
                    timeout=LIMIT,
                    check=False,
                )
        except subprocess.TimeoutExpired:
            return {"failed": f"{strategy}: no result in {LIMIT} s"}
        if done.returncode:
            return {"failed": f"{strategy}: {' '.join(done.stderr.split())[-200:]}"}
        row[strategy] = json.loads(done.stdout.splitlines()[-1])
    return row


def table(rows: Mapping[Model, Mapping], head: Iterable[str]) -> str:
    """Return by_architecture.md: seconds and ram of both strategies, for each model and in the mean."""
    lines = [
        "# Passes chosen by architecture", "", *head, "",
        f"`passfit optimize` with `--strategy {OURS}`, then with the default, `{FULL}`. The knowledge holds neither the",
        "model nor its relatives. Seconds are wall and processor time of the search, from the imported model to the",
        "sequence, with an empty store: imports of Python and of the model are the same for both.", "",
        "| model | family | states | default's | wall | ratio | processor | ratio | load | ram | ratio |",
        "| --- | --- |" + " ---: |" * 9,
    ]  # fmt: skip
    ratios: dict[str, list[float]] = {"wall": [], "processor": [], "ram": []}
    for model, row in rows.items():
        if "failed" in row:
            lines.append(f"| {model.title} | failed: {row['failed']} |" + " |" * 9)
            continue
        ours, full = row[OURS], row[FULL]
        for key, values in ratios.items():
            values.append(ours[key] / full[key])
        cells = [model.title, ours["family"], ours["states"], f"{full['states']}{'' if full['closed'] else ' (open)'}"]
        cells += [
            ours["wall"],
            f"{ratios['wall'][-1]:.2f}",
            ours["processor"],
            f"{ratios['processor'][-1]:.2f}",
            row["load"],
        ]
        lines.append(f"| {' | '.join(map(str, [*cells, format_bytes(ours['ram'])]))} | {ratios['ram'][-1]:.4f} |")
    if ratios["ram"]:
        wall, processor, ram = (geometric_mean(ratios[key]) for key in ("wall", "processor", "ram"))
        lines.append(
            f"| **geometric mean** ({len(ratios['ram'])}) | | | | | **{wall:.2f}** | | **{processor:.2f}** | | | **{ram:.4f}** |"
        )
        spent = [sum(row[each]["processor"] for row in rows.values() if "failed" not in row) for each in (OURS, FULL)]
        lines += [
            "",
            f"Processor seconds: {spent[0]:.0f} of {spent[1]:.0f}. Most ram: {max(ratios['ram']):.4f} × the default's.",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", action="append", help="only this model; repeatable")
    parser.add_argument(
        "--trained", action="store_true", help="only the models of models.toml, without those of the zoo"
    )
    parser.add_argument("--search", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.search:
        print(json.dumps(search(*arguments.search)))
        return
    origin, folder = begin("by-architecture")
    rows = {}
    for model in models():
        if (arguments.model and model.name not in arguments.model) or (arguments.trained and not model.source):
            continue
        file = folder / f"{model.name}.json"
        if not file.exists():
            file.write_text(json.dumps(measure(model), indent=1) + "\n", encoding="utf-8")
        rows[model] = json.loads(file.read_text(encoding="utf-8"))
        print(f"{model.name}: {json.dumps(rows[model])}", flush=True)
    text = table(
        rows, origin.lines(f".venv/bin/python benchmarks/by_architecture.py{' --trained' * arguments.trained}")
    )
    publish("by_architecture", text, whole=not arguments.model)


if __name__ == "__main__":
    main()
