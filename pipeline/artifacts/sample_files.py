"""Name the stages of a model's samples, `evaluate-MODEL` and `quantize-MODEL`, and the files that they read."""

from __future__ import annotations

from pathlib import Path

from ..data.user_function import split_function
from ..params.params import DataParams, ModelParams

#: what tracks and reports read of evaluations
EVALUATED = "out/evaluate"


def evaluate_stage_name(model: str) -> str:
    """Name the stage that evaluates a model; DVC adds `@TARGET`."""
    return f"evaluate-{model}"


def quantize_stage_name(model: str) -> str:
    """Name the stage that quantises a model."""
    return f"quantize-{model}"


def settings_file(model: str, stage: str, target: str = "") -> str:
    """Return the file of a stage's settings, which the stage `toolchain` writes."""
    return Path("out", "settings", model, target, f"{stage}.json").as_posix()


def watched_by_evaluation(repo: Path, data: DataParams) -> list[str]:
    """List the files and folders that an evaluation reads of the user's: samples, their labels, and a metric of their own."""
    metric, function = split_function(data.metric or "")
    return list(dict.fromkeys([*_sample_files(repo, data.source), *([metric] if function else [])]))


def watched_by_quantization(repo: Path, model: ModelParams) -> list[str]:
    """List the files and folders that a quantisation reads besides the model: samples to calibrate by and to be judged on."""
    if model.data is None:
        return []
    extra = () if model.data.calibration is None else _sample_files(repo, model.data.calibration)
    return list(dict.fromkeys([*watched_by_evaluation(repo, model.data), *extra]))


def _sample_files(repo: Path, source: str) -> list[str]:
    """List the files of a source: samples, and labels of an array if there are any."""
    file, _ = split_function(source)
    labels = file.removesuffix(".npy") + ".labels.npy"
    return [file, labels] if file.endswith(".npy") and (repo / labels).is_file() else [file]
