"""Find the samples on which library and label, or library and reference, differ most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.accuracy import WorstSample
from ..data.decisions import DECIDING, Task
from ..data.samples import Samples
from ..verify.error_bounds import distances, output_range
from .run_samples import Tensors

#: samples that a report names
_MOST = 8


def worst_samples(
    task: Task, samples: Samples, numbers: Sequence[int], labels: Sequence[Any], expected: Tensors, outputs: Tensors
) -> tuple[WorstSample, ...]:
    """Return the worst samples: other decisions than the reference's first, then the farthest from their labels.

    The error is how far the score of the label's class is below the largest, or a number is from its label, relative to the
    range of the output; without a single decision a sample it is the distance from the reference. It is None where a number is
    not finite.
    """
    scale = output_range([expected[task.output]])
    single = task.kind in DECIDING and len(task.decisions(outputs)) == len(numbers)
    found: list[tuple[bool, float, int, WorstSample]] = []
    for row, (number, label) in enumerate(zip(numbers, labels, strict=True)):
        ours, theirs = ({task.output: each[task.output][row : row + 1]} for each in (outputs, expected))
        own, other = task.scores(ours), task.scores(theirs)
        error, differs, said = distances(ours[task.output], theirs[task.output]).max(initial=0.0), False, ("", "")
        if single:
            decided, wanted = (int(task.decisions(each)[0]) for each in (ours, theirs))
            differs, said = decided != wanted, (_name(wanted, samples), _name(decided, samples))
            if label is not None:
                error = _short_of(task, own, int(task.truths([label])[0]), decided)
        elif task.kind == "value" and own.size == 1:
            said = (f"{float(other[0]):.6g}", f"{float(own[0]):.6g}")
            if label is not None and np.size(label) == 1:
                error = distances(own, np.asarray(label).reshape(-1)).max()
        error = np.inf if np.isnan(error) else error / scale
        if error > 0 or differs:
            told = float(f"{error:.6g}") if np.isfinite(error) else None
            sample = WorstSample(samples.name(number), _label(label, samples, task if single else None), *said, told)
            found.append((not differs, -error, row, sample))
    return tuple(sample for *_, sample in sorted(found, key=lambda each: each[:3])[:_MOST])


def _short_of(task: Task, scores: np.ndarray, label: int, decided: int) -> float:
    """Return by how much a decision is wrong, in the unit of its scores; 0 for a right one."""
    if decided == label:
        return 0.0
    if task.kind == "threshold":
        return abs(float(scores[0]) - task.threshold)
    return float(scores[0].max() - scores[0][label]) if scores.ndim == 2 and task.kind == "class" else 1.0


def _name(number: int, samples: Samples) -> str:
    return samples.classes[number] if 0 <= number < len(samples.classes) else str(number)


def _label(label: Any, samples: Samples, task: Task | None) -> str:
    if label is None:
        return ""
    if task is not None:
        return _name(int(task.truths([label])[0]), samples)
    value = np.asarray(label)
    return f"{float(value.reshape(-1)[0]):.6g}" if value.size == 1 else f"{len(value)} labels"
