"""Move models into one range of operator sets: old ones are raised, new numbers lowered."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ModelError
from .node_builder import Names, NodeBuilder, build_replacements, inner_graphs, splice
from .raising.raise_nodes import raise_nodes
from .read_onnx import CONTRIB, NEWEST, ONNX_DOMAINS, all_nodes, declare_set, operator_set
from .shapes import infer_shapes, infer_what_is_open, value_types, without_values, write_around_weights

if TYPE_CHECKING:
    import onnx

#: from here on axes are inputs and Softmax works on one axis; TVM reads older forms of some operators as new ones
OLDEST = 13
#: the file version in which constants need not be inputs, and which every reader of `OLDEST` knows
_IR = 7
#: the operator set of Split by a number of parts
_PARTS = 18
#: operators that shape inference or TVM does not know, but whose meaning ONNX gives as a graph of simpler ones
EXPANDED = frozenset(
    """
    Attention CausalConvWithState CenterCropPad FlexAttention GroupNormalization LinearAttention NegativeLogLikelihoodLoss
    RotaryEmbedding SoftmaxCrossEntropyLoss SwiGLU Swish
    """.split()
)
#: ONNX's domain of operators that are tried out
PREVIEW = "ai.onnx.preview"
#: domain of these bodies, gone once they are inlined
_BODIES = "passfit.bodies"
#: operators whose shape inference needs the defaults of their attributes
_OF_DEFAULTS = frozenset({"MeanVarianceNormalization", "STFT"})


def expand_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace the model's own functions, and operators ONNX defines by simpler ones, by their bodies, in place.

    Raises ModelError if a function calls itself, or cannot be inlined.
    """
    if model.functions:
        _write_function_defaults(model)
        _agree_on_set(model)
        _inline(model)
    while True:  # a body may hold another of them
        _count_positions_from_zero(model.graph)
        for node in all_nodes(model.graph):
            if node.op_type in EXPANDED | _OF_DEFAULTS and node.domain in ONNX_DOMAINS:
                _write_defaults(node, operator_set(model.opset_import))
        if not _add_bodies(model):
            return model
        _inline(model)


def _inline(model: onnx.ModelProto) -> None:
    """Replace calls of the model's functions by their bodies, in place."""
    from onnx import checker, inliner

    try:
        write_around_weights(model, inliner.inline_local_functions(without_values(model)))
    except (RuntimeError, checker.ValidationError) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise ModelError(f"The functions of the model cannot be inlined: {said}.", "Export the model again.") from error


def _add_bodies(model: onnx.ModelProto) -> bool:
    """Make nodes that ONNX defines by simpler ones calls of functions, in place; tell whether there were any.

    ONNX's inliner finds no body by itself for a node whose operand is left out before another.
    """
    from onnx import FunctionProto, TypeProto, defs

    if not any(map(_is_expanded, all_nodes(model.graph))):
        return False
    types = value_types(infer_what_is_open(without_values(model)).graph)
    nodes = list(all_nodes(model.graph))
    for graph in chain.from_iterable(map(inner_graphs, nodes)):
        types |= value_types(graph)
    for number, node in enumerate(filter(_is_expanded, nodes)):
        version = operator_set(model.opset_import, 1, domain=node.domain)
        if not defs.has(node.op_type, version, node.domain):
            continue  # refused by name
        schema = defs.get_schema(node.op_type, version, node.domain)
        if schema.has_function:
            body = schema.function_body.SerializeToString()
        elif schema.has_context_dependent_function and all(name in types for name in node.input if name):
            given = [(types[name] if name else TypeProto()).SerializeToString() for name in node.input]
            body = schema.get_context_dependent_function(node.SerializeToString(), given)
        else:
            continue
        function = FunctionProto.FromString(body)
        declare_set(function.opset_import, operator_set(model.opset_import))
        function.domain, function.name = _BODIES, f"{node.op_type}_{number}"
        node.domain, node.op_type = function.domain, function.name
        model.functions.append(function)
    if all(each.domain != _BODIES for each in model.opset_import):
        model.opset_import.add(domain=_BODIES, version=1)
    return bool(model.functions)


def _is_expanded(node: onnx.NodeProto) -> bool:
    return node.op_type in EXPANDED and node.domain in ("", PREVIEW)


def _schema_of(node: onnx.NodeProto, version: int) -> onnx.defs.OpSchema:
    """Return the definition of a node's operator in a set. Raises ModelError."""
    from onnx import defs

    try:
        return defs.get_schema(node.op_type, version)
    except defs.SchemaError as error:
        raise ModelError(
            f"The operator {node.op_type} of the node '{node.name}' is not in ONNX's operator set {version}.",
            "Export the model with ONNX's own operators only.",
        ) from error


def _write_defaults(node: onnx.NodeProto, version: int) -> None:
    """Write out the default values of attributes, which the inliner loses."""
    given = {attribute.name for attribute in node.attribute}
    schema = _schema_of(node, version)
    for name, attribute in sorted(schema.attributes.items()):
        if name not in given and attribute.default_value.type:
            node.attribute.append(attribute.default_value)


