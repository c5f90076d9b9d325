"""Gather the facts of a result for card and BOM: its manifest, its footprint as it is judged, and its golden vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..codegen.source.files import SOURCES
from ..data.accuracy import AccuracyReport
from ..frontend.source.provenance import LICENCE_FILE
from ..memory.files.manifest_file import read_manifest
from ..memory.footprint import FootprintReport
from ..support.text_files import decode, read_text
from ..targets import Target
from ..verify.golden import GOLDEN, INPUTS, OUTPUTS

_REMAKE = "Make the result again."
UNKNOWN = "not known"


@dataclass(frozen=True)
class Facts:
    """Facts of a result; `golden` is the content of golden.json, empty without golden vectors; `evaluated` its accuracy on samples.

    Results of an older passfit record less: what is missing is an empty text.
    """

    report: FootprintReport
    target: Target
    manifest: Mapping[str, Any]
    golden: Mapping[str, Any] = field(default_factory=dict)
    evaluated: AccuracyReport | None = None

    @property
    def source(self) -> Mapping[str, Any]:
        """Return the provenance of the model: see `frontend/source/provenance.py`."""
        return self.manifest.get("source", {})

    @property
    def licence(self) -> Mapping[str, str]:
        """Return name, origin and file of the model's licence, as far as they are known."""
        return self.source.get("licence", {})

    @property
    def digests(self) -> dict[str, str]:
        """Return the sha256 of each delivered file: archive, shared library, header, sources, licence, golden vectors."""
        m = self.manifest.get("io", {}).get("name")
        wanted = (
            f"lib{m}.a", f"lib{m}.so", f"{m}.h", *(f"{m}_{name}" for name in SOURCES), LICENCE_FILE, INPUTS, OUTPUTS, GOLDEN,
        )  # fmt: skip
        return {name: digest for name, digest in self.manifest.get("files", {}).items() if name in wanted}

    def ports(self, kind: str) -> list[dict[str, Any]]:
        """Return name, shape, dtype, and any scale and zero point of all `inputs` or `outputs`."""
        return self.manifest.get("io", {}).get(kind, [])

    @property
    def accuracy(self) -> str:
        """Describe in a sentence how outputs were compared, and the largest error."""
        ran = self.report.measured
        if not ran.ran:
            return f"The library was not executed ({ran.how})."
        if ran.unverified:
            return f"The library ran ({ran.how}); its outputs were not compared: {ran.unverified}."
        by = {"onnx": "ONNX's own evaluator"}.get(ran.verified_by or "", "ONNX Runtime")
        if ran.max_rel_error is None:
            return f"The library ran ({ran.how}); no error was measured."
        return f"Largest error against {by}: {ran.error_summary} ({ran.how})."


def read_facts(folder: Path, report: FootprintReport, target: Target, evaluated: AccuracyReport | None = None) -> Facts:
    """Read the facts of the result in `folder`; `report` is its footprint as it is judged. Raises ConfigError."""
    manifest, golden = folder / "manifest.json", folder / GOLDEN
    kept = read_manifest(manifest, _REMAKE) if manifest.is_file() else {}
    vectors = decode(dict, read_text(golden, _REMAKE), str(golden), _REMAKE) if golden.is_file() else {}
    return Facts(report, target, kept, vectors, evaluated)
