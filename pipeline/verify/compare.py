"""Compare outputs of a library with the reference: largest errors, and the first element beyond its bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from ..errors import NumericError
from ..memory.measured import ReorderedRows
from .error_bounds import (
    Distance,
    allowed_error,
    differences,
    eps_of,
    is_float,
    largest_difference,
    largest_magnitude,
    output_range,
)
from .integers.choices import Choice
from .integers.matched_rows import match_rows

#: error of ONNX Runtime's own approximations (1.5e-7 for Sigmoid, 2.5e-7 for Tanh, in float32), when it is the truth
REFERENCE_ERROR = 2.5e-7
#: name of a reference
ONNX_RUNTIME = "onnxruntime"
#: rounding of a difference of two dequantised integers, relative to it
_ROUNDED = 1e-4


Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class Difference:
    """Largest differences of a library's outputs.

    `absolute` is the largest difference of an element from ONNX Runtime's; `relative` is divided by the output's range.
    The distances are from double precision, relative to the range too; None without it. `reordered` is there if the outputs
    are as near as that only in another order of their rows.
    """

    absolute: float
    relative: float
    library_to_double: float | None = None
    onnxruntime_to_double: float | None = None
    reordered: ReorderedRows | None = None


def farthest(differences: Sequence[Difference]) -> Difference:
    """Return the largest of all differences, each for itself."""
    ours, theirs = (
        None if any(each is None for each in found) else max(found)
        for found in zip(*((each.library_to_double, each.onnxruntime_to_double) for each in differences))
    )
    reordered = next((each.reordered for each in differences if each.reordered), None)
    absolute, relative = (max(found) for found in zip(*((each.absolute, each.relative) for each in differences)))
    return Difference(absolute, relative, ours, theirs, reordered)


@dataclass(frozen=True)
class Case:
    """Inputs and outputs by name: the reference's, plain and optimised, and in double precision.

    `reference` names the evaluator. `double` is None if that evaluation is impossible; `no_double` says why. On demand,
    `plain` is the evaluation in the model's precision with sequential sums, or of a quantised model with noise, and
    `witnesses` are the reference's outputs for inputs moved by rounding, `choices` the scores behind outputs of indices. `units` is the largest difference of an
    integer output: 1 if a quantised model rounds numbers that implementations compute differently. `scales` are the values
    of a unit of outputs that are dequantised integers. `name` is that of the user's sample; empty for a seeded draw.
    """

    inputs: Tensors
    expected: Tensors
    optimized: Tensors
    double: Tensors | None = None
    no_double: str = ""
    plain: Tensors | None = None
    units: int = 0
    scales: Mapping[str, float] = field(default_factory=dict)
    witnesses: tuple[Tensors, ...] = ()
    choices: Mapping[str, Choice] = field(default_factory=dict)
    reference: str = ONNX_RUNTIME
    name: str = ""

    @property
    def uncertainty(self) -> float:
        """Return the largest difference between plain and optimised ONNX Runtime, relative to the output's range."""
        found = (
            largest_difference(self.optimized[name], value) / output_range([value])
            for name, value in self.expected.items()
        )
        return max(found, default=0.0)

    @property
    def blank(self) -> bool:
        """Return whether an output is NaN throughout."""
        return any(is_nan(value) for value in self.expected.values())

    @property
    def has_nan(self) -> bool:
        """Return whether an output has a NaN: a sum of squares that lost its digits, of a reference that is right elsewhere."""
        return any(
            value.dtype.kind not in "iub" and np.isnan(value.astype(np.float64)).any()
            for value in self.expected.values()
        )


def is_nan(value: np.ndarray) -> bool:
    """Return whether a value is of floats, and NaN throughout."""
    return value.dtype.kind not in "iub" and value.size > 0 and bool(np.isnan(value.astype(np.float64)).all())


@dataclass(frozen=True)
class OutputErrors:
    """Errors of one output over all cases: the library's, ONNX Runtime's, and the allowed ones.

    `plain` is the distance of the evaluation with sequential sums, 0 without it.
    """

    output: str
    elements: int
    range: float
    magnitude: float
    library: Distance
    onnxruntime: Distance
    plain: Distance
    allowed: Distance

    @property
    def within(self) -> bool:
        """Return whether the root mean square is allowed; elements are judged one by one."""
        return self.library.rms <= self.allowed.rms


