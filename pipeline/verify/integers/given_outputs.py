"""Compare a quantised model's library with the file as given: within its rounding, in units, and by decisions.

    file as given ─► ONNX Runtime, as written           ─► outputs ─┐
    the same      ─► rounded at random, a unit a layer  ─► allowed ─┼─► refused, or units apart and decisions that agree
    canonical     ─► library                            ─► outputs ─┘

The file computes its layers in floats between integers, or its vendor's operators round in another way; the library
computes them in integers, and equals its canonical model (`cases`). A few units apart are not an error; a wrong layer is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...errors import NumericError
from ...frontend.canonical.ports.integers import MOVES, last_nodes, scale_at
from ...frontend.canonical.shapes import constant_tensors
from ...frontend.quantised.float_twin import multiplications
from ...memory.measured import GivenAgreement, OutputAgreement
from ..error_bounds import Distance, differences, output_range
from ..inputs import InputDraws
from ..reference import NoReference, Reference
from .exact_integers import is_quantised
from .random_rounding import RandomRounding

if TYPE_CHECKING:
    import onnx

#: seed of the inputs
_SEED = 0
#: least and most cases, and the multiplications of all together
_CASES, _MOST_CASES, _WORK = 3, 32, 200_000_000
#: draws of noise, and the first cases they are evaluated on
_DRAWS, _NOISY = 3, 3
#: largest ratio of a library's distance to that of the noise, a unit at each layer for half of the numbers
_SLACK = 2.0

Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class GivenOutputs:
    """Hold a given model's outputs, by case and name.

    `inputs` are those of each case, `units` the value of one unit of an output: 1 for integers, the scale of a
    dequantised float; None for other floats. `allowed` is the largest distance of a right library, by output. Without
    cases, `unknown` says why.
    """

    inputs: tuple[Tensors, ...]
    outputs: tuple[Tensors, ...]
    units: dict[str, float | None]
    allowed: dict[str, Distance]
    unknown: str = ""

    def agreement(self, outputs: Sequence[Mapping[str, np.ndarray]]) -> GivenAgreement:
        """Compare the outputs of a library for `inputs`.

        Raises NumericError where they are further from the file's than its rounding explains.
        """
        found = []
        for name, unit in self.units.items():
            given, own = (np.concatenate([_rows(case[name]) for case in cases]) for cases in (self.outputs, outputs))
            if given.dtype.kind not in "iub" or given.dtype.itemsize == 1:  # an index may move far by a unit
                self._check(name, given, own)
            found.append(_compare(name, given, own, unit))
        return GivenAgreement(len(self.outputs), tuple(found))

    def _check(self, name: str, given: np.ndarray, own: np.ndarray) -> None:
        """Refuse an output that is too far from the file's."""
        distance, limit = Distance.of(differences(own, given)), self.allowed[name]
        if distance.within(limit):
            return
        raise NumericError(
            f"The library and the model as given differ in output '{name}': the largest error is {distance.largest:.3g} "
            f"and its root mean square {distance.rms:.3g}; rounding each layer by a unit explains {limit.largest:.3g} and "
            f"{limit.rms:.3g}.",
            "Report the model: an import has changed it.",
        )


def given_outputs(canonical: onnx.ModelProto, given: onnx.ModelProto | None, tolerance: float) -> GivenOutputs | None:
    """Evaluate the file's model on seeded inputs, plain and with noise.

    `tolerance` is a fraction of an output's range. Returns None for a model without integers, and without a file.
    """
    if given is None or not is_quantised(canonical):
        return None
    draws = InputDraws(given)
    inputs = tuple(draws.draw(_SEED, number) for number in range(_count(canonical)))
    try:
        reference = Reference(given)
        outputs = tuple(map(reference, inputs))
    except NoReference as error:
        return GivenOutputs((), (), {}, {}, error.what)
    units = {name: unit_of(canonical, name, value.dtype) for name, value in outputs[0].items()}
    try:
        allowed = _allowed_distances(given, inputs, outputs, units, tolerance)
    except NoReference as error:
        return GivenOutputs((), (), {}, {}, f"its copy with other roundings, which passfit makes, fails: {error.what}")
    return GivenOutputs(inputs, outputs, units, allowed)


def _allowed_distances(
    given: onnx.ModelProto,
    inputs: Sequence[Tensors],
    outputs: Sequence[Tensors],
    units: dict[str, float | None],
    tolerance: float,
) -> dict[str, Distance]:
    """Return the largest distance of each output that rounding at random explains."""
    farthest = dict.fromkeys(units, Distance())
    noisy = RandomRounding(given)
    for draw in range(_DRAWS):
        for own, plain in zip(inputs[:_NOISY], outputs[:_NOISY]):
            for name, value in noisy(own, 1 + draw).items():
                farthest[name] = Distance.most([farthest[name], Distance.of(differences(value, plain[name]))])
    allowed = {}
    for name, noise in farthest.items():
        floor = max(units[name] or 0.0, tolerance * output_range([each[name] for each in outputs]))
        allowed[name] = Distance(max(floor, _SLACK * noise.largest), max(floor, _SLACK * noise.rms))
    return allowed


def _count(model: onnx.ModelProto) -> int:
    """Return the number of cases: fewer for a larger model, which an emulator may have to run."""
    return min(max(_CASES, _WORK // max(1, multiplications(model))), _MOST_CASES)


def _rows(value: np.ndarray) -> np.ndarray:
    """Return the value as rows along its last axis."""
    width = value.shape[-1] if value.ndim else 1
    return value.reshape(value.size // max(1, width), width)


def _compare(name: str, given: np.ndarray, own: np.ndarray, unit: float | None) -> OutputAgreement:
    differing = most = None
    if unit is not None:
        apart = np.rint(np.abs(given.astype(np.float64) - own.astype(np.float64)) / unit)
        differing, most = int((apart > 0).sum()), int(apart.max(initial=0))
    if given.shape[1] < 2:
        return OutputAgreement(name, given.size, differing, most)
    same = int((given.argmax(1) == own.argmax(1)).sum())
    return OutputAgreement(name, given.size, differing, most, len(given), same)


def unit_of(model: onnx.ModelProto, output: str, dtype: np.dtype) -> float | None:
    """Return the value of a unit of an output: 1 for integers, the scale of a dequantised float; None for others."""
    if dtype.kind in "iub":
        return 1.0
    path = last_nodes(model.graph, output, MOVES)
    dequantised = path and path[-1].op_type == "DequantizeLinear"
    found = scale_at(path[-1], constant_tensors(model.graph)) if dequantised else None
    return found.scale if found is not None else None
