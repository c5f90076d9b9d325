"""Open the user's samples for a model, and choose the metric over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..data.samples import InputForm, Samples, read_samples
from .judge import ChooseMetric, Metric, Tensors

if TYPE_CHECKING:
    import onnx


def samples_of(model: onnx.ModelProto, source: str) -> Samples:
    """Open samples for a model with static inputs. Raises ConfigError."""
    from onnx import helper

    constants = {each.name for each in model.graph.initializer}
    forms = []
    for value in model.graph.input:
        tensor = value.type.tensor_type
        if value.name not in constants:
            shape = tuple(dim.dim_value for dim in tensor.shape.dim)
            forms.append(InputForm(value.name, helper.tensor_dtype_to_np_dtype(tensor.elem_type), shape))
    return read_samples(source, forms)


def choose_metric(name: str | None) -> ChooseMetric:
    """Return the choice of a metric by name, by default by the outputs and labels."""
    from ..data.decisions import find_task
    from ..data.metrics import check_metric, find_metric

    check_metric(name)

    def choose(outputs: Tensors, labels: Sequence[Any]) -> Metric:
        return find_metric(name, find_task(outputs, labels))

    return choose
