"""Leave layers in float, most sensitive first, until the loss holds.

all layers in int8 ─► holds: done
         └─► each layer alone in int8: its error ─► 1, 2, 4 … worst in float ─► fewest that hold, by bisection
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ModelError
from ..support.progress import Progress
from .judge import Judge
from .quantiser import Quantiser

if TYPE_CHECKING:
    import onnx

#: samples and models that tell how sensitive layers are; neighbours are tried together in graphs of more layers
_SAMPLES, _TRIED = 16, 96


@dataclass(frozen=True)
class Point:
    """Quantised model of the curve: the layers left in float, its metric and its loss."""

    model: onnx.ModelProto
    floats: tuple[str, ...]
    value: float
    loss: float


@dataclass(frozen=True)
class Sensitivity:
    """Layers tried together, and the output error with only them in int8."""

    layers: tuple[str, ...]
    error: float


@dataclass(frozen=True)
class Curve:
    """Points by the number of layers left in float, the one taken, and the layers' errors, worst first."""

    points: tuple[Point, ...]
    taken: Point
    sensitivities: tuple[Sensitivity, ...] = ()


def leave_in_float(quantiser: Quantiser, judge: Judge, most: float, progress: Progress) -> Curve:
    """Find the fewest layers, worst first, to leave in float for a loss of at most `most`.

    Raises ModelError where even the one that keeps a single group of layers in int8 loses more.
    """
    if not quantiser.layers:
        raise ModelError("The model has no layer that becomes int8.", "Compile it as it is.")
    whole = _point(quantiser, judge, ())
    if whole.loss <= most:
        return Curve((whole,), whole)
    found = sensitivities(quantiser, judge, progress)
    known = {0: whole}

    def left(groups: int) -> Point:
        if groups not in known:
            progress("quantising, layers left in float", groups, len(found))
            known[groups] = _point(quantiser, judge, [name for each in found[:groups] for name in each.layers])
        return known[groups]

    groups = _fewest(lambda number: left(number).loss <= most, len(found))
    points = tuple(known[number] for number in sorted(known))
    if groups == len(found):
        best = min(points, key=lambda each: each.loss)
        raise ModelError(
            f"No choice of int8 layers that was tried is within a loss of {most:g} of {judge.name}: the least is {best.loss:.4g}.",
            "Allow more by --max-accuracy-loss, give more samples, or train the model for it.",
        )
    return Curve(points, known[groups], tuple(found))


def sensitivities(quantiser: Quantiser, judge: Judge, progress: Progress) -> list[Sensitivity]:
    """Measure the layers' errors, each alone in int8, worst first; equal ones stay in the order of the graph."""
    names = quantiser.layers
    size = -(-len(names) // _TRIED) or 1
    found = []
    for start in range(0, len(names), size):
        progress("measuring layers in int8", start, len(names))
        group = tuple(names[start : start + size])
        model = quantiser.quantise([name for name in names if name not in group])
        found.append(Sensitivity(group, judge.error(model, _SAMPLES)))
    return sorted(found, key=lambda each: -each.error)


def _fewest(holds: Callable[[int], bool], most: int) -> int:
    """Return the least number up to `most` that holds, as far as doubling and bisection find it; `most` is not asked."""
    low, high = 0, 1
    while high < most and not holds(high):
        low, high = high, 2 * high
    high = min(high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _point(quantiser: Quantiser, judge: Judge, floats: Sequence[str]) -> Point:
    model = quantiser.quantise(floats)
    value = judge.value(model)
    return Point(model, tuple(floats), value, judge.loss(value))
