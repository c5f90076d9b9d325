"""Keep why a stage failed under `out/failures`, so that the gate can say why a result is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

#: stages a result depends on, in the order they run, by the names of their functions
STAGES = {
    "toolchain": "toolchain", "fetch": "fetch", "import_model": "import", "optimize": "optimize", "tune": "tune",
    "quantize": "quantize", "compile_library": "compile", "footprint": "footprint",
}  # fmt: skip


#: the stage behind an accuracy, likewise
EVALUATION = {"evaluate": "evaluate"}


def record_failure(
    repo: Path, stage: str, message: str | None, model: str | None = None, target: str | None = None
) -> None:
    """Write the message of a failed stage; without one, delete an earlier message.

    A disk on which that fails is not a reason to fail: the message is on stderr anyway.
    """
    file = repo / _file(stage, model, target)
    with contextlib.suppress(OSError):
        if message is None:
            file.unlink(missing_ok=True)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(message + "\n", encoding="utf-8")


def why_failed(repo: Path, model: str, target: str, stages: Mapping[str, str] = STAGES) -> str | None:
    """Return the first failed stage a result depends on, and its message; None if none did."""
    for stage, name in stages.items():
        for place in ((None, None), (model, None), (model, target)):
            with contextlib.suppress(OSError, UnicodeDecodeError):
                message = (repo / _file(stage, *place)).read_text(encoding="utf-8").strip()
                return f"stage {name} failed: {message}"
    return None


def _file(stage: str, model: str | None, target: str | None) -> Path:
    return Path("out", "failures", stage, *filter(None, (model, target)), "why.txt")
