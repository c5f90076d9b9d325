"""Tell from outputs and labels the form of a task, and read the decision of each sample.

class       scores of classes along an axis that labels lack: the largest; or a whole number for each label
ranks       whole numbers of the best classes, the best first: that one
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
#: kinds of tasks with a class for each label
DECIDING = ("class", "ranks", "threshold")


@dataclass(frozen=True)
class Task:
    """Form of a task: its `kind`, and the `output` that decides; `axis` is that of the classes, `threshold` that of a score.

    `one_hot` labels have a 1 at their class. Outputs are those of all samples, along a first axis of their own.
    """

    kind: str
    output: str
    axis: int = -1
    threshold: float = 0.0
    boxes: BoxOutputs | None = None
    one_hot: bool = False

    def truths(self, labels: Sequence[Any]) -> np.ndarray:
        """Return the labels of all samples in one row: numbers of classes, of tasks that decide."""
        if self.one_hot:
            return np.array([np.argmax(label) for label in labels])
        flat = np.concatenate([np.asarray(label).reshape(-1) for label in labels])
        return flat.astype(np.int64) if self.kind in DECIDING else flat

    def scores(self, outputs: Tensors) -> np.ndarray:
        """Return the scores of classes, [labels, classes], or numbers, [labels], of the deciding output."""
        value = outputs[self.output]
        if value.dtype.kind not in "iub":
            value = value.astype(np.float64)
        if self.kind == "ranks":
            return value.reshape(len(value), -1)
        if self.kind != "class" or not self.axis:
            return value.reshape(-1)
        return np.moveaxis(value, self.axis, -1).reshape(-1, value.shape[self.axis])

    def decisions(self, outputs: Tensors) -> np.ndarray:
        """Return a whole number for each label, −1 for scores of NaN; without classes, the numbers themselves."""
        scores = self.scores(outputs)
        if self.kind == "threshold":
            return np.where(np.isnan(scores), -1, scores > self.threshold).astype(np.int64)
        if self.kind == "ranks":
            return scores[:, 0]
        return np.where(np.isnan(scores).any(1), -1, scores.argmax(1)) if scores.ndim == 2 else scores

    def check_names(self, outputs: Tensors, names: Sequence[str]) -> None:
        """Check that labels which are names number the classes of the model. Raises ConfigError for fewer names than classes.

        Names are numbered in their order: one that is missing would shift the numbers of those behind it.
        """
        classes = outputs[self.output].shape[self.axis] if self.kind == "class" and self.axis else 0
        classes = 2 if self.kind == "threshold" else classes
        if names and len(names) < classes:
            raise ConfigError(
                f"The output '{self.output}' has {classes} classes, and the labels are {len(names)} names, from '{names[0]}' to "
                f"'{names[-1]}': which number each has is not known.",
                "Label by the numbers of the classes: folders called 0, 1 and so on, or whole numbers in the file of labels.",
            )


def find_task(outputs: Tensors, labels: Sequence[Any]) -> Task:
    """Return the form of the task of outputs, the reference's, with labels; without any, that of the outputs alone.

    Raises ConfigError if none fits.
    """
    known = [np.asarray(label) for label in labels if label is not None]
    boxes = find_boxes(outputs)
    detected = boxes is not None and (not known or (known[0].ndim == 2 and known[0].shape[1] == LABEL_COLUMNS))
    if not detected and len({label.shape for label in known}) > 1:
        one, other = sorted({str(list(label.shape)) for label in known})[:2]
        raise ConfigError(f"There are labels of different forms: {one} and {other}.", "Give all in one form.")
    if boxes is not None and detected:
        return Task("boxes", boxes.boxes, boxes=boxes)
    found = [task for name, value in outputs.items() if (task := _task_of(name, value, known))]
    if not found:
        shapes = ", ".join(f"'{name}' {list(value.shape[1:])}" for name, value in outputs.items())
        said = "there are no labels"
        if known:
            largest = max(label.max(initial=0) for label in known)
            least = min(label.min(initial=0) for label in known)
            said = f"labels are {known[0].dtype}{list(known[0].shape)} from {least:g} to {largest:g}"
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
        if len(_extents(shape)) == 1 and shape[-1] > 1:
            return Task("class", name, value.ndim - 1)
        return _single(name, value, not _extents(shape))
    wanted, whole = _extents(labels[0].shape), all(label.dtype.kind in "iub" for label in labels)
    highest = max(float(label.max(initial=0)) for label in labels)
    if _are_one_hot(labels) and _extents(shape) == wanted:
        axis = next(number for number, extent in enumerate(shape) if extent != 1)
        return Task("class", name, axis + 1, one_hot=True)
    if whole and not wanted and _are_ranks(value):
        return Task("ranks", name)
    # floats may number classes, too; no class is below 0
    if all(np.array_equal(label, np.rint(label)) and label.min(initial=0) >= 0 for label in labels):
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


def _are_ranks(value: np.ndarray) -> bool:
    """Return whether an output holds numbers of classes, several and distinct for each sample, as TopK gives them."""
    rows = value.reshape(len(value), -1)
    if value.dtype.kind not in "iu" or value.dtype.itemsize < 4 or rows.shape[1] < 2:
        return False
    ordered = np.sort(rows, axis=1)
    return bool((ordered[:, 0] >= 0).all() and (np.diff(ordered, axis=1) > 0).all())


def _are_one_hot(labels: Sequence[np.ndarray]) -> bool:
    """Return whether each label is a row of zeros with a single 1."""
    return all(_extents(label.shape) == (label.size,) and label.sum() == 1 == (label != 0).sum() for label in labels)


def _extents(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent != 1)
