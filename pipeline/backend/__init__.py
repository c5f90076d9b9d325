"""Run ONNX models and suites on passfit: a backend as `onnx.backend.base` defines it.

    backend_test = onnx.backend.test.BackendTest(passfit.backend, __name__)

Models are compiled for this machine by a short fixed sequence, without search or comparison: the suite compares.
"""

from __future__ import annotations

from .adapter import Backend, PreparedModel, Unsupported
from .worker import BackendCrash

is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device

__all__ = [
    "Backend", "BackendCrash", "PreparedModel", "Unsupported", "is_compatible", "prepare", "run_model", "run_node",
    "supports_device",
]  # fmt: skip
