"""Judge a quantised model by samples: its loss against the float one, by a metric with labels, else by decisions or errors.

labels           the metric's value of the float model less that of the quantised one
decisions alone  the fraction of samples whose largest score is another one: one output of scores
neither          the mean error of the outputs, relative to their spread over the samples
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..data.decisions import Tensors, find_task
from ..data.metrics import Metric
from ..data.stack import stack
from ..errors import ModelError
from ..frontend.canonical.folding.evaluate import failures_of_runs, first_line, open_session

if TYPE_CHECKING:
    import onnx

AGREEMENT, ERROR = "agreement", "output error"


class Samples(Protocol):
    """The user's samples, as `data.samples` reads them."""

    @property
    def count(self) -> int:
        """Return the number of samples."""

    @property
    def digest(self) -> str:
        """Return the sha256 of their content."""

    @property
    def classes(self) -> Sequence[str]:
        """Return the names of classes, if labels are names."""

    def inputs(self, number: int) -> Mapping[str, np.ndarray]:
        """Return the inputs of a sample by name."""

    def label(self, number: int) -> Any:
        """Return the label of a sample; None if it has none."""


#: chooses the metric by the float model's outputs, the labels, and the names of classes
ChooseMetric = Callable[[Tensors, Sequence[Any], Sequence[str]], Metric]


class Judge:
    """Samples with the float model's outputs; `loss` weighs a quantised model against these.

    `name` is that of the metric, AGREEMENT or ERROR; `reference` its value of the float model.
    """

    def __init__(self, model: onnx.ModelProto, samples: Samples, choose: ChooseMetric | None = None):
        """Run the float model on all samples. Raises ModelError if it does not run there."""
        self._samples, self.count = samples, samples.count
        self._floats = self._outputs(model, samples.count)
        self._labels = [samples.label(number) for number in range(samples.count)]
        labelled = choose is not None and all(label is not None for label in self._labels)
        self._metric = choose(self._floats, self._labels, samples.classes) if choose is not None and labelled else None
        self._task = find_task(self._floats, ())
        decides = self._task.kind == "class" and [each.dtype.kind for each in self._floats.values()] == ["f"]
        unlabelled = AGREEMENT if decides else ERROR
        self.name = unlabelled if self._metric is None else self._metric.name
        self.reference = self._value(self._floats)

    def value(self, model: onnx.ModelProto) -> float:
        """Return the metric of a model on all samples. Raises ModelError if it does not run."""
        return self._value(self._outputs(model, self.count))

    def loss(self, value: float) -> float:
        """Compute the loss of a value against the float model."""
        higher = self.name != ERROR if self._metric is None else self._metric.higher_is_better
        return self.reference - value if higher else value - self.reference

    def error(self, model: onnx.ModelProto, most: int) -> float:
        """Return the error of a model's outputs on up to `most` samples, relative to their deviation over all."""
        return _error(self._floats, self._outputs(model, min(most, self.count)))

    def _value(self, outputs: Tensors) -> float:
        if self._metric is not None:
            return float(self._metric.compute(outputs, self._labels))
        if self.name == ERROR:
            return _error(self._floats, outputs)
        return float(np.mean(self._task.decisions(outputs) == self._task.decisions(self._floats)))

    def _outputs(self, model: onnx.ModelProto, count: int) -> Tensors:
        try:
            session = open_session(model.SerializeToString())
        except failures_of_runs() as error:
            raise ModelError(
                f"ONNX Runtime does not load the model: {first_line(error)}.",
                "Check that it loads the file; if so, quantise in another --form.",
            ) from error
        try:
            names = [each.name for each in session.get_outputs()]
            runs = (session.run(None, dict(self._samples.inputs(number))) for number in range(count))
            return stack((dict(zip(names, values, strict=True)) for values in runs), count)
        except failures_of_runs() as error:
            raise ModelError(
                f"ONNX Runtime cannot run the model on the samples: {first_line(error)}.", "Check the samples' inputs."
            ) from error


def _error(floats: Tensors, others: Tensors) -> float:
    """Return the root of the mean squared error relative to the float values' deviation, the largest over the outputs.

    `others` may be of fewer samples.
    """
    worst = 0.0
    for name, other in others.items():
        exact = floats[name].astype(np.float64)
        wrong = float(np.sqrt(np.mean(np.square(other.astype(np.float64) - exact[: len(other)]))))
        spread = float(np.std(exact))
        worst = max(worst, wrong / spread if spread else float(wrong > 0))
    return worst
