"""Choose informative test inputs, and evaluate them by the reference and in double precision.

    file as given ─► ONNX Runtime, without optimisations     the reference; else ONNX's evaluator
    canonical     ─► the same, where layers are integers     the file computes those in floats: see `integers/given_outputs`
    canonical     ─► doubles                                 judges rounding, and only that

A detector answers noise with 1e-6 everywhere: only rounding could be compared there. So inputs are drawn until ONNX
Runtime with and without its optimisations agrees far better than the library has to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ConfigError, ModelError
from ..frontend.canonical.ports.apply import length_forms, port_forms
from ..memory.measured import NOT_VERIFIED
from .compare import ONNX_RUNTIME, Case, Tensors, errors_of, is_nan
from .doubles.double_reference import DoubleReference, NoDouble
from .doubles.evaluate_cases import evaluate_cases
from .draws.draw_values import GENTLE
from .error_bounds import Distance, believable, largest_difference
from .inputs import InputDraws, make_input
from .integers.choices import find_choices
from .integers.exact_integers import has_exact_integers, is_quantised, rounds_nothing
from .integers.given_outputs import unit_of
from .integers.perturbed_rounding import moved_outputs, perturbed_outputs
from .reference import NoReference, OnnxReference, Reference

if TYPE_CHECKING:
    import onnx

#: largest uncertainty of the reference in a certain case, as a fraction of the tolerance
_MARGIN = 0.1
#: draws per case; as many gentle ones follow where all of these lead to NaN
_TRIES = 8
#: name of ONNX's own evaluator as a reference
ONNX = "onnx"


def choose_cases(
    model: onnx.ModelProto,
    seed: int,
    count: int,
    tolerance: float,
    given: onnx.ModelProto | None = None,
    samples: Mapping[str, Tensors] = MappingProxyType({}),
) -> list[Case]:
    """Choose the first `count` seeded draws with low uncertainty; fill up with the most certain others.

    `model` is canonical, `given` that of its file, if there is one. `samples` are the user's own, by name: each is a case behind
    the draws. All cases are evaluated in double precision, or none.
    Where no evaluator runs the file, cases are those of the canonical model, or inputs alone, and their `reference` says
    so. Raises ConfigError for a count below 1, ModelError if an output is NaN throughout.
    """
    if count < 1 and not samples:
        raise ConfigError(f"verify: cases is {count}.", "Give at least 1.")
    chosen = _evaluate(model, _source(model, given), seed, count, tolerance, samples)
    _refuse_nan(chosen)
    return add_doubles(model, chosen, tolerance)


def _source(model: onnx.ModelProto, given: onnx.ModelProto | None) -> onnx.ModelProto:
    """Return the model that the library is compared with: the file's, unless the import makes integers of its layers."""
    return model if given is None or is_quantised(model) else given


def _evaluate(
    model: onnx.ModelProto,
    source: onnx.ModelProto,
    seed: int,
    count: int,
    tolerance: float,
    samples: Mapping[str, Tensors],
) -> list[Case]:
    """Draw cases by the first evaluator that runs the model, and evaluate the samples by it."""
    free = not has_exact_integers(model)  # optimised, a quantised layer is another one, one unit apart
    evaluators: list[tuple[str, Callable[[], Reference | OnnxReference], onnx.ModelProto]] = [
        (ONNX_RUNTIME, lambda: Reference(source, optimize=free), source),
        (ONNX, lambda: OnnxReference(source), source),
    ]
    if source is not model:
        evaluators.append((NOT_VERIFIED, lambda: Reference(model, optimize=free), model))
    reasons: list[str] = []
    for name, load, evaluated in evaluators:
        said = f"{name}: {reasons[0]}" if name == NOT_VERIFIED else name
        try:
            truth = load()
            optimized = truth.run_optimized if isinstance(truth, Reference) else truth
            drawn = _draw(model, evaluated, truth, optimized, (seed, count), tolerance) if count else []
        except NoReference as error:
            reasons.append(error.what)
            continue
        return [replace(case, reference=said) for case in (*drawn, *_sampled(model, truth, optimized, samples))]
    return unverified_cases(source, seed, count, reasons[0])


