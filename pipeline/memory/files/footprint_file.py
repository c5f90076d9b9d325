"""Write and read footprint.json."""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import ConfigError
from ...support.text_files import decode, read_text, write_text
from ..footprint import FootprintReport

_HINT = "Run the compilation that writes it again."


def write_report(report: FootprintReport, path: Path) -> None:
    """Write footprint.json, the same bytes for the same report. Raises OutputError."""
    write_text(path, json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")


def read_report(path: Path) -> FootprintReport:
    """Read footprint.json. Raises ConfigError naming the file and its problem.

    The file leaves out the baseline's bound and floor: they are 0 here, and its flash is that of its weights.
    """
    data = decode(dict, read_text(path, _HINT), str(path), _HINT)
    baseline = data.get("baseline")
    if not isinstance(baseline, dict):
        raise ConfigError(f"'{path}': baseline is missing.", _HINT)
    data["baseline_code"] = baseline.get("code")
    known = {"code": 0, "flash": baseline.get("weights"), "bound": 0, "floor": 0, "proved": False}
    data["baseline"] = baseline | known
    return decode(FootprintReport, json.dumps(data), str(path), _HINT)
