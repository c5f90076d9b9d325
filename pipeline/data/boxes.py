"""Read detections and their labels, and score them by the overlap of boxes.

    outputs     boxes [N, 4]; scores [N] with classes [N], or [N, classes]; one number that counts the rows used, if there is one
                or a single one [N, 6] of rows (box, score, class)
    labels      rows (class, box) of each sample; a class below 0 is padding

A box is two corners in the units and the order of the labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

#: columns of a label: class and box; and of an output that holds all
LABEL_COLUMNS, _JOINED = 5, 6
#: least overlap of boxes of one object
IOU = 0.5


@dataclass(frozen=True)
class BoxOutputs:
    """Names of a detector's outputs; `scores` are empty for one that holds all."""

    boxes: str
    scores: str = ""
    classes: str = ""
    count: str = ""


@dataclass(frozen=True)
class Detections:
    """Detections of one sample, the surest first."""

    boxes: np.ndarray
    scores: np.ndarray
    classes: np.ndarray


def find_boxes(outputs: Mapping[str, np.ndarray]) -> BoxOutputs | None:
    """Return the parts that outputs of a detector play; None for other outputs."""
    shapes = {name: value.shape[1:] for name, value in outputs.items()}
    if len(outputs) == 1:
        (name,) = outputs
        return BoxOutputs(name) if _is_table(shapes[name], _JOINED) else None
    for boxes in (name for name, shape in shapes.items() if _is_table(shape, 4)):
        rows = math.prod(shapes[boxes]) // 4
        others = [name for name in shapes if name != boxes]
        counts = [name for name in others if math.prod(shapes[name]) == 1 and (rows > 1 or _has(name, "num", "count"))]
        lines = [name for name in others if name not in counts and math.prod(shapes[name]) == rows]
        wide = [name for name in others if name not in (*counts, *lines) and shapes[name][-2:-1] == (rows,)]
        classes = [name for name in lines if outputs[name].dtype.kind in "iu" or _has(name, "class", "label")]
        scores = [name for name in lines if name not in classes]
        count = counts[0] if counts else ""
        if len(scores) == len(classes) == 1:
            return BoxOutputs(boxes, scores[0], classes[0], count)
        if len(wide) == 1 and not lines:
            return BoxOutputs(boxes, wide[0], "", count)
    return None


def _is_table(shape: tuple[int, ...], columns: int) -> bool:
    """Return whether an output has rows of so many columns; a single row is one behind an axis of the batch."""
    return shape[-1:] == (columns,) and math.prod(shape[:-2]) == 1 and (len(shape) > 2 or math.prod(shape[:-1]) > 1)


def _has(name: str, *words: str) -> bool:
    return any(word in name.lower() for word in words)


def read_detections(outputs: Mapping[str, np.ndarray], parts: BoxOutputs) -> list[Detections]:
    """Return the detections of each sample."""
    found = []
    for number in range(len(outputs[parts.boxes])):
        if not parts.scores:
            rows = outputs[parts.boxes][number].reshape(-1, _JOINED).astype(np.float64)
            boxes, scores, classes = rows[:, :4], rows[:, 4], rows[:, 5]
        else:
            boxes = outputs[parts.boxes][number].reshape(-1, 4).astype(np.float64)
            scores = outputs[parts.scores][number].reshape(len(boxes), -1).astype(np.float64)
            classes = scores.argmax(1)
            if parts.classes:
                classes = outputs[parts.classes][number].reshape(-1)
            scores = scores.max(1)
        used = int(outputs[parts.count][number].reshape(-1)[0]) if parts.count else len(boxes)
        order = np.argsort(-scores[:used], kind="stable")
        found.append(Detections(boxes[order], scores[order], classes[order].astype(np.int64)))
    return found


def overlaps(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return intersection over union of a box with others."""
    low, high = np.maximum(one[:2], others[:, :2]), np.minimum(one[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1)
    areas = np.prod(np.maximum(others[:, 2:] - others[:, :2], 0), axis=1)
    union = np.prod(np.maximum(one[2:] - one[:2], 0)) + areas - common
    return np.divide(common, union, out=np.zeros(len(others)), where=union > 0)


def same_top_box(one: Detections, other: Detections) -> bool:
    """Return whether the surest detections are of one class and overlap; or there are none in both."""
    if not len(one.boxes) or not len(other.boxes):
        return len(one.boxes) == len(other.boxes)
    box, near = one.boxes[0], other.boxes[:1]
    return bool(one.classes[0] == other.classes[0]) and bool(
        np.array_equal(box, near[0]) or overlaps(box, near)[0] >= IOU
    )


def mean_average_precision(found: Sequence[Detections], labels: Sequence[np.ndarray]) -> float:
    """Return the mean over classes of the area under precision by recall, for boxes that overlap by a half."""
    wanted = [np.asarray(label, np.float64).reshape(-1, LABEL_COLUMNS) for label in labels]
    wanted = [rows[rows[:, 0] >= 0] for rows in wanted]
    classes = sorted({int(kind) for rows in wanted for kind in rows[:, 0]})
    precisions = [_average_precision(found, wanted, kind) for kind in classes]
    return float(np.mean(precisions)) if precisions else 0.0


def _average_precision(found: Sequence[Detections], wanted: Sequence[np.ndarray], kind: int) -> float:
    """Return the area under the falling envelope of precision by recall of one class."""
    scored: list[tuple[float, bool]] = []
    total = 0
    for each, rows in zip(found, wanted):
        truths = rows[rows[:, 0] == kind, 1:]
        total += len(truths)
        free = np.ones(len(truths), bool)
        for box, score in zip(each.boxes[each.classes == kind], each.scores[each.classes == kind]):
            near = overlaps(box, truths) * free if len(truths) else np.zeros(1)
            best = int(near.argmax())
            right = bool(near[best] >= IOU)
            if right:
                free[best] = False
            scored.append((float(score), right))
    order = sorted(scored, key=lambda each: -each[0])
    rights = np.cumsum([right for _, right in order]) if order else np.zeros(0)
    precision = np.maximum.accumulate((rights / np.arange(1, len(rights) + 1))[::-1])[::-1]
    recall = np.concatenate([[0.0], rights / total])
    return float(np.sum(np.diff(recall) * precision))
