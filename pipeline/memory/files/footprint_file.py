"""Write and read footprint.json."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from ...support.text_files import decode, read_text, write_text
from ..footprint import FootprintReport

_HINT = "Run the compilation that writes it again."


def write_report(report: FootprintReport, path: Path) -> None:
    """Writes footprint.json, the same bytes for the same report. Raises OutputError."""
    write_text(path, report_text(report))


def report_text(report: FootprintReport) -> str:
    """Return the content of footprint.json, the same text for the same report."""
    return json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"


def text_for_git(report: FootprintReport) -> str:
    """Return the content of the copy of footprint.json that git keeps: `FootprintReport.kept`, without empty values of a run."""
    data = report.kept.to_json()
    data["measured"] = {name: value for name, value in data["measured"].items() if value is not None}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def read_report(path: Path) -> FootprintReport:
    """Reads footprint.json back. Raises ConfigError that names the file and what is wrong with it."""
    return parse_report(read_text(path, _HINT), str(path))


def parse_report(text: str, where: str, hint: str = _HINT) -> FootprintReport:
    """Return the report in `text`; messages call the file `where` and give `hint` as the next step.

    Raises ConfigError for text that is not JSON, and for a field that is missing or of the wrong type.
    """
    report = decode(FootprintReport, text, where, hint)
    if report.baseline.code is None:  # before it was known, the flash was that of the weights alone
        return replace(report, baseline=replace(report.baseline, flash=None))
    return report
