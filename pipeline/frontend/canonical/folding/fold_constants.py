"""Fold constants and shape arithmetic, inline local functions, resolve `If`s with a constant condition.

onnxscript's folder does the work (canonicalise.py compares it with other libraries); ONNX Runtime computes
(constant_folder.py). Nodes whose constants would grow the model stay: a later pass can weigh them. Quantised constants
stay integers: layer patterns match on them, and kernels dequantise the others.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Hashable, Set
from typing import TYPE_CHECKING

from ....errors import ModelError
from ..node_builder import inner_graphs
from ..read_onnx import CONSTANT_LIMIT
from ..shapes import infer_shapes
from .constant_subgraphs import fitting_parts, nbytes
from .evaluate import first_line
from .write_back import write_back

if TYPE_CHECKING:
    import onnx
    import onnx_ir

#: bytes by which one folded result may outgrow the constants that vanish with it: shape arithmetic always fits in
GROWTH = 16 * 1024
#: an `If` inside the taken branch of an `If` … is resolved one level per round
_ROUNDS = 16
#: elements by which large constants are told apart before they are compared
_COMPARED = 64
_AGAIN = "Check the model with onnx.checker, and export it again."
_RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
_DEQUANTISES = frozenset({"DequantizeLinear"})
_WITH_SUBGRAPHS = frozenset({"If", "Loop", "Scan"})
#: operators with the same result on an empty operand in every implementation
_ON_NOTHING = frozenset({"Concat", "ConstantOfShape", "ReduceProd", "ReduceSum", "Shape", "Size"})


def sort_nodes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Sort nodes topologically, in place; return the model.

    Raises ModelError for a cycle, or a value nobody makes.
    """
    if all(_is_sorted(graph, frozenset()) for graph in (model.graph, *model.functions)):
        return model
    import onnx_ir as ir
    import onnx_ir.passes.common as common

    _quiet()
    try:
        graph_model = ir.serde.deserialize_model(model)
        common.TopologicalSortPass()(graph_model)
        return write_back(model, graph_model)
    except (ValueError, RuntimeError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:  # a library wraps it, and says where it was
            cause = cause.__cause__
        raise ModelError(f"The nodes of the model cannot be put in order: {first_line(cause)}.", _AGAIN) from error


def _is_sorted(graph: onnx.GraphProto | onnx.FunctionProto, outer: Set[str]) -> bool:
    """Return whether every node reads values of `outer`, of nodes before it or of the graph itself."""
    names = [[each if isinstance(each, str) else each.name for each in group] for group in (graph.input, graph.output)]
    known = {"", *outer, *names[0], *(each.name for each in getattr(graph, "initializer", ()))}
    for node in graph.node:
        if not (known.issuperset(node.input) and all(_is_sorted(inner, known) for inner in inner_graphs(node))):
            return False
        known.update(node.output)
    return known.issuperset(names[1])


def refold(changed: onnx.ModelProto, model: onnx.ModelProto | None) -> onnx.ModelProto:
    """Infer and fold a `changed` model; return `model`, which was folded and inferred, if nothing changed."""
    return model if changed is model else infer_shapes(fold(infer_shapes(changed)))


def fold(model: onnx.ModelProto) -> onnx.ModelProto:
    """Fold constants; drop Identity, Constant and unused nodes; sort topologically.

    A model whose large constants all stay is changed in place. Inputs and outputs keep their names. Raises ModelError if a constant node cannot be computed.
    """
    import onnx_ir as ir
    import onnx_ir.passes.common as common

    from .constant_folder import ConstantFolder

    _quiet()
    graph_model = ir.serde.deserialize_model(sort_nodes(model))
    for _ in range(_ROUNDS):
        _clean(graph_model)
        whole = fitting_parts(graph_model.graph, GROWTH, apart=_DEQUANTISES)

        def folds(node: ir.Node, whole: set[ir.Node] = whole) -> bool:
            kept = node.op_type in _DEQUANTISES or _is_random(node) or _computes_on_nothing(node)
            if kept or not (node in whole or _worth(node)):
                return False
            _refuse_large(node)
            return True

        try:
            changed = ConstantFolder(folds)(graph_model).modified
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise ModelError(
                f"A constant part of the model cannot be computed: {first_line(error.__cause__ or error)}.", _AGAIN
            ) from error
        if not changed:
            break
    if limit := _largest_pair(graph_model):
        common.DeduplicateInitializersPass(size_limit=limit)(graph_model)
    before = set(graph_model.graph.all_nodes())
    common.OutputFixPass()(graph_model)
    for graph in graph_model.graphs():
        for number, node in enumerate(each for each in graph if each not in before):
            node.name = f"node_Identity_{number}"  # onnx_ir counts what folding made, too
    made = (value for node in graph_model.graph.all_nodes() for value in node.outputs)
    unread = [value for value in made if not (value.name or value.uses() or value.is_graph_output())]
    common.NameFixPass()(graph_model)
    for value in unread:
        value.name = ""  # a recurrent kernel does not compute it
    had_subgraphs, result = _has_subgraphs(model), write_back(model, graph_model)
    # to onnx_ir, values that graphs of removed nodes read stay read
    return fold(result) if had_subgraphs and not _has_subgraphs(result) else result


def _has_subgraphs(model: onnx.ModelProto) -> bool:
    return any(node.op_type in _WITH_SUBGRAPHS for node in model.graph.node)


def _largest_pair(graph_model: onnx_ir.Model) -> int:
    """Return the most elements of a constant that may equal another: larger ones need not be compared."""
    kinds: dict[Hashable, list[onnx_ir.TensorProtocol]] = defaultdict(list)
    for number, graph in enumerate(graph_model.graphs()):
        for constant in (value.const_value for value in graph.initializers.values()):
            if constant is not None:
                kinds[number, constant.dtype, tuple(constant.shape)].append(constant)
    for group in sorted(kinds.values(), key=lambda group: -group[0].size):
        if len(group) > 1 and len(set(map(_first_numbers, group))) < len(group):
            return group[0].size
    return 0


def _first_numbers(constant: onnx_ir.TensorProtocol) -> bytes:
    return b"" if constant.dtype.is_string() else constant.numpy().reshape(-1)[:_COMPARED].tobytes()


def _clean(graph_model: onnx_ir.Model) -> None:
    """Remove unused nodes, Constant nodes and, once no subgraph is left, Identity nodes."""
    import onnx_ir.passes.common as common

    operators = {node.op_type for node in graph_model.graph.all_nodes()}
    # The results of a subgraph are values of its own: there an Identity is not always clutter.
    if "Identity" in operators and not any(node.op_type in _WITH_SUBGRAPHS for node in graph_model.graph):
        common.IdentityEliminationPass()(graph_model)
    common.RemoveUnusedNodesPass()(graph_model)
    if "Constant" in operators:
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(graph_model)


def _worth(node: onnx_ir.Node) -> bool:
    """Return whether folding one node with constant inputs hardly grows the model.

    Its results may outgrow the constants that vanish with it by `GROWTH` bytes. Numbers are always quantised.
    """
    if node.op_type == "QuantizeLinear":
        return True
    freed = sum(nbytes(v.const_value) for v in set(node.inputs) if v is not None and len(v.uses()) == 1)
    return sum(map(nbytes, node.outputs)) - freed <= GROWTH


def _refuse_large(node: onnx_ir.Node) -> None:
    """Refuse a node whose constant result is over its limit, before it is computed: raise ModelError."""
    for value in node.outputs:
        if nbytes(value) > CONSTANT_LIMIT:
            raise ModelError(
                f"The constant '{value.name}', made by the {node.op_type} node '{node.name}', takes {nbytes(value) / (1 << 30):.3g} GiB; "
                f"{CONSTANT_LIMIT >> 30} GiB is the most.",
                "Give smaller shapes (--shape), or cut the model into parts.",
            )


def _is_random(node: onnx_ir.Node) -> bool:
    """Return whether a node may give other results each time, as a Dropout that trains."""
    return node.op_type in _RANDOM or (
        node.op_type == "Dropout" and len(node.inputs) > 2 and node.inputs[2] is not None
    )


def _computes_on_nothing(node: onnx_ir.Node) -> bool:
    """Return whether a node has a result although its operand has no elements.

    empty_tensors.py computes it as ONNX Runtime does.
    """
    operand = node.inputs[0] if node.inputs else None
    if operand is None or operand.const_value is None or operand.const_value.size or node.op_type in _ON_NOTHING:
        return False
    return any(
        value.shape is not None and value.shape.is_static() and 0 not in value.shape.numpy() for value in node.outputs
    )


def _quiet() -> None:
    """Silence warnings of nodes that are left alone.

    Nodes that stay and cannot be compiled are refused later by name.
    """
    for name in ("onnxscript", "onnx_ir"):
        logging.getLogger(name).setLevel(logging.ERROR)
