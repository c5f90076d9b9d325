"""Run a model's file, or its library, over many samples: few processes, and a bounded memory of inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.samples import Samples
from ..data.stack import stack
from ..errors import ConfigError
from ..support.progress import Progress
from ..verify.linked.program import Linked
from ..verify.reference import NoReference, OnnxReference, Reference

if TYPE_CHECKING:
    import onnx

Tensors = dict[str, np.ndarray]
#: most bytes of the inputs and outputs of a process, and the seconds it shall take
_BYTES, _SECONDS = 128 << 20, 120.0


def load_reference(model: onnx.ModelProto) -> Callable[[Tensors], Tensors]:
    """Load a model into ONNX Runtime, else into ONNX's evaluator. Raises NoReference if neither runs it."""
    try:
        return Reference(model)
    except NoReference as error:
        try:
            return OnnxReference(model)
        except NoReference:
            raise error from None


def run_model(
    model: onnx.ModelProto, samples: Samples, numbers: Sequence[int], title: str, progress: Progress
) -> tuple[Tensors, list[Any]]:
    """Return the outputs of a model on samples, along a first axis, and the labels. Raises ConfigError with the sample that fails."""
    run, labels = load_reference(model), []

    def each() -> Iterator[Tensors]:
        for done, number in enumerate(numbers):
            progress(title, done, len(numbers))
            inputs = samples.inputs(number)
            labels.append(samples.label(number))
            try:
                yield run(inputs)
            except NoReference as error:
                where = f"'{samples.source}', sample {samples.name(number)}"
                raise ConfigError(f"{where}: {error.what}", "Check the values of this sample.") from error

    return stack(each(), len(numbers)), labels


def run_library(linked: Linked, samples: Samples, numbers: Sequence[int], progress: Progress) -> Tensors:
    """Return the outputs of a library on samples, along a first axis. Raises NumericError, ToolchainError.

    The first sample tells how many the next processes take.
    """

    def each() -> Iterator[Tensors]:
        first, size = 0, 1
        while first < len(numbers):
            progress(f"running on {linked.runner.how}", first, len(numbers))
            started = time.monotonic()
            inputs = [samples.inputs(number) for number in numbers[first : first + size]]
            outputs = linked.run(inputs)[1]
            yield from outputs
            took = (time.monotonic() - started) / size
            first += size
            nbytes = sum(value.nbytes for value in (*inputs[0].values(), *outputs[0].values()))
            size = max(1, min(_BYTES // max(nbytes, 1), int(_SECONDS / max(took, 1e-6)), 16 * size))

    return stack(each(), len(numbers))
