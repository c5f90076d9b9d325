"""Compare `--strategy by-architecture` with the default: seconds of `passfit optimize`, and the ram it reaches.

    .venv/bin/python benchmarks/by_architecture.py                  results in benchmarks/results/by_architecture.md
    .venv/bin/python benchmarks/by_architecture.py --model ocr-cls --again

Each search in a process of its own, one after the other, x86-64, with a knowledge that never saw the model's own
records, nor those of its relatives (the first word of its name), so that the selection is that of an unknown model.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from entries import HERE, Entry, alone, entries, geometric_mean, missing

from passfit import api
from passfit.search.settings import SearchSettings
from passfit.support.sizes import format_bytes
from passfit.support.text_files import write_text
from passfit.targets import get_target

RESULTS = HERE / "results" / "by_architecture"
FULL, OURS = "orchestrated", "by-architecture"


def fill(entry: Entry, source: str, strategy: str, file: Path) -> None:
    """Search one model by one strategy, and add the result to `file`."""
    import passfit.frontend.relax.to_relax
    import passfit.search.search  # loaded before the clock starts: Python's imports are the same for both
    from passfit.search.knowledge import Knowledge, load_knowledge

    family = _relatives(entry.name)
    known = Knowledge(tuple(record for record in load_knowledge().records if _relatives(record.model) != family))
    passfit.search.knowledge.load_knowledge = lambda extra=None: known
    started, busy, spent = time.monotonic(), os.getloadavg()[0], _processor()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        report = api.optimize(
            source, get_target("x86-64"), out=out, name=entry.name, shapes=entry.shapes, fix=entry.fix,
            search=SearchSettings(strategy),
        )  # fmt: skip
        wall = time.monotonic() - started
        found = json.loads((out / "search.json").read_text(encoding="utf-8"))
        passes = json.loads((out / "sequence.json").read_text(encoding="utf-8"))["passes"]
    result = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    result[strategy] = {
        "wall": round(wall, 2),
        "processor": round(_processor() - spent, 2),
        "load": round(busy, 1),
        "states": found["evaluations"],
        "closed": found["closed"],
        "ram": report.best.ram,
        "baseline": report.baseline.ram,
        "passes": passes,
        "family": found.get("family", ""),
    }
    write_text(file, json.dumps(result, indent=1) + "\n")


def _processor() -> float:
    """Return the processor seconds of this process and of its children that ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def _relatives(name: str) -> str:
    return name if name.startswith("rebench") else name.partition("-")[0].removeprefix("tiny")


def table() -> str:
    known = {entry.name: _read(RESULTS / f"{entry.name}.json") for entry in entries()}
    done = {name: found for name, found in known.items() if FULL in found and OURS in found}
    ratios = {
        key: [found[OURS][key] / found[FULL][key] for found in done.values()] for key in ("wall", "processor", "ram")
    }
    means = {key: geometric_mean(values) for key, values in ratios.items()} if done else {}
    worst = max(done, key=lambda name: done[name][OURS]["ram"] / done[name][FULL]["ram"], default="")
    lines = [
        "# Passes chosen by architecture",
        "",
        f"`.venv/bin/python benchmarks/by_architecture.py`, rows up to commit `{_commit()}`: `passfit optimize` with `--strategy",
        f"{OURS}` beside the default, `{FULL}`, on {os.cpu_count()} cores. The knowledge holds neither the model nor its",
        "relatives. Seconds of wall and processor time from the ONNX file to the sequence, without Python's imports; load:",
        "of the machine before it began.",
        "",
        f"| model | family | states: {OURS} | {FULL} | wall | wall | ratio | processor | processor | ratio | load | ram | ram | ratio |",
        "| --- | --- |" + " ---: |" * 12,
    ]
    for name, found in done.items():
        ours, full = found[OURS], found[FULL]
        cells = [name, ours["family"], ours["states"], f"{full['states']}{'' if full['closed'] else ' (not closed)'}"]
        for key in ("wall", "processor"):
            cells += [ours[key], full[key], f"{ours[key] / full[key]:.2f}"]
        cells += [f"{ours['load']}, {full['load']}", format_bytes(ours["ram"]), format_bytes(full["ram"])]
        lines.append(f"| {' | '.join(map(str, cells))} | {ours['ram'] / full['ram']:.4f} |")
    if done:
        lines += [
            f"| geometric mean of {len(done)} | | | | | | {means['wall']:.3f} | | | {means['processor']:.3f} | | | | {means['ram']:.4f} |",
            "",
            f"Sums: {_sum(done, OURS, 'wall'):.0f} s of {_sum(done, FULL, 'wall'):.0f} s of wall time, "
            f"{_sum(done, OURS, 'processor'):.0f} s of {_sum(done, FULL, 'processor'):.0f} s of processor time. Most ram: "
            f"{worst}, {max(ratios['ram']):.4f}.",
        ]
    return "\n".join(lines) + "\n"


def _sum(done: dict[str, dict], strategy: str, key: str) -> float:
    return sum(found[strategy][key] for found in done.values())


def _read(file: Path) -> dict:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _commit() -> str:
    command = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    for entry, file in missing(__doc__.splitlines()[0], RESULTS):
        file.unlink(missing_ok=True)
        for strategy in (OURS, FULL):
            if wrong := alone(fill, entry, entry.fetched(), strategy, file):
                sys.stdout.write(f"{entry.name}, {strategy}: {wrong}\n")
        sys.stdout.write(f"{entry.name}: {json.dumps(_read(file))}\n")
        sys.stdout.flush()
    write_text(HERE / "results" / "by_architecture.md", table())


if __name__ == "__main__":
    main()
