"""How long `passfit compile` takes, from the ONNX file to the measured library, with all its defaults.

    .venv/bin/python benchmarks/compile_time.py                       results in benchmarks/results/compile_time.md
    .venv/bin/python benchmarks/compile_time.py --model mobilenet_v2 --again

Each in a process of its own, as on the command line, for x86-64, which this machine is to run natively. Processor time
is that of all its processes: where it is far from wall time × cores, the machine was busy with something else.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from entries import HERE, Entry, alone, entries, missing

from passfit import api
from passfit.support.sizes import format_bytes
from passfit.support.text_files import write_text
from passfit.targets import get_target

RESULTS = HERE / "results" / "compile_time"
#: what the issue asks for, in seconds of wall time on two cores
LIMIT = 60


def fill(entry: Entry, source: str, file: Path) -> None:
    """Compile one model, and write what that took."""
    started, busy = time.monotonic(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        report = api.compile_model(source, get_target("x86-64"), out=out, name=entry.name, shapes=entry.shapes, fix=entry.fix)
        found = json.loads((out / "search.json").read_text(encoding="utf-8"))
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    result = {
        "wall": round(time.monotonic() - started, 1),
        "processor": round(sum(each.ru_utime + each.ru_stime for each in spent), 1),
        "load": round(busy, 1),
        "evaluations": found["evaluations"],
        "closed": found["closed"],
        "kernels": report.best.kernels,
        "ram": report.best.ram,
    }
    write_text(file, json.dumps(result, indent=1) + "\n")


def table() -> str:
    known = {
        entry.name: json.loads(file.read_text(encoding="utf-8"))
        for entry in entries()
        if (file := RESULTS / f"{entry.name}.json").exists()
    }
    done = {name: found for name, found in known.items() if "failed" not in found}
    within = sum(found["wall"] <= LIMIT for found in done.values())
    lines = [
        "# Seconds to compile a model",
        "",
        f"`.venv/bin/python benchmarks/compile_time.py`: `passfit compile`, all defaults, on {os.cpu_count()} cores. Load: of the",
        f"machine before it began. {within} of {len(done)} within {LIMIT} s of wall time. States: those the search evaluated;",
        "closed: all there are.",
        "",
        "| model | wall | processor | load | states | closed | kernels | ram |",
        "| --- |" + " ---: |" * 7,
    ]
    for name, found in known.items():
        if name not in done:
            lines.append(f"| {name} | {found['failed']} | | | | | | |")
            continue
        closed = "yes" if found["closed"] else "no"
        cells = (*(found[key] for key in ("wall", "processor", "load", "evaluations")), closed, found["kernels"])
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + f" | {format_bytes(found['ram'])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    for entry, file in missing(__doc__.splitlines()[0], RESULTS):
        if wrong := alone(fill, entry, entry.fetched(), file):
            write_text(file, json.dumps({"failed": wrong}) + "\n")
        sys.stdout.write(f"{entry.name}: {file.read_text(encoding='utf-8')}")
        sys.stdout.flush()
        write_text(HERE / "results" / "compile_time.md", table())


if __name__ == "__main__":
    main()