def compare(results: list[dict[str, np.ndarray]], cases: Sequence[Case], tolerance: float) -> Difference:
    """Compare all outputs of all cases; return the largest differences.

    An output's range is taken over all cases. The truth is the evaluation in double precision, or else ONNX Runtime's.
    Integer and boolean outputs must equal one of the reference's evaluations, numbers of 8 bits up to a case's `units`,
    be in another order with the rows of a float output, or choose scores within the bound of the right ones; doubles are
    no witness there: they judge rounding alone. NaN and infinities must be at the same places. Raises NumericError naming the first output and element beyond both `error_bounds.allowed` and one unit in the last place;
    its `outputs` hold the errors of every output.
    """
    names = list(cases[0].expected) if cases else []
    for number, (result, case) in enumerate(zip(results, cases, strict=True)):
        for name in names:
            _check_form(f"output '{name}' of {_title(case, number)}", result[name], case.expected[name])
    floats = [name for name in names if is_float(cases[0].expected[name])]
    errors = {name: errors_of(name, results, cases, tolerance) for name in floats}
    told = tuple(asdict(each) for each in errors.values())
    refusals: list[tuple[int, NumericError]] = []
    for number, (result, case) in enumerate(zip(results, cases, strict=True)):
        for name in names:
            where = f"output '{name}' of {_title(case, number)}"
            witnesses = [each[name] for each in (case.expected, case.optimized, *case.witnesses)]
            if name in errors:
                _check_elements(
                    where, result[name], case.expected[name], _truth(case, name), errors[name].allowed.largest, told
                )
            else:
                differs = np.logical_and.reduce([_apart(result[name], witness, case.units) for witness in witnesses])
                rule = f"{case.units}, as the model rounds to integers" if case.units else "exact equality"
                found = _difference(differs, where, result[name], case.expected[name], rule, told)
                refusals += [(number, each) for each in found]
    for each in errors.values():
        _check_together(each, told)
    worst = Difference(0.0, 0.0)
    for name, measured in errors.items():
        direct = _direct(name, results, cases)
        worst = Difference(max(worst.absolute, direct), max(worst.relative, direct / measured.range))
    if worst.relative > tolerance or refusals:
        scales = {
            name: _row_scale(tolerance, each.range, each.magnitude, cases[0].expected[name])
            for name, each in errors.items()
        }
        for name, choice in cases[0].choices.items():
            scores = [case.choices[name].scores for case in cases]
            unit = choice.unit * max(case.units for case in cases)
            scales[name] = _row_scale(tolerance, output_range(scores), largest_magnitude(scores), scores[0], unit)

        def matched(chosen: Iterable[int]) -> ReorderedRows | None:
            pairs = [(results[number], cases[number]) for number in chosen]
            expected, choices = [case.expected for _, case in pairs], [case.choices for _, case in pairs]
            return match_rows([result for result, _ in pairs], expected, scales, tolerance, choices)

        worst = replace(worst, reordered=matched(range(len(cases))))
        if refusals and worst.reordered is None:
            raise next((error for number, error in refusals if matched([number]) is None), refusals[0][1])
    if not floats or any(case.double is None for case in cases):
        return worst
    distances = [(each.library.largest / each.range, each.onnxruntime.largest / each.range) for each in errors.values()]
    ours, theirs = (max(found) for found in zip(*distances, strict=True))
    return replace(worst, library_to_double=ours, onnxruntime_to_double=theirs)


def _row_scale(tolerance: float, scale: float, magnitude: float, value: np.ndarray, unit: float = 0.0) -> float:
    """Return the scale of a float value of which `tolerance` is allowed, or a unit of dequantised integers."""
    allowed = allowed_error(tolerance, scale, magnitude, eps_of(value), Distance()).largest
    return max(allowed, (1 + _ROUNDED) * unit) / tolerance


def _title(case: Case, number: int) -> str:
    return f"sample {case.name}" if case.name else f"case {number}"


