"""Give slopes of old PRelu nodes the shape they are read with from set 7 on.

Up to set 6 a line of slopes is one for each channel, the second dimension; from 7 on it broadcasts along the last. ONNX's
converter raises the node as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..node_builder import Names, NodeBuilder, stem_of
from ..read_onnx import operator_set
from ..shapes import static_shape, value_types

if TYPE_CHECKING:
    import onnx

#: the first set whose PRelu broadcasts
_BROADCASTS = 7


def spread_slopes(model: onnx.ModelProto) -> None:
    """Reshape, in place, the slopes of channels of a model of an older set."""
    if operator_set(model.opset_import) >= _BROADCASTS:
        return
    types, names, nodes = value_types(model.graph), Names(model.graph), list(model.graph.node)
    del model.graph.node[:]
    for number, node in enumerate(nodes):
        x, slope = (static_shape(types[name]) if name in types else None for name in (*node.input, "", "")[:2])
        if node.op_type == "PRelu" and x is not None and slope is not None and len(slope) == 1 and len(x) > 2:
            build = NodeBuilder(f"{stem_of(node, number)}/slopes", names)
            node.input[1] = build.node("Reshape", node.input[1], build.integers(-1, *[1] * (len(x) - 2)))
            model.graph.node.extend(build.nodes)
            model.graph.initializer.extend(build.initializers)
        model.graph.node.append(node)
