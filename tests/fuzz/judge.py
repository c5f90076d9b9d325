"""Verdicts: what became of a case, and how far its outputs are from those expected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import numpy_helper

from passfit.frontend.canonical.ports.values import NARROW
from passfit.verify.integers.random_rounding import RandomRounding

from .cases import Case
from .reference import expected, second_opinions

#: allowed difference, relative to the largest finite value of an output
TOLERANCE = {"float16": 5e-3, "bfloat16": 3e-2, "float32": 1e-4, "float64": 1e-4}
#: the same for quantised networks, and those of float16: a rounding in an early layer moves later ones by a few steps of 1/255
STEPS = 0.03
ROUNDED = ("qdq", "mixed", "half", "islands", "calibrated")
QUANTISED = ("qdq", "mixed", "calibrated")
#: kinds of networks: `mixed` leaves some layers of a quantised one in float, `islands` some of a float16 one in float32, `calibrated` is
#: quantised as `passfit quantize` does
NETWORKS = ("float", *ROUNDED)
#: draws of inputs that move by last places, or of roundings, and times that a library may be as far away as the farthest of them
_MOVES, _MOVED = 4, 4.0
#: last places of the largest pixel by which a resized or sampled one may differ
_PLACES = 8
#: `disputed`: where the library differs from ONNX Runtime it agrees with another opinion; or the question is open, see `_OPEN`;
#: `slow`: splits take far longer than predicted, beside the unsplit self
VERDICTS = ("ok", "disputed", "illegal", "refused", "unclear", "slow", "wrong", "crash", "hang")
#: verdicts that are faults
FAULTS = ("unclear", "slow", "wrong", "crash", "hang")
#: operators by the operands for which ONNX leaves the result open, and ONNX Runtime's depends on dtype, rank or order
_OPEN = {
    "NaN": (
        np.isnan,
        "DynamicQuantizeLinear Hardmax MaxPool QuantizeLinear ReduceMax ReduceMin RoiAlign ScatterElements ScatterND",
    ),
    "an infinity": (np.isinf, "ConvTranspose DynamicQuantizeLinear GlobalMaxPool MaxPool QuantizeLinear RoiAlign"),
    "integers that floats round": (lambda values: np.abs(values) > 2**53, "ReduceL2 ReduceLogSumExp ReduceMean"),
}
#: signs of a refusal that shows its inside: build paths, dumps, assertions
_DUMP = re.compile(
    r"\.(cc|h|py|cpp):\d|Traceback|/tmp/|InternalError|Check failed|AssertionError|T\.|R\.|0x[0-9a-f]{6}"
)


@dataclass(frozen=True)
class Result:
    """End of a case by its seed: one of VERDICTS, with the reason if it is not `ok`."""

    seed: int
    title: str
    verdict: str
    reason: str = ""

    @property
    def line(self) -> str:
        """Return the result in one line."""
        return f"{self.verdict:8} {self.seed:7} {self.title:24} {self.reason[:180]}"

    @property
    def kind(self) -> str:
        """Return the reason without names and numbers: equal for faults of one class."""
        return re.sub(r"\d+", "N", re.sub(r"'[^']*'", "'…'", self.reason))[:160]


def refusal(seed: int, title: str, text: str) -> Result:
    """Judge a refusal by its text."""
    return Result(seed, title, "unclear" if "\n" in text or _DUMP.search(text) else "refused", text)


def judge(seed: int, case: Case, outputs: Sequence[np.ndarray]) -> Result:
    """Compare the outputs of a library with those expected."""
    loosest = STEPS if case.title in ROUNDED else 0.0
    # libraries return numbers of few bits in wider dtypes
    outputs = [
        found.astype(wanted.dtype) if wanted.dtype.name in NARROW else found
        for found, wanted in zip(outputs, case.outputs, strict=True)
    ]
    reason = difference(outputs, case.outputs, loosest)
    if not reason or _is_rounding(case, outputs) or _is_within_moves(case, outputs):
        return Result(seed, case.title, "ok")
    if not _differs_from_all(outputs, [case.outputs, *second_opinions(case.model, case.inputs)], loosest):
        return Result(seed, case.title, "disputed", reason)
    question = _open_question(case)
    return Result(
        seed, case.title, "disputed" if question else "wrong", f"{reason}; {question}" if question else reason
    )


def _is_rounding(case: Case, outputs: Sequence[np.ndarray]) -> bool:
    """Tell whether a pixel differs by last places of the pixels it was made of, which may cancel."""
    node, found, wanted = case.model.graph.node[0], outputs[0], case.outputs[0]
    picture = case.inputs.get(node.input[0])
    if len(case.model.graph.node) != 1 or node.op_type not in ("GridSample", "Resize", "Upsample") or picture is None:
        return False
    if (
        picture.dtype.kind != "f"
        or (found.shape, found.dtype) != (wanted.shape, wanted.dtype)
        or not np.isfinite([*found.flat, *wanted.flat]).all()
    ):
        return False
    most = _PLACES * np.finfo(picture.dtype).eps * np.abs(picture[np.isfinite(picture)]).max(initial=0)
    return bool((np.abs(found.astype(np.float64) - wanted) <= most).all())


def _is_within_moves(case: Case, outputs: Sequence[np.ndarray]) -> bool:
    """Tell whether a network differs no more than ONNX Runtime from itself, on inputs that move by last places, or roundings by units.

    Softmaxes of one another's large numbers multiply each rounding; so do products of quantised ones.
    """
    if case.title not in NETWORKS or any(one.shape != other.shape for one, other in zip(outputs, case.outputs)):
        return False
    farthest = [0.0] * len(outputs)
    for moved in _moved_outputs(case):
        apart = [_largest(one, other) for one, other in zip(moved, case.outputs)]
        farthest = [max(pair) for pair in zip(farthest, apart)]
    return all(_largest(found, wanted) <= _MOVED * most for found, wanted, most in zip(outputs, case.outputs, farthest))


def _moved_outputs(case: Case) -> Iterator[Sequence[np.ndarray]]:
    """Yield ONNX Runtime's outputs of draws: of other roundings for networks of integers, of other inputs for others."""
    if case.title in QUANTISED:
        noisy, names = RandomRounding(case.model), [value.name for value in case.model.graph.output]
        for draw in range(_MOVES):
            outputs = noisy(case.inputs, draw)
            yield [outputs[name] for name in names]
        return
    random = np.random.default_rng(0)
    for _ in range(_MOVES):
        moved = {
            name: (value * (1 + np.finfo(value.dtype).eps * random.uniform(-4, 4, value.shape))).astype(value.dtype)
            for name, value in case.inputs.items()
        }
        yield expected(case.model, moved)


