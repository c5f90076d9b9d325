"""Hold the scores behind outputs of indices: among scores within rounding of each other, each index is right.

scores ─► ArgMax, ArgMin or TopK ─► Cast, Reshape … ─► indices, the output
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...frontend.canonical.node_builder import attributes_of
from ...frontend.traits import PASSES
from ..error_bounds import is_float
from ..reference import NoReference, Reference
from .given_outputs import unit_of

if TYPE_CHECKING:
    import onnx

#: operators that choose: the place of the indices among their results, and their axis by default
_CHOOSES = {"ArgMax": (0, 0), "ArgMin": (0, 0), "TopK": (1, -1)}


@dataclass(frozen=True)
class Choice:
    """Scores that an output of indices chooses among along `axis`; `unit` is the value of one of dequantised integers, else 0."""

    scores: np.ndarray
    axis: int
    unit: float = 0.0

    def picked(self, indices: np.ndarray) -> np.ndarray | None:
        """Return the scores at indices; None for an index out of range, or one that is given twice."""
        axis = self.axis % self.scores.ndim
        shape = self.scores.shape
        places = indices.reshape(*shape[:axis], -1, *shape[axis + 1 :]).astype(np.int64)
        twice = (np.diff(np.sort(places, axis), axis=axis) == 0).any()
        if twice or places.min(initial=0) < 0 or places.max(initial=0) >= shape[axis]:
            return None
        return np.take_along_axis(self.scores, places, axis).astype(np.float64).reshape(indices.shape)


def find_choices(model: onnx.ModelProto, inputs: Sequence[Mapping[str, np.ndarray]]) -> list[dict[str, Choice]]:
    """Evaluate the scores of floats behind outputs of indices, for each case; none where ONNX Runtime cannot."""
    behind, found = dict(_scores_of(model)), []
    try:
        reference = Reference(model, also=[name for name, _ in behind.values()]) if behind else None
        for each in inputs:
            values = {} if reference is None else reference(dict(each))
            found.append(
                {
                    output: Choice(values[name], axis, unit_of(model, name, values[name].dtype) or 0.0)
                    for output, (name, axis) in behind.items()
                    if name in values and values[name].size and is_float(values[name])
                }
            )
    except NoReference:
        return [{} for _ in inputs]
    return found


def _scores_of(model: onnx.ModelProto) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield each output of indices with its scores and their axis."""
    makers = {name: node for node in model.graph.node for name in node.output}
    for output in model.graph.output:
        name = output.name
        while name in makers and makers[name].op_type in PASSES:
            name = makers[name].input[0]
        node = makers.get(name)
        if node is not None and node.op_type in _CHOOSES and not node.domain:
            place, axis = _CHOOSES[node.op_type]
            if node.output[place] == name:
                yield output.name, (node.input[0], attributes_of(node).get("axis", axis))
