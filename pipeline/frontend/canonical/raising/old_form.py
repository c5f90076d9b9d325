"""Describe a node of an old operator set to the rule that raises it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..graph_context import NodeView, Values
from ..node_builder import NodeBuilder, given

if TYPE_CHECKING:
    import onnx


class OldForm(NodeView):
    """Node of set `version` to be given in set `wanted`; `build` takes the nodes that replace it."""

    def __init__(self, node: onnx.NodeProto, graph: Values, version: int, wanted: int, build: NodeBuilder):
        super().__init__(node, graph)
        self.version, self.wanted, self.build = version, wanted, build

    def crosses(self, since: int) -> bool:
        """Return whether set `since`, in which the operator changed, lies between both sets."""
        return self.version < since <= self.wanted

    def keep(self, *inputs: str, op: str = "", **attributes: object) -> None:
        """Keep the node under its name, with these inputs and attributes, perhaps as another operator."""
        from onnx import helper

        node = helper.make_node(op or self.op_type, given(inputs), self.output, name=self.proto.name, **attributes)
        self.build.nodes.append(node)


#: builds the new form, or nothing if the old one is valid. Raises UnsupportedForm if there is none
Rule = Callable[[OldForm], None]


def raise_at(version: int, rule: Rule) -> Rule:
    """Return the rule of an operator that changed in one set alone: no other node is raised."""
    return lambda form: rule(form) if form.crosses(version) else None
