"""Replace vendors' operators by ONNX's own, before nodes of foreign domains are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..canonical.folding.evaluate import declare_types, reason_against
from ..canonical.graph_context import NodeView, Rule, Values
from ..canonical.node_builder import Names, NodeBuilder, inner_graphs, splice, stem_of
from ..canonical.node_form import UnsupportedForm
from ..canonical.opset import OLDEST, declare_sets, raise_opset
from ..canonical.read_onnx import CLASSICAL, CONTRIB, advice_on, all_nodes, operator_set, refuse
from ..canonical.shapes import constant_tensors, infer_what_is_open, value_types
from ..source.keep_outputs import reads
from . import activations, attention, classical, decoders, elementwise, encoders, fused, products, recurrent, svm, trees

if TYPE_CHECKING:
    import onnx

RULES: dict[str, dict[str, Rule]] = {
    CONTRIB: activations.RULES
    | attention.RULES
    | decoders.RULES
    | elementwise.RULES
    | fused.RULES
    | products.RULES
    | recurrent.RULES,
    CLASSICAL: classical.RULES | encoders.RULES | svm.RULES | trees.RULES,
}
#: written by ONNX Runtime's tools in ONNX's own domain, up to the set that has an operator of that name
_UNMARKED = {"LayerNormalization": 17, "SimplifiedLayerNormalization": 1 << 31}
#: the operator set of DequantizeLinear by blocks, and of integers other than those of 8 bits
_OF_BLOCKS = 21
_NEEDS_BLOCKS = frozenset({"DequantizeLinear", "MatMulNBits", "QuantizeLinear"})
#: the operator set of LayerNormalization and Trilu, and of means and norms along an input's axes
_OF_NORMS = 18


def expand_contrib_ops(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace every node of ONNX Runtime's domain and of `ai.onnx.ml` that a rule knows; others stay, for their refusal.

    Raises ModelError for a node whose form has no equal in ONNX's own operators.
    """
    version = operator_set(model.opset_import)
    for node in all_nodes(model.graph):
        if node.domain in ("", "ai.onnx") and version < _UNMARKED.get(node.op_type, 0):
            node.domain = CONTRIB
    declare_sets(model)
    foreign = {node.op_type for node in all_nodes(model.graph) if _known(node)}
    if not foreign:
        return model
    norms = any(operator.endswith(("LayerNormalization", "Normalizer", "Trilu")) for operator in foreign)
    least = _OF_BLOCKS if foreign & _NEEDS_BLOCKS else _OF_NORMS if norms else OLDEST
    if version < least:  # what vendors' operators make decides how their readers are raised
        declare_types(model)
    model = raise_opset(model, least)
    while True:  # a result may have to be inferred before its reader can be expanded
        types = value_types(infer_what_is_open(model).graph)
        refused: list[tuple[onnx.NodeProto, str, str]] = []
        if not _expand(model.graph, Values(types, {}), Names(model.graph), model.opset_import, refused):
            break
    foreign_still = (node for node in all_nodes(model.graph) if node.domain in RULES and not _known(node))
    if next(foreign_still, None) is not None:
        return model  # refused next, and the cause of what is not known behind it
    for node, why, step in refused:
        refuse(node, f"cannot be compiled: {why}", step or advice_on(node.domain, _others(model.graph, node)))
    return model


def _others(graph: onnx.GraphProto, node: onnx.NodeProto) -> list[str]:
    """List the outputs of a sorted graph that do not need the first result of a node: of a classifier, the class."""
    touched = {node.output[0]}
    for each in graph.node:
        if not touched.isdisjoint(reads(each)):
            touched.update(each.output)
    return [value.name for value in graph.output if value.name not in touched]


def _known(node: onnx.NodeProto) -> bool:
    return node.op_type in RULES.get(node.domain, {})


def _fault_of(node: onnx.NodeProto, around: Values, sets: Sequence[onnx.OperatorSetIdProto]) -> str:
    """Return the fault of a node at which its rule failed; "" if ONNX Runtime takes it: the fault is the rule's."""
    read = dict.fromkeys(filter(None, node.input))
    constants = [around.constants[name] for name in read if name in around.constants]
    types = {name: around.types[name] for name in read if name in around.types and name not in around.constants}
    why = reason_against(node, types, constants, sets)
    return f"its attributes or operands are incomplete, or do not belong together ({why})" if why else ""


def _expand(
    graph: onnx.GraphProto, outside: Values, names: Names, sets: Sequence[onnx.OperatorSetIdProto],
    refused: list[tuple[onnx.NodeProto, str, str]],
) -> bool:  # fmt: skip
    """Expand the nodes of a graph and its subgraphs, in place; tell whether there were any.

    Others are added to `refused`, with reasons and next steps.
    """
    constants = {**outside.constants, **constant_tensors(graph)}
    read = frozenset(value.name for value in graph.output).union(*map(reads, graph.node))
    around = Values({**outside.types, **value_types(graph)}, constants, read=read)
    made = {}
    inside = False
    for index, node in enumerate(graph.node):
        for inner in inner_graphs(node):
            inside |= _expand(inner, around, names, sets, refused)
        if _known(node):
            build = NodeBuilder(stem_of(node, index), names)
            try:
                RULES[node.domain][node.op_type](NodeView(node, around), build)
                made[index] = build
            except UnsupportedForm as error:
                refused.append((node, str(error), error.step))
            except (ArithmeticError, LookupError, RuntimeError, StopIteration, TypeError, ValueError):
                why = _fault_of(node, around, sets)
                if not why:
                    raise
                refused.append((node, why, "Export the model again."))
    splice(graph, made)
    return inside or bool(made)
