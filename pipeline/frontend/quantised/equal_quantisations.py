"""Quantise a value once: quantisers may give each of its readers a pair of nodes of its own.

    x ─┬► QuantizeLinear ─► a          becomes          x ─► QuantizeLinear ─► a, b
       └► QuantizeLinear ─► b

A layer ends in one quantisation; with two, floats would compute it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def merge_equal_quantisations(model: onnx.ModelProto) -> onnx.ModelProto:
    """Merge QuantizeLinear nodes of one value, scale and zero point; return `model` itself if there are none.

    Results that are outputs keep their nodes.
    """
    outputs = {value.name for value in model.graph.output}
    first: dict[tuple, str] = {}
    merged: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            key = (*node.input, *sorted(each.SerializeToString(deterministic=True) for each in node.attribute))
            kept = first.setdefault(key, node.output[0])
            if kept != node.output[0] and node.output[0] not in outputs:
                merged[node.output[0]] = kept
    if not merged:
        return model
    result = deepcopy(model)
    for node in result.graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = merged.get(name, name)
    return result
