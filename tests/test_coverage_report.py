"""What coverage is reported as: the least covered first, and red below what is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from coverage import CoverageData

from . import coverage_report


def test_what_no_test_runs_is_listed_and_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for path in ("pipeline/a/run.py", "pipeline/a/left.py", "pipeline/empty.py", "stages/half.py", "tests/test_run.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("" if path.endswith("empty.py") else "a = 1\n\nb = 2\n")
    monkeypatch.setenv("COVERAGE_FILE", str(tmp_path / "data"))
    monkeypatch.setattr(coverage_report, "ROOT", tmp_path)
    monkeypatch.setattr(coverage_report, "OUT", tmp_path)
    assert coverage_report.main() == 1
    assert "nothing was measured" in capsys.readouterr().err

    def measure(**lines: list[int]) -> int:
        data = CoverageData(basename=str(tmp_path / "data.1"))
        data.add_lines({str(tmp_path / path): found for path, found in lines.items()})
        data.write()
        (tmp_path / "data.2").write_text("")  # its process was killed
        return coverage_report.main()

    assert measure(**{"pipeline/a/run.py": [1, 3], "stages/half.py": [1]}) == 1
    assert (tmp_path / "modules.tsv").read_text().splitlines()[1:] == [
        "0\t2\t0.000\tFalse\tpipeline/a/left.py",
        "1\t2\t0.500\tFalse\tstages/half.py",
        "2\t2\t1.000\tTrue\tpipeline/a/run.py",
        "0\t0\t1.000\tFalse\tpipeline/empty.py",
    ]
    printed = capsys.readouterr().out
    assert "0% of    2 lines  pipeline/a/left.py" in printed and "run.py" not in printed
    assert "3 of 6 lines ran, 50.0% (asked: 90 %)" in printed and "2 of 4 have no test file" in printed
    assert measure(**{"pipeline/a/left.py": [1, 3], "pipeline/a/run.py": [1, 3], "stages/half.py": [1, 3]}) == 0