def _largest(one: np.ndarray, other: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        apart = np.abs(one.astype(np.float64) - other).max(initial=0.0)
    return float(apart) if np.isfinite(apart) else np.inf


def _open_question(case: Case) -> str:
    """Say which operands of a single operator leave its result open; "" if none do."""
    if len(case.model.graph.node) != 1:
        return ""
    operands = [*case.inputs.values(), *map(numpy_helper.to_array, case.model.graph.initializer)]
    floats = [
        operand.astype(np.float64)
        for operand in operands
        if operand.dtype.kind in "fiu" or operand.dtype.name in NARROW
    ]
    for word, (holds, operators) in _OPEN.items():
        if case.model.graph.node[0].op_type in operators.split() and any(holds(operand).any() for operand in floats):
            return f"its result for {word} is open"
    return ""


def difference(outputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], loosest: float = 0.0) -> str:
    """Return the first difference in words, "" for none; `loosest` is a tolerance that replaces smaller ones."""
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, expected {len(expected)}"
    for number, (found, wanted) in enumerate(zip(outputs, expected)):
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            return f"output {number} is {found.dtype}{list(found.shape)}, expected {wanted.dtype}{list(wanted.shape)}"
        wrong = _differs(found, wanted, loosest)
        if wrong.any():
            place = tuple(int(each[0]) for each in np.nonzero(wrong)) if wrong.ndim else ()
            return (
                f"output {number}: {int(wrong.sum())} of {wrong.size} differ, first {found[place]} for {wanted[place]}"
            )
    return ""


def _differs_from_all(outputs: Sequence[np.ndarray], opinions: Sequence[Sequence[np.ndarray]], loosest: float) -> bool:
    """Tell whether an element is in none of the opinions."""
    for number, found in enumerate(outputs):
        alike = [each[number] for each in opinions if len(each) == len(outputs) and each[number].shape == found.shape]
        wrong = [_differs(found, each, loosest) for each in alike if each.dtype == found.dtype]
        if not wrong or np.logical_and.reduce(wrong).any():
            return True
    return len(outputs) != len(opinions[0])


def _differs(found: np.ndarray, wanted: np.ndarray, loosest: float) -> np.ndarray:
    if wanted.dtype.kind in "biu" or wanted.dtype.name not in TOLERANCE:
        return np.asarray(found != wanted)
    one, other = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.abs(other[np.isfinite(other)])
    usual = finite[finite < 1e4 * max(float(np.median(finite)), 1e-3)] if finite.size else finite
    scale = max(float(usual.max()) if usual.size else 0.0, 1e-6)
    tolerance = max(TOLERANCE[wanted.dtype.name], loosest)
    with np.errstate(all="ignore"):
        near = np.isfinite(other) & (np.abs(one - other) <= tolerance * np.maximum(scale, np.abs(other)))
    both = np.isnan(one) & np.isnan(other)
    return np.asarray(~(near | both | (one == other)))
