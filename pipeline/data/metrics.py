"""Score outputs against labels by the name of a metric, or by a function of the user's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ConfigError, did_you_mean
from .boxes import mean_average_precision, read_detections
from .decisions import Task, Tensors
from .user_function import is_function, load_function, split_function, users_errors

#: metrics of scikit-learn by name: its function, the kinds of tasks, whether higher is better, its options
_BY_DECISION: dict[str, tuple[str, dict[str, Any]]] = {
    "accuracy": ("accuracy_score", {}),
    "balanced-accuracy": ("balanced_accuracy_score", {}),
    "f1": ("f1_score", {"average": "macro", "zero_division": 0.0}),
    "precision": ("precision_score", {"average": "macro", "zero_division": 0.0}),
    "recall": ("recall_score", {"average": "macro", "zero_division": 0.0}),
    "mean-iou": ("jaccard_score", {"average": "macro", "zero_division": 0.0}),
}
_BY_VALUE: dict[str, str] = {
    "mean-absolute-error": "mean_absolute_error",
    "mean-squared-error": "mean_squared_error",
    "r2": "r2_score",
}
_AUC, _DETECTION = "auc", "map@0.5"
_TOP = re.compile(r"top-([1-9][0-9]*)")
#: all names; N of `top-N` is a number
METRICS = (*_BY_DECISION, "top-N", _AUC, *_BY_VALUE, _DETECTION)


@dataclass(frozen=True)
class Metric:
    """Metric by name; `compute` takes outputs by name, samples along a first axis, and their labels."""

    name: str
    higher_is_better: bool
    compute: Callable[[Tensors, Sequence[Any]], float]


def check_metric(name: str | None) -> None:
    """Check that there is such a metric. Raises ConfigError."""
    if name is not None and name not in METRICS[:-1] and not _known(name):
        raise ConfigError(
            f"There is no metric '{name}'.",
            f"{did_you_mean(name, METRICS)} Or give a FILE.py:function(outputs, labels).",
        )


def _known(name: str) -> bool:
    return bool(_TOP.fullmatch(name)) or name == _DETECTION or is_function(name)


def find_metric(name: str | None, task: Task) -> Metric:
    """Find a metric, by default the usual one of the task: accuracy, overlap of boxes, or mean absolute error.

    A function of the user's is better where it is higher, unless its name ends with `error` or `loss`. Raises ConfigError for
    one that does not exist, or does not fit the task.
    """
    check_metric(name)
    if name is None:
        name = {"boxes": _DETECTION, "value": "mean-absolute-error"}.get(task.kind, "accuracy")
    if is_function(name):
        return _users_metric(name)
    if (name == _DETECTION) != (task.kind == "boxes") or (name not in _BY_VALUE and task.kind == "value"):
        fitting = {"boxes": [_DETECTION], "value": list(_BY_VALUE)}.get(task.kind, [*_BY_DECISION, "top-N", _AUC])
        raise ConfigError(
            f"The metric '{name}' does not fit outputs and labels of this form.",
            f"Those that do: {', '.join(fitting)}.",
        )
    return Metric(name, not name.endswith("error"), lambda outputs, labels: _compute(name, task, outputs, labels))


def _compute(name: str, task: Task, outputs: Tensors, labels: Sequence[Any]) -> float:
    from sklearn import metrics

    if name == _DETECTION:
        assert task.boxes is not None
        return mean_average_precision(read_detections(outputs, task.boxes), labels)
    truths = task.truths(labels)
    if name in _BY_DECISION:
        function, options = _BY_DECISION[name]
        return float(getattr(metrics, function)(truths, task.decisions(outputs), **options))
    scores = task.scores(outputs)
    if name in _BY_VALUE:
        return float(getattr(metrics, _BY_VALUE[name])(truths, scores if scores.ndim == 1 else task.decisions(outputs)))
    if name == _AUC and task.kind != "ranks":
        return _area(truths, scores)
    found = _TOP.fullmatch(name)
    count = int(found[1]) if found else 0
    if not count or scores.ndim != 2 or (task.kind == "ranks" and count > scores.shape[1]):
        raise ConfigError(f"The metric '{name}' needs scores of classes.", "Give --metric accuracy.")
    if task.kind == "ranks":
        return float(np.mean((scores[:, :count] == truths[:, None]).any(1)))
    if scores.shape[1] == 2:  # scikit-learn wants a single score then
        return float(np.mean((scores.argmax(1) == truths) | (count > 1)))
    return float(metrics.top_k_accuracy_score(truths, scores, k=count, labels=np.arange(scores.shape[1])))


def _area(truths: np.ndarray, scores: np.ndarray) -> float:
    """Return the area under the curve: of a score, or of each class against the rest in the mean, of probabilities."""
    from sklearn.metrics import roc_auc_score

    if len(np.unique(truths)) < 2:
        raise ConfigError("The metric 'auc' needs labels of two classes at least.", "Give more samples.")
    if scores.ndim == 1 or scores.shape[1] == 2:
        return float(roc_auc_score(truths, scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0]))
    spread = np.exp(scores - scores.max(1, keepdims=True))
    sums = scores.sum(1, keepdims=True)
    likely = (scores >= 0).all() and np.allclose(sums, 1, atol=0.02)
    probabilities = scores / sums if likely else spread / spread.sum(1, keepdims=True)
    return float(np.mean([roc_auc_score(truths == kind, probabilities[:, kind]) for kind in np.unique(truths)]))


def _users_metric(source: str) -> Metric:
    function = load_function(source)
    file, word = split_function(source)

    def compute(outputs: Tensors, labels: Sequence[Any]) -> float:
        with users_errors(Path(file)):
            # copies: it may write into them
            given = {name: _without_batch(value).copy() for name, value in outputs.items()}
            found = float(function(given, list(labels)))
        if not np.isfinite(found):
            raise ConfigError(f"'{source}' returned {found}.", "Return a finite number.")
        return found

    return Metric(source, not word.endswith(("error", "loss")), compute)


def _without_batch(value: np.ndarray) -> np.ndarray:
    """Return outputs stacked by sample without their own batch axis of 1, which would broadcast against labels."""
    return value[:, 0] if value.ndim > 2 and value.shape[1] == 1 else value


def pick(outputs: Mapping[str, np.ndarray], numbers: Sequence[int] | np.ndarray) -> dict[str, np.ndarray]:
    """Return the outputs of some samples."""
    return {name: value[numbers] for name, value in outputs.items()}
