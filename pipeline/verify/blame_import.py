"""Find the first value that an import changed: run the file and its canonical model side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..frontend.canonical.ports.apply import length_forms, port_forms
from .error_bounds import distances, output_range
from .inputs import InputDraws
from .reference import NoReference, Reference

if TYPE_CHECKING:
    import onnx

#: difference that is not rounding, as a fraction of the value's range; and in units of 8 bits
_APART, _UNITS = 1e-3, 2
_CASES = 3


def blame_import(canonical: onnx.ModelProto, given: onnx.ModelProto | None, seed: int) -> str:
    """Say which node of the canonical model first differs from the file; an empty string where none does.

    Values are compared by name: those that the import renamed are passed over, and those inside that it made as long as their bound. Without a file, or where ONNX Runtime
    runs one of the two only, nothing can be said.
    """
    if given is None:
        return ""
    makers = {name: node for node in canonical.graph.node for name in node.output if name}
    own = {name for node in given.graph.node for name in node.output}
    outputs = {value.name for value in canonical.graph.output}
    common = [name for name in makers if name in own and name not in outputs]
    bounded = bool(length_forms(port_forms(canonical)))
    try:
        file, imported = (Reference(model, also=common) for model in (given, canonical))
        draws = InputDraws(given)
        for number in range(_CASES):
            inputs = draws.draw(seed, number)
            values, found = file(inputs), imported(inputs)
            inside = [
                each for each in common
                if not bounded or each not in values or each not in found or values[each].shape == found[each].shape
            ]  # fmt: skip
            first = _first_difference(values, found, [*inside, *outputs])
            if first:
                node = makers.get(first)
                made = f", made by the {node.op_type} node '{node.name}'" if node is not None else ""
                return f"The import is at fault: it changes the value '{first}'{made}."
    except NoReference:
        return ""
    return ""


def _first_difference(given: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray], order: list[str]) -> str:
    return next((name for name in order if name in given and name in found and _differ(given[name], found[name])), "")


def _differ(given: np.ndarray, found: np.ndarray) -> bool:
    """Return whether two values differ by more than rounding; those of other dtypes are other values."""
    if given.dtype != found.dtype:
        return False
    if given.shape != found.shape:
        return True
    limit = _UNITS if given.dtype.itemsize == 1 and given.dtype != bool else _APART * output_range([given])
    return bool(distances(given, found).max(initial=0.0) > limit)
