"""Replace vendors' operators by ONNX's own, before nodes of foreign domains are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..canonical.node_builder import NodeBuilder, attributes_of, splice, stem_of
from ..canonical.opset import OLDEST, raise_opset
from ..canonical.read_onnx import all_nodes
from ..canonical.shapes import infer_what_is_open, value_types
from . import activations, attention, elementwise, fused, products, recurrent
from .context import Rule, Surroundings

if TYPE_CHECKING:
    import onnx

_DOMAIN = "com.microsoft"
_RULES: dict[str, Rule] = (
    activations.RULES | attention.RULES | elementwise.RULES | fused.RULES | products.RULES | recurrent.RULES
)
#: of the vendor too, though in ONNX's own domain
_UNMARKED = frozenset({"SimplifiedLayerNormalization"})
#: the operator set of DequantizeLinear by blocks, and of integers other than those of 8 bits
_OF_BLOCKS = 21
_NEEDS_BLOCKS = frozenset({"DequantizeLinear", "MatMulNBits", "QuantizeLinear"})
#: the operator set of LayerNormalization, and that of means along an input's axes
_OF_NORMS = 18
#: a result that has to be inferred before its reader can be expanded costs a round
_ROUNDS = 64


def expand_contrib_ops(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace every node of a vendor's domain that a rule knows; others stay, for their refusal."""
    for node in all_nodes(model.graph):
        if node.op_type in _UNMARKED and not node.domain:
            node.domain = _DOMAIN
    foreign = {node.op_type for node in all_nodes(model.graph) if _known(node)}
    if not foreign:
        return model
    norms = any(operator.endswith("LayerNormalization") for operator in foreign)
    model = raise_opset(model, _OF_BLOCKS if foreign & _NEEDS_BLOCKS else _OF_NORMS if norms else OLDEST)
    for _ in range(_ROUNDS):
        types = value_types(infer_what_is_open(model).graph)
        if not _expand(model.graph, Surroundings({}, types)):
            break
    return model


def _known(node: onnx.NodeProto) -> bool:
    return node.domain == _DOMAIN and node.op_type in _RULES


def _expand(graph: onnx.GraphProto, outside: Surroundings) -> bool:
    """Expand the nodes of a graph and its subgraphs, in place; tell whether there were any."""
    constants = {**outside.constants, **{tensor.name: tensor for tensor in graph.initializer}}
    for node in graph.node:
        if node.op_type == "Constant" and node.output:
            constants.update((node.output[0], each.t) for each in node.attribute if each.name == "value")
    around = Surroundings(constants, {**outside.types, **value_types(graph)})
    made = {}
    inside = False
    for index, node in enumerate(graph.node):
        for attribute in node.attribute:
            if attribute.HasField("g"):
                inside |= _expand(attribute.g, around)
        if _known(node):
            build = NodeBuilder(stem_of(node, index))
            _RULES[node.op_type](node, attributes_of(node), around, build)
            if build.nodes:
                made[index] = build
    splice(graph, made)
    return inside or bool(made)
