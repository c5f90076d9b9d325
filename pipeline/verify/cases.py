"""Inputs on which a model says something, with what ONNX Runtime says about them.

A detector that sees noise answers 1e-6 everywhere: there, rounding is all that could be compared. So inputs are drawn
until ONNX Runtime agrees with itself, with its optimisations and without, far better than the library has to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ConfigError, ModelError
from .compare import output_range
from .inputs import make_input
from .reference import Reference

if TYPE_CHECKING:
    import onnx

#: a case is taken when the reference's own uncertainty is below this part of the tolerance
_MARGIN = 0.1
#: draws for each case that is wanted
_TRIES = 8


@dataclass(frozen=True)
class Case:
    """Inputs and reference outputs by name; `noise` is how far the reference is from its optimised self, by output."""

    inputs: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    noise: dict[str, float]

    @property
    def uncertainty(self) -> float:
        """The largest noise of an output, relative to the output's range."""
        return max((self.noise[name] / output_range([value]) for name, value in self.expected.items()), default=0.0)

    @property
    def blank(self) -> bool:
        """Whether an output is NaN throughout."""
        return any(_is_nan(value) for value in self.expected.values())


def choose_cases(model: onnx.ModelProto, seed: int, count: int, tolerance: float) -> list[Case]:
    """The first `count` seeded draws that are certain enough, filled up with the most certain of the others. Raises
    ConfigError for a count below 1, ModelError where ONNX Runtime does not take the model, or computes only NaN."""
    if count < 1:
        raise ConfigError(f"verify: cases is {count}.", "Give at least 1.")
    certain: list[Case] = []
    others: list[Case] = []
    blank: list[Case] = []
    for case in _draws(model, seed, count * _TRIES):
        kind = blank if case.blank else certain if case.uncertainty <= _MARGIN * tolerance else others
        kind.append(case)
        if len(certain) == count:
            break
    others.sort(key=lambda case: case.uncertainty)
    chosen = [*certain, *others, *blank][:count]
    _refuse_nan(chosen)
    return chosen


def _refuse_nan(cases: list[Case]) -> None:
    """Raise ModelError for an output that is NaN throughout: maxima and the like may answer it either way."""
    for name in cases[0].expected:
        if all(_is_nan(case.expected[name]) for case in cases):
            raise ModelError(
                f"ONNX Runtime computes nothing but NaN for the output '{name}', so the library cannot be verified.",
                "Export the model again with finite weights.",
            )


def _is_nan(value: np.ndarray) -> bool:
    return value.dtype.kind not in "iub" and value.size > 0 and bool(np.isnan(value.astype(np.float64)).all())


def _draws(model: onnx.ModelProto, seed: int, most: int) -> Iterator[Case]:
    truth = Reference(model)
    try:
        optimized = Reference(model, optimized=True)
    except ModelError:  # ONNX Runtime's optimisations break some models it takes as they are
        optimized = truth
    for number in range(most):
        inputs = make_input(model, seed, number)
        expected, again = truth(inputs), optimized(inputs)
        yield Case(inputs, expected, {name: _distance(expected[name], again[name]) for name in expected})


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of two finite elements."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(one) & np.isfinite(other)
    return float(np.abs(one[finite] - other[finite]).max(initial=0.0))
