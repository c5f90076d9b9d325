"""Bound the sum of all tensors from below, for any passes: inputs read plus distinct outputs.

Execution is the proof. An input counts if an output changes with it: some kernel has to read it. An output counts if
its bytes are neither an input's nor another output's: some kernel has to write it, or it is a constant. No rewriting avoids
either, and the published metric counts both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx

#: sets of inputs to execute the graph on
CASES = 4
#: values are equal within this fraction of the largest one: passes may re-associate sums
TOLERANCE = 1e-3

_Values = dict[str, np.ndarray]


def least_sum(model: onnx.ModelProto) -> int:
    """Count the bytes of inputs and outputs that every program for a canonical model reads or writes.

    Raises ModelError if ONNX Runtime cannot run the model.
    """
    from ..verify.inputs import make_input
    from ..verify.reference import Reference

    reference = Reference(model)
    inputs = [make_input(model, 0, case) for case in range(CASES)]
    outputs = [reference(each) for each in inputs]
    given, made = inputs[0], outputs[0]
    apart: list[str] = []
    for name in made:
        copied = any(_same(outputs, name, inputs, other) for other in given)
        if not copied and not any(_same(outputs, name, outputs, other) for other in apart):
            apart.append(name)
    read = [name for name in given if any(_reads(reference, inputs, outputs, case, name) for case in range(CASES))]
    return sum(made[name].nbytes for name in apart) + sum(given[name].nbytes for name in read)


def _same(some: list[_Values], name: str, others: list[_Values], other: str) -> bool:
    """Return whether two tensors agree in all cases, so that one memory may hold both."""
    return all(_close(one[name], another[other]) for one, another in zip(some, others, strict=True))


def _reads(reference, inputs: list[_Values], outputs: list[_Values], case: int, name: str) -> bool:
    """Return whether another value of this input changes an output other than its copies."""
    changed = inputs[case] | {name: inputs[(case + 1) % CASES][name]}
    found = reference(changed)
    return any(
        not _close(found[output], value)
        and not (_close(value, inputs[case][name]) and _close(found[output], changed[name]))
        for output, value in outputs[case].items()
    )


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two tensors have the same bytes, or values of one dtype that differ by rounding."""
    if one.nbytes != other.nbytes:
        return False
    if one.tobytes() == other.tobytes():
        return True
    if one.dtype != other.dtype or one.size == 0:
        return False
    flat, compared = one.ravel().astype(np.float64), other.ravel().astype(np.float64)
    finite = np.abs(flat[np.isfinite(flat)])
    return np.allclose(flat, compared, rtol=TOLERANCE, atol=TOLERANCE * finite.max(initial=0.0), equal_nan=True)
