"""Judge a quantised model by samples: its loss against the float one, by a metric with labels, else by decisions or errors.

    labels           the metric's value of the float model less that of the quantised one
    decisions alone  the fraction of samples whose largest score is another one: one output of scores
    neither          the mean error of the outputs, relative to their spread over the samples
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import ModelError
from ..frontend.canonical.folding.evaluate import first_line, open_session

if TYPE_CHECKING:
    import onnx

#: scores at least, for the largest to be a decision
_CLASSES = 2
AGREEMENT, ERROR = "agreement", "output error"


class Samples(Protocol):
    """The user's samples, as `data.samples` reads them."""

    @property
    def count(self) -> int:
        """Return the number of samples."""

    @property
    def digest(self) -> str:
        """Return the sha256 of their content."""

    def inputs(self, number: int) -> Mapping[str, np.ndarray]:
        """Return the inputs of a sample by name."""

    def label(self, number: int) -> Any:
        """Return the label of a sample; None if it has none."""


@dataclass(frozen=True)
class Metric:
    """Metric over the outputs of all samples and their labels."""

    name: str
    value: Callable[[Sequence[Sequence[np.ndarray]], Sequence[Any]], float]
    higher_is_better: bool = True


class Judge:
    """Samples with the float model's outputs; `loss` weighs a quantised model against these.

    `name` is that of the metric, AGREEMENT or ERROR; `reference` its value of the float model.
    """

    def __init__(self, model: onnx.ModelProto, samples: Samples, metric: Metric | None = None):
        """Run the float model on all samples. Raises ModelError if it does not run there."""
        self._samples, self._metric = samples, metric
        self._floats = list(self._outputs(model, samples.count))
        self._labels = [samples.label(number) for number in range(samples.count)]
        decides = all(_scores(outputs) is not None for outputs in self._floats)
        self.labelled = metric is not None and all(label is not None for label in self._labels)
        self.name = metric.name if metric is not None and self.labelled else AGREEMENT if decides else ERROR
        self.reference = self._value(self._floats)

    @property
    def count(self) -> int:
        """Return the number of samples."""
        return len(self._floats)

    def value(self, model: onnx.ModelProto) -> float:
        """Return the metric of a model on all samples. Raises ModelError if it does not run."""
        return self._value(list(self._outputs(model, self.count)))

    def loss(self, value: float) -> float:
        """Return how much worse a value is than that of the float model."""
        higher = self._metric.higher_is_better if self._metric is not None and self.labelled else self.name != ERROR
        return self.reference - value if higher else value - self.reference

    def error(self, model: onnx.ModelProto, most: int) -> float:
        """Return the error of a model's outputs on the first `most` samples, relative to their spread."""
        return _error(self._floats[:most], list(self._outputs(model, min(most, self.count))))

    def _value(self, outputs: list[list[np.ndarray]]) -> float:
        if self._metric is not None and self.labelled:
            return float(self._metric.value(outputs, self._labels))
        if self.name == ERROR:
            return _error(self._floats, outputs)
        same = [_decision(one) == _decision(other) for one, other in zip(self._floats, outputs, strict=True)]
        return sum(same) / len(same)

    def _outputs(self, model: onnx.ModelProto, count: int) -> Iterator[list[np.ndarray]]:
        from onnxruntime.capi import onnxruntime_pybind11_state as ort

        try:
            session = open_session(model.SerializeToString())
            for number in range(count):
                yield [np.asarray(each) for each in session.run(None, dict(self._samples.inputs(number)))]
        except (ort.Fail, ort.InvalidArgument, ort.InvalidGraph, ort.NotImplemented, ort.RuntimeException) as error:
            raise ModelError(
                f"ONNX Runtime cannot run the model on the samples: {first_line(error)}.", "Check the samples' inputs."
            ) from error


def _scores(outputs: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return the scores of classes, if that is all that a model gives."""
    if len(outputs) != 1 or outputs[0].dtype.kind != "f":
        return None
    scores = outputs[0].reshape(-1)
    return scores if scores.size >= _CLASSES and outputs[0].shape[-1:] == scores.shape else None


def _decision(outputs: Sequence[np.ndarray]) -> int:
    scores = _scores(outputs)
    assert scores is not None
    return int(np.argmax(scores))


def _error(floats: Sequence[Sequence[np.ndarray]], others: Sequence[Sequence[np.ndarray]]) -> float:
    """Return the largest, over outputs, of the root of the mean squared error, relative to the float values' deviation."""
    worst = 0.0
    for one, other in zip(zip(*floats, strict=True), zip(*others, strict=True), strict=True):
        exact, given = (np.stack(each).astype(np.float64) for each in (one, other))
        wrong = np.sqrt(np.mean(np.square(given - exact)))
        spread = float(np.std(exact))
        worst = max(worst, float(wrong / spread) if spread else float(wrong > 0))
    return worst
