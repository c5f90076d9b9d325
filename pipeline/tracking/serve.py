"""Define the registered model: MLflow runs this file ("models from code") to serve a compiled library on the host.

It is copied into the MLflow model, so it imports nothing of passfit, and no TVM: NumPy and the library are enough.
"""

from __future__ import annotations

import ctypes
import threading

import numpy as np
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel, PythonModelContext


class CompiledLibrary(PythonModel):
    """Call the library's `<name>_input`, `<name>_run`, `<name>_output`; the model config holds `io` of manifest.json.

    The library has one static arena, so calls take turns.
    """

    def load_context(self, context: PythonModelContext) -> None:
        io = context.model_config["io"]
        self._inputs, self._outputs = io["inputs"], io["outputs"]
        library = ctypes.CDLL(context.artifacts["library"])
        self._input = getattr(library, f"{io['name']}_input")
        self._output = getattr(library, f"{io['name']}_output")
        self._run = getattr(library, f"{io['name']}_run")
        self._error = getattr(library, f"{io['name']}_error")
        for pointer in (self._input, self._output):
            pointer.argtypes, pointer.restype = [ctypes.c_int], ctypes.c_void_p
        self._run.argtypes, self._run.restype = [], ctypes.c_int32
        self._error.argtypes, self._error.restype = [], ctypes.c_char_p
        self._turn = threading.Lock()

    # MLflow hands over a dict of arrays, or the array itself where there is one input; it warns about any hint that is
    # not one of its own, and a dict is none
    def predict(self, context: PythonModelContext, model_input: np.ndarray, params=None):
        """Compute every output by name, from every input by name; static shapes and dtypes, as in the signature."""
        arrays = [_check(model_input, port, alone=len(self._inputs) == 1) for port in self._inputs]
        with self._turn:
            for i, array in enumerate(arrays):
                ctypes.memmove(self._input(i), array.ctypes.data, array.nbytes)
            code = self._run()
            if code != 0:
                reason = self._error() or b"no reason given"
                raise RuntimeError(f"the library failed with code {code}: {reason.decode(errors='replace')}")
            return {port["name"]: self._copy(i, port) for i, port in enumerate(self._outputs)}

    def _copy(self, i: int, port: dict) -> np.ndarray:
        array = np.empty(port["shape"], port["dtype"])
        ctypes.memmove(array.ctypes.data, self._output(i), array.nbytes)
        return array


def _check(model_input, port: dict, alone: bool) -> np.ndarray:
    """Return the input `port` as a contiguous array: the library reads exactly its bytes.

    Raises ValueError for a missing input or another shape.
    """
    given = model_input
    if hasattr(model_input, "keys"):
        if port["name"] not in model_input:
            raise ValueError(f"input '{port['name']}' is missing")
        given = model_input[port["name"]]
    elif not alone:
        raise ValueError("the model has several inputs: give them by name")
    array = np.asarray(given, dtype=port["dtype"], order="C")  # np.ascontiguousarray makes a scalar a vector
    if array.shape != tuple(port["shape"]):
        raise ValueError(f"input '{port['name']}' is {list(array.shape)}, the library takes {port['shape']}")
    return array


set_model(CompiledLibrary())