def errors_of(
    name: str, results: Sequence[dict[str, np.ndarray]], cases: Sequence[Case], tolerance: float
) -> OutputErrors:
    """Measure the errors of one float output over all cases, without infinite and NaN elements.

    A dequantised integer may be so many units away as an integer may.
    """
    values = [case.expected[name] for case in cases]
    truths = [_truth(case, name) for case in cases]
    library = _distance([result[name] for result in results], truths)
    own = Distance.most(
        _distance([getattr(case, kind)[name] for case in cases], truths) for kind in ("expected", "optimized")
    )
    scale, magnitude = output_range(values), largest_magnitude(truths)
    computed = [case.plain[name] for case in cases if case.plain is not None]
    plain = _distance(computed, truths) if len(computed) == len(cases) else Distance()
    limit = allowed_error(tolerance, scale, magnitude, eps_of(values[0]), Distance.most([own, plain]))
    if any(case.double is None for case in cases):
        limit = Distance(max(limit.largest, REFERENCE_ERROR), max(limit.rms, REFERENCE_ERROR))
    unit = max(case.units * case.scales.get(name, 0.0) for case in cases)
    limit = Distance(max(limit.largest, (1 + _ROUNDED) * unit), max(limit.rms, (1 + _ROUNDED) * unit))
    return OutputErrors(name, sum(each.size for each in values), scale, magnitude, library, own, plain, limit)


def _apart(value: np.ndarray, witness: np.ndarray, units: int) -> np.ndarray:
    """Return which elements differ; numbers of 8 bits, by more than `units`."""
    if not units or value.dtype.itemsize > 1 or value.dtype == bool:
        return np.asarray(value != witness)
    return np.abs(value.astype(np.int64) - witness.astype(np.int64)) > units


def _truth(case: Case, name: str) -> np.ndarray:
    """Return the output in double precision; non-finite elements are ONNX Runtime's.

    Doubles have a larger range, so they can be finite if the model's dtype overflows.
    """
    expected = case.expected[name].astype(np.float64)
    if case.double is None:
        return expected
    double = case.double[name]
    return np.where(np.isfinite(expected) & np.isfinite(double), double, expected)


def _distance(values: Sequence[np.ndarray], truths: Sequence[np.ndarray]) -> Distance:
    return Distance.of(np.concatenate([np.zeros(0), *map(differences, values, truths)]))


def _direct(name: str, results: Sequence[dict[str, np.ndarray]], cases: Sequence[Case]) -> float:
    return max(largest_difference(result[name], case.expected[name]) for result, case in zip(results, cases))


def _check_form(where: str, result: np.ndarray, expected: np.ndarray) -> None:
    if result.shape != expected.shape or result.dtype != expected.dtype:
        raise NumericError(
            f"The library's {where} is {result.dtype} {list(result.shape)}, ONNX Runtime's is "
            f"{expected.dtype} {list(expected.shape)}."
        )


def _check_elements(
    where: str, result: np.ndarray, expected: np.ndarray, truth: np.ndarray, limit: float, told: tuple[dict, ...]
) -> None:
    wide, finite = result.astype(np.float64), np.isfinite(truth)
    same = np.where(finite, np.isfinite(wide), (wide == truth) | (np.isnan(wide) & np.isnan(truth)))
    _refuse_first(~same, where, result, expected, "the same infinities and NaN", told)
    errors = np.where(finite, np.abs(np.where(finite, wide, 0) - np.where(finite, truth, 0)), 0)
    # one unit in the last place of the output's dtype always passes: for float16, 1e-3 of the value
    unit = eps_of(expected) * np.abs(np.where(finite, truth, 0))
    _refuse_first(errors > np.maximum(unit, limit), where, result, expected, f"{limit:.3g}", told)


def _check_together(errors: OutputErrors, told: tuple[dict, ...]) -> None:
    if errors.within:
        return
    raise NumericError(
        f"The library and ONNX Runtime differ in output '{errors.output}': the root mean square of its errors is "
        f"{errors.library.rms:.3g}, {errors.allowed.rms:.3g} is allowed.",
        _HINT,
        told,
    )


_HINT = "Compile without lossy passes, or raise `verify: tolerance` if the difference is acceptable."


def _refuse_first(
    wrong: np.ndarray, where: str, result: np.ndarray, expected: np.ndarray, rule: str, told: tuple[dict, ...]
) -> None:
    for error in _difference(wrong, where, result, expected, rule, told):
        raise error


def _difference(
    wrong: np.ndarray, where: str, result: np.ndarray, expected: np.ndarray, rule: str, told: tuple[dict, ...]
) -> list[NumericError]:
    """Return the error that names the first wrong element, if there is one."""
    if not wrong.any():
        return []
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    text = (
        f"The library and ONNX Runtime differ in {where}, element {list(first)}: {result[first]!s} against "
        f"{expected[first]!s} ({int(wrong.sum())} of {wrong.size} elements differ by more than {rule})."
    )
    return [NumericError(text, _HINT, told)]
