"""What ONNX Runtime computes, with its own optimisations off: the truth a library is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import ModelError

if TYPE_CHECKING:
    import onnx


def reference_outputs(model: onnx.ModelProto, cases: list[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
    """The outputs by name for each case. Raises ModelError when ONNX Runtime cannot run the model."""
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as ort

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong comes as an exception
    names = [value.name for value in model.graph.output]
    failures = (ort.Fail, ort.InvalidArgument, ort.InvalidGraph, ort.NotImplemented, ort.RuntimeException)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return [dict(zip(names, session.run(names, inputs), strict=True)) for inputs in cases]
    except failures as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelError(
            f"ONNX Runtime cannot run the model, so the library cannot be verified: {reason}", "Correct the model."
        ) from error
