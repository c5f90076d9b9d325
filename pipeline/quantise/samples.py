"""Open the user's samples for a model, and choose the metric over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..data.decisions import Tensors, find_task
from ..data.metrics import Metric, check_metric, find_metric
from ..data.samples import Samples
from ..frontend.canonical.folding.evaluate import open_session
from ..frontend.canonical.ports.apply import file_form_model
from .judge import ChooseMetric

if TYPE_CHECKING:
    import numpy as np
    import onnx


class FileSamples:
    """Samples given in the form of the file, in the form of the device's ports: a quantiser takes the file without them."""

    def __init__(self, samples: Samples, ported: onnx.ModelProto):
        """Take samples for the model with ports."""
        self._samples, self.count, self.digest = samples, samples.count, samples.digest
        self.classes, self.label = samples.classes, samples.label
        models = {value.name: file_form_model(ported, value.name) for value in ported.graph.input}
        self._sessions = {
            name: open_session(each.SerializeToString()) for name, each in models.items() if each is not None
        }

    def inputs(self, number: int) -> dict[str, np.ndarray]:
        """Return the inputs of a sample by name, as the file takes them."""
        given = self._samples.inputs(number)
        return given | {name: session.run(None, {name: given[name]})[0] for name, session in self._sessions.items()}


def choose_metric(name: str | None) -> ChooseMetric:
    """Return the choice of a metric by name, by default by the outputs and labels."""
    check_metric(name)

    def choose(outputs: Tensors, labels: Sequence[Any], classes: Sequence[str]) -> Metric:
        task = find_task(outputs, labels)
        task.check_names(outputs, classes)
        return find_metric(name, task)

    return choose
