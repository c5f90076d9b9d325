"""Raise the nodes of a graph to a newer operator set, by the rule of each operator.

ONNX's own converter refuses many old forms, keeps others as they are although their meaning changed (Hardmax), and
misses subgraphs. An operator without a rule means the same in every set it is valid in.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING

from ..graph_context import Values
from ..node_builder import Names, NodeBuilder, inner_graphs, splice, stem_of
from ..node_form import UnsupportedForm
from ..read_onnx import refuse
from ..shapes import value_types
from .normalising import NORMALISING
from .old_form import OldForm, Rule
from .operands import OPERANDS
from .resizing import RESIZING

if TYPE_CHECKING:
    import onnx

RULES: dict[str, Rule] = {**OPERANDS, **NORMALISING, **RESIZING}
#: attributes of the first sets, which said nothing about results
_IDLE = frozenset({"consumed_inputs", "output_sequence"})


def raise_nodes(
    graph: onnx.GraphProto | onnx.FunctionProto, version: int, wanted: int,
    outer: Values | None = None, names: Names | None = None,
) -> None:  # fmt: skip
    """Raise the nodes of a graph or function, and of subgraphs, in place, from set `version` to `wanted`.

    Raises ModelError for a node whose old form cannot be given in the set wanted.
    """
    given, names = _visible(graph, outer), names or Names(graph)
    made: dict[int, NodeBuilder] = {}
    for index, node in enumerate(graph.node):
        for inner in inner_graphs(node):
            raise_nodes(inner, version, wanted, given, names)
        if node.domain not in ("", "ai.onnx"):
            continue
        kept = [attribute for attribute in node.attribute if version >= 7 or attribute.name not in _IDLE]
        if len(kept) < len(node.attribute):
            kept = [deepcopy(attribute) for attribute in kept]
            del node.attribute[:]
            node.attribute.extend(kept)
        rule = RULES.get(node.op_type)
        if rule is None:
            continue
        build = NodeBuilder(stem_of(node, index), names)
        try:
            rule(OldForm(node, given, version, wanted, build))
            if build.nodes and any(attribute.ref_attr_name for attribute in node.attribute):
                raise UnsupportedForm(
                    f"its attributes are those of a function, and the operator changed up to set {wanted}"
                )
        except UnsupportedForm as error:
            what = f"of operator set {version} cannot be compiled: {error}"
            refuse(node, what, f"Export the model with operator set {wanted} or newer, for inference.")
        if build.nodes:
            made[index] = build
    splice(graph, made)


def _visible(graph: onnx.GraphProto | onnx.FunctionProto, outer: Values | None) -> Values:
    """Return the types and constants visible in `graph`; a function's operands have none."""
    from onnx import FunctionProto

    constants: dict[str, onnx.TensorProto] = dict(outer.constants) if outer else {}
    types: Mapping[str, onnx.TypeProto] = {}
    if not isinstance(graph, FunctionProto):
        constants |= {tensor.name: tensor for tensor in graph.initializer}
        types = value_types(graph)
    for node in graph.node:
        if node.op_type == "Constant":
            constants.update((node.output[0], attribute.t) for attribute in node.attribute if attribute.name == "value")
    return Values({**outer.types, **types} if outer else types, constants)
