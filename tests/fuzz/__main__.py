"""Run the fuzzer, and print counts by operator and verdict.

    .venv/bin/python -m tests.fuzz operators --count 2000 --seed 0
    .venv/bin/python -m tests.fuzz networks --count 200 --seed 0 --keep /tmp/found

A case is its seed. `--keep` reduces a fault of each class, and writes them as onnx test folders.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from .campaign import campaign, print_table
from .judge import FAULTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("operators", "networks"))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="", help="operators, or kinds of networks, with commas between")
    parser.add_argument("--batch", type=int, default=0, help="cases of one library (default: 64 operators, 1 network)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="folder for reduced faults")
    arguments = parser.parse_args()
    started = time.perf_counter()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    results = campaign(arguments.kind, seeds, arguments.only, arguments.batch, arguments.processes, arguments.keep)
    print_table(results)
    seconds = time.perf_counter() - started
    print(f"{len(results)} cases in {seconds:.0f} s: {len(results) / seconds:.1f} a second")
    return int(any(each.verdict in FAULTS for each in results))


if __name__ == "__main__":
    sys.exit(main())
