"""footprint.json, written and read back."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import ConfigError
from ..graph.files import decode, read_text, write_text
from .footprint import FootprintReport

_HINT = "Run the compilation that writes it again."


def write_report(report: FootprintReport, path: Path) -> None:
    """Writes footprint.json, the same bytes for the same report. Raises OutputError."""
    write_text(path, json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")


def read_report(path: Path) -> FootprintReport:
    """Reads footprint.json back. Raises ConfigError that names the file and what is wrong with it.

    What the file does not say of the baseline is filled in: its code is flash − weights, its bound and floor are 0.
    """
    data = decode(dict, read_text(path, _HINT), str(path), _HINT)
    baseline = data.get("baseline")
    if not isinstance(baseline, dict):
        raise ConfigError(f"'{path}': baseline is missing.", _HINT)
    flash, weights = baseline.get("flash"), baseline.get("weights")
    code = flash - weights if isinstance(flash, int) and isinstance(weights, int) else 0
    data["baseline"] = baseline | {"code": code, "bound": 0, "floor": 0, "proved": False}
    return decode(FootprintReport, json.dumps(data), str(path), _HINT)
