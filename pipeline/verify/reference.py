"""Run a model in ONNX Runtime, by default without its optimisations, as the reference for a library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ModelError
from .integers.equal_signs import with_equal_signs

if TYPE_CHECKING:
    import onnx


class Reference:
    """Model in ONNX Runtime, on one thread; `optimized` lets it fuse and reorder."""

    def __init__(self, model: onnx.ModelProto, *, optimized: bool = False):
        """Load the model. Raises ModelError if ONNX Runtime rejects it."""
        import onnxruntime

        level = onnxruntime.GraphOptimizationLevel
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # errors are raised as exceptions
        self._names = [value.name for value in model.graph.output]
        with _failures_named():
            self._session = onnxruntime.InferenceSession(
                with_equal_signs(model).SerializeToString(), options, providers=["CPUExecutionProvider"]
            )

    def __call__(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Compute the outputs by name. Raises ModelError if the model cannot run on `inputs`."""
        with _failures_named():
            return dict(zip(self._names, self._session.run(self._names, inputs), strict=True))


@contextmanager
def _failures_named() -> Iterator[None]:
    from onnxruntime.capi import onnxruntime_pybind11_state as ort

    try:
        yield
    except (ort.Fail, ort.InvalidArgument, ort.InvalidGraph, ort.NotImplemented, ort.RuntimeException) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelError(
            f"ONNX Runtime cannot run the model, so the library cannot be verified: {reason}", "Correct the model."
        ) from error
