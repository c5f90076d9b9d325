"""Write models of the zoo: `.venv/bin/python -m benchmarks.zoo FOLDER [NAME …]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import BUILDERS, MICRO, TRANSFORMERS, build

ALL = BUILDERS | TRANSFORMERS | MICRO

parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description="Write models of the zoo.")
parser.add_argument("folder", type=Path)
parser.add_argument("names", nargs="*", metavar="NAME", help=f"all if none; of {', '.join(ALL)}")
arguments = parser.parse_args()
for name in arguments.names or ALL:
    if name not in ALL:
        parser.error(f"There is no model '{name}': choose from {', '.join(ALL)}.")
    print(build(name, arguments.folder))
