"""Quantise a model by samples, and record how: the curve of accuracy against sizes, the point taken, layers left in float."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..data.samples import spread
from ..errors import ConfigError, ModelError, did_you_mean
from ..frontend.quantised.float_twin import has_numbers
from ..support.progress import Progress, silent
from ..support.sizes import format_pair
from .judge import ChooseMetric, Judge, Samples
from .mixed import Curve, Point, leave_in_float
from .prepare import CHANNELS, prepare
from .quantiser import MOVES, Quantiser
from .weights import BLOCKS, narrow_weights, to_halves

if TYPE_CHECKING:
    import numpy as np
    import onnx

#: forms of a quantised model
FORMS = INT8, FLOAT16, INT8_WEIGHTS, INT4_WEIGHTS = ("int8", "float16", "int8-weights", "int4-weights")
#: forms of inputs and outputs
PORTS = ("float", "int8")
#: points of a curve that are lowered for their sizes: each takes seconds
_SIZED = 6
FLOAT_POINT = "float"


@dataclass(frozen=True)
class QuantiseSettings:
    """Settings of a quantisation: `form` is one of FORMS, `method` one of `quantiser.METHODS`, `io` one of PORTS.

    `samples` calibrate at most, spread over all. `max_loss` is that of the metric.
    """

    form: str = INT8
    method: str = "minmax"
    samples: int = 128
    max_loss: float = 0.01
    io: str = "float"

    def __post_init__(self) -> None:
        """Raise ConfigError for a setting that is none."""
        for name, value, known in (("form", self.form, FORMS), ("io", self.io, PORTS)):
            if value not in known:
                raise ConfigError(f"quantize: {name} is '{value}'.", did_you_mean(value, known))
        if self.samples < 1 or not self.max_loss >= 0:
            raise ConfigError(
                f"quantize: samples {self.samples}, max-accuracy-loss {self.max_loss:g}.",
                "Give a sample at least, and a loss of 0 or more.",
            )
        if self.io == "int8" and self.form != INT8:
            raise ConfigError(
                f"quantize: io is int8, form is {self.form}.",
                "Only the form int8 has inputs of integers: leave io out.",
            )


@dataclass(frozen=True)
class CurvePoint:
    """Point of the curve of accuracy against sizes; `floats` layers stay in float.

    `ram` and `flash` are predicted, in bytes; None where no sizes were asked for, or the model cannot be compiled.
    """

    name: str
    floats: int
    value: float
    loss: float
    ram: int | None = None
    flash: int | None = None
    taken: bool = False


@dataclass(frozen=True)
class FloatLayer:
    """Layer left in float, and why."""

    layer: str
    operator: str
    why: str


@dataclass(frozen=True)
class Quantised:
    """Quantised model with the record of how it came to be: the content of quantize.json.

    `metric` is the name of what the values are, `judged` the number of samples behind them, `calibrated` of those behind ranges.
    """

    model: onnx.ModelProto
    settings: QuantiseSettings
    metric: str
    judged: int
    calibrated: int
    digest: str
    target: str | None
    points: tuple[CurvePoint, ...]
    floats: tuple[FloatLayer, ...]

    @property
    def taken(self) -> CurvePoint:
        """Return the point of the model."""
        return next(each for each in self.points if each.taken)

    def to_json(self) -> dict[str, Any]:
        """Return the fields of quantize.json."""
        return {
            "form": self.settings.form,
            "method": self.settings.method if self.calibrated else None,
            "io": self.settings.io,
            "max_accuracy_loss": self.settings.max_loss,
            "metric": self.metric,
            "data": {"digest": self.digest, "samples": self.judged, "calibrated": self.calibrated},
            "target": self.target,
            "points": [asdict(each) for each in self.points],
            "layers_in_float": [asdict(each) for each in self.floats],
        }


#: ram and flash of a model's library in bytes; None if it cannot be compiled
Sizes = Callable[["onnx.ModelProto"], "tuple[int, int] | None"]


def quantise_model(
    given: onnx.ModelProto,
    samples: Samples,
    settings: QuantiseSettings = QuantiseSettings(),
    choose: ChooseMetric | None = None,
    sizes: Sizes | None = None,
    target: str | None = None,
    progress: Progress = silent,
    calibration: Samples | None = None,
) -> Quantised:
    """Quantise a float model with static inputs; `sizes` predicts those of the points of its curve on `target`.

    `calibration` are other samples for the ranges. Raises ModelError for a model that is quantised already, that the quantiser cannot
    take, that loses more than allowed in every way, or gains nothing by `sizes`.
    """
    if has_numbers(given):
        raise ModelError("The model is quantised already.", "Give its float form.")
    prepared = prepare(given, BLOCKS if settings.form in (INT8_WEIGHTS, INT4_WEIGHTS) else CHANNELS)
    judge = Judge(given, samples, choose)
    calibrated = 0
    if settings.form == INT8:
        ranged = calibration or samples
        calibrated = min(ranged.count, settings.samples)
        quantiser = Quantiser(prepared, calibrated_on(ranged, calibrated), settings.method)
        curve = leave_in_float(quantiser, judge, settings.max_loss, progress)
        floats = _left(quantiser, curve)
    else:
        narrow = to_halves(prepared) if settings.form == FLOAT16 else _narrow(prepared, settings.form)
        value = judge.value(narrow)
        point = Point(narrow, (), value, judge.loss(value))
        if point.loss > settings.max_loss:
            raise ModelError(
                f"The form {settings.form} loses {point.loss:.4g} of {judge.name}, more than {settings.max_loss:g}.",
                "Allow more by --max-accuracy-loss, or take a wider form.",
            )
        curve, floats = Curve((point,), point), ()
    found = Quantised(
        curve.taken.model, settings, judge.name, judge.count, calibrated, samples.digest, target,
        _measured(given, judge, curve, settings.form, sizes, progress), floats,
    )  # fmt: skip
    _check_gain(found)
    return found


def _check_gain(found: Quantised) -> None:
    """Raise ModelError where neither ram nor flash is smaller on the target."""
    floats, taken = found.points[0], found.taken
    pairs = [("ram", taken.ram, floats.ram), ("flash", taken.flash, floats.flash)]
    sizes = [(name, now, before) for name, now, before in pairs if now is not None and before is not None]
    if sizes and all(now >= before for _, now, before in sizes):
        said = ", ".join(f"{name} {' instead of '.join(format_pair(now, before))}" for name, now, before in sizes)
        raise ModelError(
            f"The model in {taken.name} gains nothing on {found.target}: {said}, predicted.",
            "Leave it in float there, or predict for another target: --target, or the first one of params.yaml.",
        )


def calibrated_on(samples: Samples, most: int) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield the inputs of up to `most` samples, spread over all."""
    return map(samples.inputs, spread(samples.count, most))


