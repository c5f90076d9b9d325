"""Choose informative test inputs, and evaluate them by ONNX Runtime and in double precision.

A detector answers noise with 1e-6 everywhere: only rounding could be compared there. So inputs are drawn until ONNX
Runtime with and without its optimisations agrees far better than the library has to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ConfigError, ModelError
from .compare import errors_of, output_range
from .doubles.double_reference import DoubleReference, NoDouble
from .doubles.evaluate_cases import evaluate_cases
from .error_bounds import Distance, believable
from .inputs import make_input
from .integers.exact_integers import has_exact_integers, is_quantised
from .integers.perturbed_rounding import perturbed_outputs
from .reference import Reference

if TYPE_CHECKING:
    import onnx

#: largest uncertainty of the reference in a certain case, as a fraction of the tolerance
_MARGIN = 0.1
#: draws per case
_TRIES = 8


@dataclass(frozen=True)
class Case:
    """Inputs and outputs by name: ONNX Runtime's, plain and optimised, and in double precision.

    `double` is None if that evaluation is impossible; `no_double` says why. `plain`, on demand, is the evaluation in the
    model's precision with sequential sums, or of a quantised model with noise. `units` is the largest difference of an integer output: 1 if a quantised
    model rounds numbers that implementations compute differently.
    """

    inputs: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    optimized: dict[str, np.ndarray]
    double: dict[str, np.ndarray] | None = None
    no_double: str = ""
    plain: dict[str, np.ndarray] | None = None
    units: int = 0

    @property
    def uncertainty(self) -> float:
        """Return the largest difference between plain and optimised ONNX Runtime, relative to the output's range."""
        found = (_difference(self.optimized[name], value) / output_range([value]) for name, value in self.expected.items())
        return max(found, default=0.0)

    @property
    def blank(self) -> bool:
        """Tell whether an output is NaN throughout."""
        return any(_is_nan(value) for value in self.expected.values())


def choose_cases(model: onnx.ModelProto, seed: int, count: int, tolerance: float) -> list[Case]:
    """Choose the first `count` seeded draws with low uncertainty; fill up with the most certain others.

    All are evaluated in double precision, or none. Raises ConfigError for a count below 1, ModelError if ONNX Runtime
    rejects the model, or computes only NaN for an output.
    """
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
    return with_doubles(model, chosen, tolerance)


def with_doubles(model: onnx.ModelProto, cases: list[Case], tolerance: float) -> list[Case]:
    """Add outputs in double precision to the cases, if available and credible.

    ONNX Runtime's distance from them can raise the allowed error, but only as far as rounding explains it: if the
    distance is not far below the tolerance, the evaluation is repeated with every result rounded. Where integers are
    exact there are none: doubles would be rounded to other integers than the model's floats are.
    """
    if has_exact_integers(model):
        return [replace(case, no_double="the model's integers are exact") for case in cases]
    try:
        found = evaluate_cases(DoubleReference(model), [case.inputs for case in cases])
        doubled = [replace(case, double=double) for case, double in zip(cases, found, strict=True)]
        _check_forms(doubled)
        _check_believable(model, doubled, tolerance)
    except NoDouble as error:
        return [replace(case, no_double=str(error)) for case in cases]
    return doubled


def with_plain_sums(model: onnx.ModelProto, cases: Sequence[Case]) -> list[Case]:
    """Add outputs with other rounding to the cases: a second look at a library that seems wrong.

    Sums are sequential; or, in a model that rounds floats to integers, those floats move by a few units in the last
    place. Without doubles the cases of other models are returned unchanged: the error of that order is unknown then.
    """
    if is_quantised(model) and not has_exact_integers(model):
        moved = perturbed_outputs(model, [case.inputs for case in cases], [case.expected for case in cases])
        return [
            replace(case, double=None, plain=plain, units=max(case.units, 1 + _units(case.expected, plain)))
            for case, plain in zip(cases, moved, strict=True)
        ]
    if any(case.double is None for case in cases):
        return list(cases)
    try:
        found = evaluate_cases(DoubleReference(model, rounded=True), [case.inputs for case in cases])
        return [replace(case, plain=plain) for case, plain in zip(cases, found, strict=True)]
    except NoDouble:
        return list(cases)


def _units(expected: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> int:
    """Return the largest difference of an 8-bit output."""
    small = [name for name, value in expected.items() if value.dtype in (np.int8, np.uint8)]
    return int(max((_difference(expected[name], other[name]) for name in small), default=0))


def _check_forms(cases: list[Case]) -> None:
    """Raise NoDouble if an output differs from ONNX Runtime's in shape or kind."""
    for case in cases:
        assert case.double is not None
        for name, expected in case.expected.items():
            found = case.double[name]
            same_kind = (found.dtype == expected.dtype) or (found.dtype == np.float64 and expected.dtype.kind not in "iub")
            if found.shape != expected.shape or not same_kind:
                raise NoDouble(
                    f"output '{name}' is {found.dtype} {list(found.shape)}, ONNX Runtime's is {expected.dtype} "
                    f"{list(expected.shape)}"
                )


def _check_believable(model: onnx.ModelProto, cases: list[Case], tolerance: float) -> None:
    """Raise NoDouble if ONNX Runtime is further from the doubles than rounding explains."""
    expected = [case.expected for case in cases]
    floats = [name for name, value in expected[0].items() if value.dtype.kind not in "iub"]
    found = {name: errors_of(name, expected, cases, tolerance) for name in floats}
    doubtful = {name: each for name, each in found.items() if not _counts_anyway(each.onnxruntime, each.range, tolerance)}
    if not doubtful:
        return
    again = evaluate_cases(DoubleReference(model, rounded=True), [case.inputs for case in cases])
    for name, each in doubtful.items():
        rounding = errors_of(name, again, cases, tolerance).library
        if not believable(each.onnxruntime, rounding, tolerance * each.range):
            raise NoDouble(
                f"output '{name}' differs from ONNX Runtime's by {each.onnxruntime.largest / each.range:.1e} of the "
                f"range, and rounding explains {rounding.largest / each.range:.1e}"
            )


def _counts_anyway(reference: Distance, scale: float, tolerance: float) -> bool:
    return believable(reference, Distance(), _MARGIN * tolerance * scale)


def _refuse_nan(cases: list[Case]) -> None:
    """Raise ModelError for an output that is NaN throughout: maxima and the like may propagate NaN or not."""
    for name in cases[0].expected:
        if all(_is_nan(case.expected[name]) for case in cases):
            raise ModelError(
                f"ONNX Runtime computes nothing but NaN for the output '{name}', so the library cannot be verified.",
                "Fix an input to a useful value with --fix, or export the model again with finite weights.",
            )


def _is_nan(value: np.ndarray) -> bool:
    return value.dtype.kind not in "iub" and value.size > 0 and bool(np.isnan(value.astype(np.float64)).all())


def _draws(model: onnx.ModelProto, seed: int, most: int) -> Iterator[Case]:
    truth = optimized = Reference(model)
    exact = has_exact_integers(model)
    if not exact:  # optimised, a quantised layer is another one, one unit apart
        try:
            optimized = Reference(model, optimized=True)
        except ModelError:  # ONNX Runtime's optimisations break some models that run without them
            optimized = truth
    units = int(is_quantised(model) and not exact)
    for number in range(most):
        inputs = make_input(model, seed, number)
        yield Case(inputs, truth(inputs), optimized(inputs), units=units)


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference of elements finite in both."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(one) & np.isfinite(other)
    return float(np.abs(one[finite] - other[finite]).max(initial=0.0))
