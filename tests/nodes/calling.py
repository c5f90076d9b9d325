"""A compiled library, called from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np

from passfit.codegen.library import Library
from passfit.program import Program
from passfit.verify.runner import numpy_dtype


def call(library: Library, program: Program, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs by name. The library must have been built for this host."""
    loaded = ctypes.CDLL(str(library.shared))
    place = {kind: getattr(loaded, f"{library.name}_{kind}") for kind in ("input", "output")}
    for function in place.values():
        function.argtypes, function.restype = [ctypes.c_int], ctypes.c_void_p
    error = getattr(loaded, f"{library.name}_error")
    error.restype = ctypes.c_char_p
    for number, port in enumerate(program.inputs):
        tensor = program.tensors[port.tensor]
        value = np.asarray(inputs[port.name], order="C")
        assert (value.shape, value.dtype) == (tensor.shape, numpy_dtype(tensor.dtype)), port.name
        ctypes.memmove(place["input"](number), value.ctypes.data, value.nbytes)
    assert getattr(loaded, f"{library.name}_run")() == 0, error()
    results = {}
    for number, port in enumerate(program.outputs):
        tensor = program.tensors[port.tensor]
        results[port.name] = np.empty(tensor.shape, numpy_dtype(tensor.dtype))
        ctypes.memmove(results[port.name].ctypes.data, place["output"](number), results[port.name].nbytes)
    return results