def _count_positions_from_zero(graph: onnx.GraphProto) -> None:
    """Keep, in place, negative positions of rotary embeddings from counting from the end: the function gathers by them."""

    def count(node: onnx.NodeProto, build: NodeBuilder) -> None:
        if node.op_type == "RotaryEmbedding" and not node.domain and len(node.input) > 3 and node.input[3]:
            positions = build.from_zero(node.input[3], np.int64)
            build.copy(node).input[3] = positions

    splice(graph, build_replacements(graph, Names(graph), count))


def _write_function_defaults(model: onnx.ModelProto) -> None:
    """Write the default attributes of the model's functions into their calls: the inliner loses them."""
    functions = {(each.domain, each.name, each.overload): each for each in model.functions}
    for part in (model.graph, *model.functions):
        for node in all_nodes(part):
            function = functions.get((node.domain, node.op_type, node.overload))
            given = {attribute.name for attribute in node.attribute}
            for default in function.attribute_proto if function else ():
                if default.name not in given:
                    node.attribute.append(default)


def _agree_on_set(model: onnx.ModelProto) -> None:
    """Raise the model and its functions, in place, to the newest operator set among them."""
    sets = [operator_set(each.opset_import, undeclared=0) for each in (model, *model.functions)]
    newest = max(sets)
    for part, version in zip((model, *model.functions), sets, strict=True):
        if 0 < version < newest:
            raise_nodes(part.graph if part is model else part, version, newest)
            declare_set(part.opset_import, newest)


def declare_sets(model: onnx.ModelProto) -> None:
    """Declare, in place, the operator sets of ONNX, once and first, and of ONNX Runtime.

    ONNX Runtime reads a domain without a version in its newest one, and takes the last of several versions. Raises ModelError for a file that declares no set.
    """
    declared = {each.domain for each in model.opset_import}
    if not declared:
        raise ModelError("The model does not declare its ONNX operator set.", "Export the model again.")
    inside = [node for function in model.functions for node in function.node]
    used = {node.domain for node in (*all_nodes(model.graph), *inside)}
    if CONTRIB in used - declared:
        model.opset_import.add(domain=CONTRIB, version=1)
    version = operator_set(model.opset_import)
    if not 1 <= version < 1 << 31:
        raise ModelError(
            f"The model declares ONNX's operator set {version}, which does not exist.", "Export the model again."
        )
    others = [each for each in model.opset_import if each.domain not in ONNX_DOMAINS]
    del model.opset_import[:]
    model.opset_import.add(domain="", version=version)
    model.opset_import.extend(others)


def raise_opset(model: onnx.ModelProto, least: int = OLDEST) -> onnx.ModelProto:
    """Raise `model`, in place, to opset `least` at least; return it.

    Old models get forms the compiler reads without error. Raises ModelError naming the node that cannot be raised.
    """
    # files of before version 4 list their constants as inputs, too; these are bound by now
    model.ir_version = max(model.ir_version, _IR)
    version = operator_set(model.opset_import)
    if version >= least:
        return model
    if not 1 <= version < 1 << 31:
        raise ModelError(f"The model uses operator set {version}, which does not exist.", "Export the model again.")
    foreign = any(node.domain not in ONNX_DOMAINS for node in all_nodes(model.graph))
    raise_nodes((infer_what_is_open if foreign else infer_shapes)(model).graph, version, least)
    declare_set(model.opset_import, least)
    return model


def raise_for_sequences(model: onnx.ModelProto) -> onnx.ModelProto:
    """Raise a model with SplitToSequence to the operator set whose Split takes a number of parts.

    Folding makes that Split of it, whatever the set.
    """
    splits = any(node.op_type == "SplitToSequence" for node in all_nodes(model.graph))
    return raise_opset(model, _PARTS) if splits else model


def _set_of_form(schema: onnx.defs.OpSchema) -> int:
    """Return the oldest set in which an operator has its form; of one after `NEWEST`, if it has its operands and attributes there."""
    from onnx import defs

    if schema.since_version <= NEWEST or not defs.has(schema.name, NEWEST, schema.domain):
        return schema.since_version
    known = defs.get_schema(schema.name, NEWEST, schema.domain)
    forms = [([each.name for each in (*one.inputs, *one.outputs)], sorted(one.attributes)) for one in (schema, known)]
    return known.since_version if forms[0] == forms[1] else schema.since_version


def lower_opset(model: onnx.ModelProto) -> None:
    """Declare, in place, the oldest operator set with every operator in its used form.

    It is `OLDEST` at least. A model exported for a set newer than ONNX Runtime or TVM knows mostly uses operators that
    did not change in it, or only take more dtypes. Raises ModelError if the installed onnx does not know an operator of
    the set, or the set needed is newer than `NEWEST`.
    """
    from onnx import helper

    version = operator_set(model.opset_import)
    needed = max((_set_of_form(_schema_of(node, version)) for node in all_nodes(model.graph)), default=OLDEST)
    needed = max(needed, OLDEST)
    if needed > NEWEST:
        raise ModelError(
            f"The model needs operator set {needed}; the newest that can be compiled is {NEWEST}.",
            f"Export the model with operator set {NEWEST} or older.",
        )
    model.opset_import[0].version = needed
    model.ir_version = max(_IR, helper.find_min_ir_version_for(list(model.opset_import)))