def _sampled(
    model: onnx.ModelProto, truth: Callable, optimized: Callable, samples: Mapping[str, Tensors]
) -> list[Case]:
    """Evaluate the user's samples. Raises ConfigError with the name of one that the model rejects."""
    cases = []
    for name, inputs in samples.items():
        try:
            cases.append(Case(inputs, truth(inputs), optimized(inputs), units=_units_of(model), name=name))
        except NoReference as error:
            raise ConfigError(f"Sample {name}: {error.what}", "Check its values.") from error
    return cases


def _units_of(model: onnx.ModelProto) -> int:
    """Return the largest difference of an integer output."""
    return int(is_quantised(model) and not has_exact_integers(model))


def unverified_cases(source: onnx.ModelProto, seed: int, count: int, reason: str) -> list[Case]:
    """Return cases of inputs alone; `reason` says why there are no outputs."""
    inputs = [make_input(source, seed, number) for number in range(count)]
    return [Case(each, {}, {}, no_double=reason, reference=f"{NOT_VERIFIED}: {reason}") for each in inputs]


def _draw(
    model: onnx.ModelProto,
    source: onnx.ModelProto,
    truth: Callable,
    optimized: Callable,
    draw: tuple[int, int],
    tolerance: float,
) -> list[Case]:
    """Draw cases; raise NoReference if none can be evaluated."""
    seed, count = draw
    certain: list[Case] = []
    others: list[Case] = []
    blank: list[Case] = []
    failures: list[NoReference] = []
    units = _units_of(model)
    draws = InputDraws(source)
    lengths = [length["output"] for length in length_forms(port_forms(model)).values()]

    def is_bare(case: Case) -> bool:
        """Return whether the data leave an output without rows, of which nothing is compared."""
        return not all(case.expected[name].any() for name in lengths if name in case.expected)

    for number in chain(range(count * _TRIES), range(GENTLE, GENTLE + count * _TRIES)):
        if number == GENTLE and (certain or others):
            break
        inputs = draws.draw(seed, number)
        try:
            case = Case(inputs, truth(inputs), optimized(inputs), units=units)
        except NoReference as error:  # values that an operator forbids
            failures.append(error)
            continue
        spoken = not is_bare(case) or bool(certain and not any(map(is_bare, certain)))  # one of them, behind another
        sure = case.uncertainty <= _MARGIN * tolerance and not case.has_nan and spoken
        kind = blank if case.blank else certain if sure else others
        kind.append(case)
        if len(certain) == count:
            break
    others.sort(key=lambda case: (case.has_nan, is_bare(case), case.uncertainty))
    chosen = [*certain, *others, *blank][:count]
    if not chosen:
        raise failures[0]
    return chosen


def add_doubles(model: onnx.ModelProto, cases: list[Case], tolerance: float) -> list[Case]:
    """Add outputs in double precision to the cases, if available and credible.

    The reference's distance from them can raise the allowed error, but only as far as rounding explains it: if the
    distance is not far below the tolerance, the evaluation is repeated with every result rounded. Where integers are
    exact there are none: doubles would be rounded to other integers than the model's floats are.
    """
    if not cases[0].expected:
        return cases
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


