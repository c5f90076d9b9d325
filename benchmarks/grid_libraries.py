"""Build the libraries of the grid of kernels; run by the Python of this checkout, or of an earlier one.

    PYTHON benchmarks/grid_libraries.py FOLDER TARGET PATTERN       cases whose title holds the pattern, each in its folder

Its imports are those that both checkouts have: see kernel_grid.py --before.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path

from grid_cases import Case, cases

from passfit.codegen.build_library import build_library
from passfit.errors import PassfitError
from passfit.frontend.imported_model import load
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import Sequence
from passfit.targets import Target, get_target

#: the passes of every case; none of them overwrites an input, which is therefore written once
PASSES = ("simplify", "legalize", "fold-constant", "fuse-operators", "order")


def slug(case: Case) -> str:
    return re.sub("[^a-zA-Z0-9]+", "-", case.title)


def build(case: Case, target: Target, folder: Path) -> tuple[int, int]:
    """Build the library of a case in `folder`; return the bytes of its code and of its workspace."""
    file = folder / "grid.onnx"
    file.write_bytes(case.model().SerializeToString())
    imported = load(file, "grid")
    sequence = Sequence(tuple(map(parse_spec, PASSES)))
    lowered, workspace = replay(sequence, imported.graph, imported.onnx, "grid", target.machine)
    library = build_library("grid", lowered, checked_plan(lowered.program, target), workspace, target, folder)
    return library.code_bytes, workspace


def main() -> None:
    results, target, pattern = Path(sys.argv[1]), get_target(sys.argv[2]), sys.argv[3]
    for case in cases():
        folder = results / slug(case)
        if re.search(pattern, case.title) and not folder.exists():
            folder.mkdir()
            with suppress(PassfitError, RuntimeError):  # the grid tells of it, if this checkout fails too
                build(case, target, folder)


if __name__ == "__main__":
    main()
