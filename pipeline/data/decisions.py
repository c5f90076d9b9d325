"""Tell from outputs and labels the form of a task, and read the decision of each sample.

class       scores of classes along an axis that labels lack: the largest; or a whole number for each label
threshold   a score for each label, which is 0 or 1: above 0.5 where all are in [0, 1], else above 0
boxes       detections, see `boxes`: the class of the surest, and its place
value       numbers for each label: no decision
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ConfigError
from .boxes import LABEL_COLUMNS, BoxOutputs, find_boxes

Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Task:
    """Form of a task: its `kind`, and the `output` that decides; `axis` is that of the classes, `threshold` that of a score.

    Outputs are those of all samples, along a first axis of their own.
    """

    kind: str
    output: str
    axis: int = -1
    threshold: float = 0.0
    boxes: BoxOutputs | None = None

    def scores(self, outputs: Tensors) -> np.ndarray:
        """Return the scores of classes, [labels, classes], or numbers, [labels], of the deciding output."""
        value = outputs[self.output]
        if value.dtype.kind not in "iub":
            value = value.astype(np.float64)
        if self.kind != "class" or not self.axis:
            return value.reshape(-1)
        return np.moveaxis(value, self.axis, -1).reshape(-1, value.shape[self.axis])

    def decisions(self, outputs: Tensors) -> np.ndarray:
        """Return the decision on each label as a whole number; of tasks without any, the numbers themselves."""
        scores = self.scores(outputs)
        if self.kind == "threshold":
            return (scores > self.threshold).astype(np.int64)
        return scores.argmax(1) if scores.ndim == 2 else scores


def find_task(outputs: Tensors, labels: Sequence[Any], chosen: str | None = None) -> Task:
    """Return the form of the task of outputs, the reference's, with labels; without any, that of the outputs alone.

    `chosen` names the output that decides, where there are several. Raises ConfigError if none fits.
    """
    known = [np.asarray(label) for label in labels if label is not None]
    boxes = find_boxes(outputs)
    if boxes is not None and (not known or (known[0].ndim == 2 and known[0].shape[1] == LABEL_COLUMNS)):
        return Task("boxes", boxes.boxes, boxes=boxes)
    names = [name for name in outputs if chosen in (None, name)]
    found = [task for name in names if (task := _task_of(name, outputs[name], known))]
    if not found:
        shapes = ", ".join(f"'{name}' {list(value.shape[1:])}" for name, value in outputs.items())
        said = f"labels are {known[0].dtype}{list(known[0].shape)}" if known else "there are no labels"
        raise ConfigError(
            f"No output fits the labels: {said}, outputs are {shapes}.",
            "Give labels of the form of an output, or --metric FILE.py:function.",
        )
    # a classifier has its scores next to its decision
    return next((task for task in found if task.axis and task.kind == "class"), found[0])


def _task_of(name: str, value: np.ndarray, labels: Sequence[np.ndarray]) -> Task | None:
    """Return the task of one output; None where the labels do not fit it."""
    integer = value.dtype.kind in "iub"
    shape = value.shape[1:]
    if not labels:
        wide = bool(shape) and shape[-1] > 1
        return Task("class", name, value.ndim - 1) if wide else _single(name, value, True)
    wanted, whole = _extents(labels[0].shape), all(label.dtype.kind in "iub" for label in labels)
    highest = max((int(label.max(initial=0)) for label in labels), default=0) if whole else 0
    if whole:
        for axis in (len(shape) - 1, *range(len(shape) - 1)):
            left = (*shape[:axis], *shape[axis + 1 :]) if shape else ()
            if shape and shape[axis] > max(highest, 1) and _extents(left) == wanted:
                return Task("class", name, axis + 1)
    if _extents(shape) != wanted:
        return None
    if integer and whole:
        return Task("class", name, 0)
    return _single(name, value, whole and highest <= 1)


def _single(name: str, value: np.ndarray, binary: bool) -> Task:
    """Return the task of an output of one number for each label."""
    if value.dtype.kind in "iub" and binary:
        return Task("class", name, 0)
    if not binary:
        return Task("value", name)
    within = value.size and float(value.min()) >= 0 and float(value.max()) <= 1
    return Task("threshold", name, threshold=0.5 if within else 0.0)


def _extents(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent != 1)