def add_plain_sums(model: onnx.ModelProto, cases: Sequence[Case], given: onnx.ModelProto | None = None) -> list[Case]:
    """Add outputs with other rounding to the cases: a second look at a library that seems wrong.

    Sums are sequential; or, in a model that rounds floats to integers, those floats move by a few units in the last
    place. Integers that come from floats get witnesses, of inputs that move so far, and indices the scores that they choose
    among. Without doubles the floats of other models are left unchanged: the error of that order is unknown then.
    """
    chosen = find_choices(_source(model, given), [case.inputs for case in cases])
    cases = [replace(case, choices=each) for case, each in zip(cases, chosen, strict=True)]
    if is_quantised(model) and not has_exact_integers(model):
        try:
            moved = perturbed_outputs(model, [case.inputs for case in cases], [case.expected for case in cases])
        except NoReference:  # of the noise, not of the model
            return list(cases)
        outputs = cases[0].expected.items()
        scales = {
            name: unit_of(model, name, value.dtype) or 0.0 for name, value in outputs if value.dtype.kind not in "iub"
        }
        return [
            replace(
                case, double=None, plain=plain, units=max(case.units, 1 + _units(case.expected, plain)), scales=scales
            )
            for case, plain in zip(cases, moved, strict=True)
        ]
    looked = list(cases)
    if cases[0].reference == ONNX_RUNTIME and _has_integers(cases[0]) and not rounds_nothing(model):
        witnesses = moved_outputs(_source(model, given), [case.inputs for case in cases])
        looked = [replace(case, witnesses=each) for case, each in zip(looked, witnesses, strict=True)]
    if any(case.double is None for case in cases):
        return looked
    try:
        found = evaluate_cases(DoubleReference(model, rounded=True), [case.inputs for case in cases])
        return [replace(case, plain=plain) for case, plain in zip(looked, found, strict=True)]
    except NoDouble:
        return looked


def _has_integers(case: Case) -> bool:
    return any(value.dtype.kind in "iub" for value in case.expected.values())


def _units(expected: Tensors, other: Tensors) -> int:
    """Return the largest difference of an 8-bit output."""
    small = [name for name, value in expected.items() if value.dtype in (np.int8, np.uint8)]
    return int(max((largest_difference(expected[name], other[name]) for name in small), default=0))


def _check_forms(cases: list[Case]) -> None:
    """Raise NoDouble if an output differs from the reference's in shape or kind."""
    for case in cases:
        assert case.double is not None
        for name, expected in case.expected.items():
            found = case.double[name]
            same_kind = (found.dtype == expected.dtype) or (
                found.dtype == np.float64 and expected.dtype.kind not in "iub"
            )
            if found.shape != expected.shape or not same_kind:
                raise NoDouble(
                    f"output '{name}' is {found.dtype} {list(found.shape)}, the reference's is {expected.dtype} "
                    f"{list(expected.shape)}"
                )


def _check_believable(model: onnx.ModelProto, cases: list[Case], tolerance: float) -> None:
    """Raise NoDouble if the reference is further from the doubles than rounding explains."""
    expected = [case.expected for case in cases]
    floats = [name for name, value in expected[0].items() if value.dtype.kind not in "iub"]
    found = {name: errors_of(name, expected, cases, tolerance) for name in floats}
    doubtful = {
        name: each for name, each in found.items() if not _counts_anyway(each.onnxruntime, each.range, tolerance)
    }
    if not doubtful:
        return
    again = evaluate_cases(DoubleReference(model, rounded=True), [case.inputs for case in cases])
    for name, each in doubtful.items():
        rounding = errors_of(name, again, cases, tolerance).library
        if not believable(each.onnxruntime, rounding, tolerance * each.range):
            raise NoDouble(
                f"output '{name}' differs from the reference's by {each.onnxruntime.largest / each.range:.1e} of the "
                f"range, and rounding explains {rounding.largest / each.range:.1e}"
            )


def _counts_anyway(reference: Distance, scale: float, tolerance: float) -> bool:
    return believable(reference, Distance(), _MARGIN * tolerance * scale)


def _refuse_nan(cases: list[Case]) -> None:
    """Raise ModelError for an output that is NaN throughout: maxima and the like may propagate NaN or not."""
    for name in cases[0].expected:
        if all(is_nan(case.expected[name]) for case in cases):
            raise ModelError(
                f"ONNX Runtime computes nothing but NaN for the output '{name}', so the library cannot be verified.",
                "Fix an input to a useful value with --fix, or export the model again with finite weights.",
            )