def _narrow(prepared: onnx.ModelProto, form: str) -> onnx.ModelProto:
    narrowed = narrow_weights(prepared, 8 if form == INT8_WEIGHTS else 4)
    if len(narrowed.graph.node) == len(prepared.graph.node):
        raise ModelError("No layer has weights that are worth narrowing.", "Take --form int8 or float16.")
    return narrowed


def _left(quantiser: Quantiser, curve: Curve) -> tuple[FloatLayer, ...]:
    """Return the layers of the point taken that compute on floats, with the reason: their loss, or their operator."""
    errors = {name: each for each in curve.sensitivities for name in each.layers}
    found = []
    for node in quantiser.model.graph.node:
        if node.name in curve.taken.floats:
            said = errors[node.name]
            together = "" if len(said.layers) == 1 else f", with {len(said.layers) - 1} layers beside it"
            why = f"alone in int8{together}, outputs are off by {said.error:.2g} of their deviation"
        elif (
            node.op_type not in quantiser.operators and node.op_type not in MOVES and not _is_about_shapes(node.op_type)
        ):
            why = "onnxruntime's quantiser does not take the operator"
        else:
            continue
        found.append(FloatLayer(node.name, node.op_type, why))
    return tuple(found)


def _is_about_shapes(operator: str) -> bool:
    return operator in ("Cast", "Constant", "ConstantOfShape", "Identity", "Range", "Shape", "Size")


def _measured(
    given: onnx.ModelProto, judge: Judge, curve: Curve, form: str, sizes: Sizes | None, progress: Progress
) -> tuple[CurvePoint, ...]:
    """Build the points of a curve behind the float model, with sizes of a few: both ends, the one taken, others between."""
    points = curve.points
    sized = {0, len(points) - 1, points.index(curve.taken)}
    sized |= set(spread(len(points), max(0, _SIZED - len(sized)) or 1))
    found = [CurvePoint(FLOAT_POINT, 0, judge.reference, 0.0, *_sizes(given, sizes))]
    for number, each in enumerate(points):
        progress("predicting sizes", number, len(points))
        name = form if not each.floats else f"{form}, {len(each.floats)} in float"
        predicted = _sizes(each.model, sizes if number in sized else None)
        found.append(CurvePoint(name, len(each.floats), each.value, each.loss, *predicted, taken=each is curve.taken))
    return tuple(found)


def _sizes(model: onnx.ModelProto, sizes: Sizes | None) -> tuple[int | None, int | None]:
    predicted = None if sizes is None else sizes(model)
    return (None, None) if predicted is None else predicted
