"""Report what `make coverage` measured: the lines run, and the modules that tests leave out.

`out/coverage/modules.tsv` has all modules, the least covered ones first: lines run, lines, share, whether there is a test
file of the module's name.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from coverage import Coverage
from coverage.exceptions import CoverageWarning

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "coverage"
#: a module with a smaller share is on the list that is printed
FEW = 0.6


@dataclass(frozen=True)
class Module:
    """Hold the lines of a module and how many of them ran."""

    path: str
    ran: int
    lines: int
    has_test_file: bool

    @property
    def share(self) -> float:
        return self.ran / self.lines if self.lines else 1.0


def tested_names() -> set[str]:
    """Return the names that test files are named after."""
    return {each.stem.removeprefix("test_") for each in (ROOT / "tests").rglob("test_*.py")}


def read_modules(coverage: Coverage) -> list[Module]:
    """Return every module of the product by share of lines that ran, the smallest first."""
    names, found = tested_names(), []
    for path in sorted(each for folder in ("pipeline", "stages") for each in (ROOT / folder).rglob("*.py")):
        _, lines, _, missed, _ = coverage.analysis2(str(path))
        name = path.parent.name if path.stem == "__init__" else path.stem
        found.append(Module(path.relative_to(ROOT).as_posix(), len(lines) - len(missed), len(lines), name in names))
    return sorted(found, key=lambda module: (module.share, module.path))


def main() -> int:
    """Combine the data of all processes and report it; 0 if the share reaches `fail_under`, 1 if not or without data."""
    coverage = Coverage()
    if any(OUT.glob("data.*")):
        with warnings.catch_warnings():  # of files whose process was killed before it had written all
            warnings.simplefilter("ignore", CoverageWarning)
            coverage.combine()
    coverage.load()
    if not coverage.get_data().measured_files():
        print("coverage: nothing was measured; run make coverage", file=sys.stderr)
        return 1
    modules = read_modules(coverage)
    rows = (f"{each.ran}\t{each.lines}\t{each.share:.3f}\t{each.has_test_file}\t{each.path}\n" for each in modules)
    (OUT / "modules.tsv").write_text("ran\tlines\tshare\thas a test file\tmodule\n" + "".join(rows), encoding="utf-8")
    for each in modules:
        if each.share < FEW:
            print(f"  {each.share:5.0%} of {each.lines:4} lines  {each.path}")
    ran, lines = sum(each.ran for each in modules), sum(each.lines for each in modules)
    needed = float(coverage.get_option("report:fail_under") or 0)
    print(
        f"coverage: {ran:,} of {lines:,} lines ran, {ran / max(lines, 1):.1%} (asked: {needed:g} %); above, the modules "
        f"below {FEW:.0%}; {sum(not each.has_test_file for each in modules if each.lines)} of {len(modules)} have no test "
        "file of their name: out/coverage/modules.tsv"
    )
    return int(100 * ran < needed * lines)


if __name__ == "__main__":
    sys.exit(main())
