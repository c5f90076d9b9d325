"""Compare all search strategies on the graphs of ReBench: `passfit bench rebench`; writes results/rebench.md.

.venv/bin/python benchmarks/rebench.py [DIR]      default: ../shared/rebench; without it, nothing is done
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from head import HERE, Head, head

GRAPHS = HERE.parents[1] / "shared" / "rebench"


def with_head(report: str, origin: Head) -> str:
    """Put the head in place of the command, which follows the title of a report."""
    title, command, tables = report.split("\n\n", 2)
    return "\n".join([title, "", *origin.lines(command.strip("`")), "", tables])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graphs", nargs="?", type=Path, default=GRAPHS, metavar="DIR", help="folder of ONNX graphs")
    graphs = parser.parse_args().graphs
    if not any(graphs.glob("*.onnx")):
        print(f"There are no graphs in {graphs}: results/rebench.md is left as it is.")
        return
    origin = head()
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as out:
        subprocess.run([sys.executable, "-m", "passfit.cli", "bench", "rebench", str(graphs), "--out", out], check=True)
        report = (Path(out) / "rebench.md").read_text(encoding="utf-8")
    (HERE / "results" / "rebench.md").write_text(with_head(report, origin), encoding="utf-8")


if __name__ == "__main__":
    main()
