"""Outputs of a library against the reference: how far apart, and where they first differ too much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import ml_dtypes
import numpy as np

from ..errors import NumericError

#: how far ONNX Runtime's own approximations are from the truth (1.5e-7 for Sigmoid, 2.5e-7 for Tanh, in float32)
REFERENCE_ERROR = 2.5e-7


@dataclass(frozen=True)
class Difference:
    """`absolute`: the largest difference of two elements; `relative`: divided by the reference output's range."""

    absolute: float
    relative: float


class Expected(Protocol):
    """What the reference says of one case; `noise` is the reference's own uncertainty, by output."""

    @property
    def expected(self) -> dict[str, np.ndarray]: ...

    @property
    def noise(self) -> dict[str, float]: ...


def compare(results: list[dict[str, np.ndarray]], cases: Sequence[Expected], tolerance: float) -> Difference:
    """The largest differences over all cases and outputs; the range of an output is that of all its cases.

    Integer and boolean outputs must be equal; NaN and infinities must be at the same places. Raises NumericError
    naming the first output and element that differ by more than `tolerance` times the output's range, by more than
    the reference differs from itself or from the truth, and by more than one unit in the last place.
    """
    worst = Difference(0.0, 0.0)
    for number, (result, case) in enumerate(zip(results, cases, strict=True)):
        for name, expected in case.expected.items():
            where = f"output '{name}' of case {number}"
            scale = output_range([each.expected[name] for each in cases])
            found = compare_output(where, result[name], expected, tolerance, scale, case.noise[name])
            worst = Difference(max(worst.absolute, found.absolute), max(worst.relative, found.relative))
    return worst


def compare_output(
    where: str,
    result: np.ndarray,
    expected: np.ndarray,
    tolerance: float,
    scale: float | None = None,
    noise: float = 0.0,
) -> Difference:
    """One output; `where` names it in the error, `scale` is its range (by default that of `expected`)."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        raise NumericError(
            f"The library's {where} is {result.dtype} {list(result.shape)}, ONNX Runtime's is "
            f"{expected.dtype} {list(expected.shape)}."
        )
    if expected.dtype.kind in "iub":
        _refuse_first(result != expected, where, result, expected, "exact equality")
        return Difference(0.0, 0.0)
    wide, truth = result.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(truth)
    same = np.where(finite, np.isfinite(wide), (wide == truth) | (np.isnan(wide) & np.isnan(truth)))
    _refuse_first(~same, where, result, expected, "the same infinities and NaN")
    errors = np.where(finite, np.abs(np.where(finite, wide, 0) - np.where(finite, truth, 0)), 0)
    scale = output_range([expected]) if scale is None else scale
    # two neighbours of the output's dtype cannot be told apart: of float16, that is 1e-3 of the value
    unit = float(ml_dtypes.finfo(expected.dtype).eps) * np.abs(np.where(finite, truth, 0))
    allowed = np.maximum(unit, max(tolerance * scale, noise, REFERENCE_ERROR))
    _refuse_first(errors > allowed, where, result, expected, f"{tolerance:g} of the range {scale:g}")
    largest = float(errors.max(initial=0.0))
    return Difference(largest, largest / scale)


def output_range(values: Sequence[np.ndarray]) -> float:
    """Largest minus smallest of the finite values; where that is 0 their magnitude, and where that is 0 too, 1."""
    wide = np.concatenate([np.asarray(each, dtype=np.float64).ravel() for each in values])
    finite = wide[np.isfinite(wide)]
    if finite.size == 0:
        return 1.0
    return float(finite.max() - finite.min()) or float(np.abs(finite).max()) or 1.0


def _refuse_first(wrong: np.ndarray, where: str, result: np.ndarray, expected: np.ndarray, rule: str) -> None:
    if not wrong.any():
        return
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    raise NumericError(
        f"The library and ONNX Runtime differ in {where}, element {list(first)}: {result[first]!s} against "
        f"{expected[first]!s} ({int(wrong.sum())} of {wrong.size} elements differ by more than {rule}).",
        "Compile without lossy passes, or raise `verify: tolerance` if the difference is acceptable.",
    )
