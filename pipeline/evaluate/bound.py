"""Hold a library on the user's samples to the bound of verification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..data.samples import Samples
from ..errors import NumericError
from ..verify.cases import add_plain_sums, choose_cases
from ..verify.compare import Case, compare
from ..verify.error_bounds import distances, largest_magnitude
from .run_samples import Tensors

if TYPE_CHECKING:
    import onnx

#: samples that get a second look, the farthest first: each is evaluated in double precision
_LOOKED_AT = 8


def outside_bound(
    model: onnx.ModelProto,
    given: onnx.ModelProto | None,
    samples: Samples,
    numbers: Sequence[int],
    outputs: Tensors,
    expected: Tensors,
    tolerance: float,
) -> str:
    """Return in a sentence which sample is beyond the bound of verification; empty where all are within it.

    `expected` are outputs of the file, or of the canonical `model` where it is quantised: it computes in integers what its file
    does in floats.
    """
    results = _by_sample(outputs, len(numbers))
    truths = _by_sample(expected, len(numbers))
    cases = [Case({}, truth, truth, name=samples.name(number)) for truth, number in zip(truths, numbers)]
    try:
        compare(results, cases, tolerance)
        return ""
    except NumericError:
        order = np.argsort([-_distance(one, other) for one, other in zip(results, truths)], kind="stable").tolist()
    # the distance of indices says nothing: all others are looked at
    count = max(_LOOKED_AT, sum(_chooses_otherwise(one, other) for one, other in zip(results, truths)))
    for first in range(0, min(count, len(order)), _LOOKED_AT):
        farthest = order[first : first + _LOOKED_AT]
        chosen = {samples.name(numbers[place]): samples.inputs(numbers[place]) for place in farthest}
        looked = add_plain_sums(model, choose_cases(model, 0, 0, tolerance, given, chosen), given)
        try:
            compare([results[place] for place in farthest], looked, tolerance)
        except NumericError as error:
            return error.what
    return ""


def _by_sample(outputs: Tensors, count: int) -> list[Tensors]:
    return [{name: value[number] for name, value in outputs.items()} for number in range(count)]


def _chooses_otherwise(one: Tensors, other: Tensors) -> bool:
    """Return whether integers wider than a byte differ, as indices do."""
    wide = [name for name, value in other.items() if value.dtype.kind in "iu" and value.dtype.itemsize > 1]
    return any(not np.array_equal(one[name], other[name]) for name in wide)


def _distance(one: Tensors, other: Tensors) -> float:
    """Return the largest difference of two samples' outputs, each relative to its largest magnitude; infinite for other indices."""
    if _chooses_otherwise(one, other):
        return np.inf
    return max(
        float(distances(one[name], value).max(initial=0.0)) / (largest_magnitude([value]) or 1.0)
        for name, value in other.items()
    )
