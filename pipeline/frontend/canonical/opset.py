"""Move models into one range of operator sets: old ones are raised, new numbers lowered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ModelError
from .read_onnx import all_nodes, node_title
from .shapes import value_types

if TYPE_CHECKING:
    import onnx

#: from here on axes are inputs and Softmax works on one axis; TVM reads older forms of some operators as new ones
OLDEST = 13
#: the newest set ONNX Runtime runs the reference with
NEWEST = 26
#: the file version in which constants need not be inputs, and which every reader of `OLDEST` knows
_IR = 7
#: the operator set of Split by a number of parts
_PARTS = 18
#: operators that shape inference or TVM does not know, but whose meaning ONNX gives as a graph of simpler ones
EXPANDED = frozenset({"Attention", "Celu", "CenterCropPad", "GroupNormalization", "RotaryEmbedding", "Swish"})
#: operators whose shape inference needs the defaults of their attributes
_OF_DEFAULTS = frozenset({"MeanVarianceNormalization"})


def expand_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace the model's own functions, and operators ONNX defines by simpler ones, by their bodies.

    Raises ModelError if a function calls itself, or cannot be inlined.
    """
    from onnx import checker, inliner

    if model.functions:
        try:
            model = inliner.inline_local_functions(model, convert_version=True)
        except (RuntimeError, checker.ValidationError) as error:
            said = " ".join(str(error).split()).rstrip(".")
            raise ModelError(f"The functions of the model cannot be inlined: {said}.", "Export the model again.") from error
    version = max((opset.version for opset in model.opset_import if not opset.domain), default=1)
    for node in all_nodes(model.graph):
        if node.op_type in EXPANDED | _OF_DEFAULTS and not node.domain:
            _write_defaults(node, version)
    nodes = [node for node in all_nodes(model.graph) if node.op_type in EXPANDED and not node.domain]
    # the inliner knows no type of an operand left out before another
    names = EXPANDED.difference(node.op_type for node in nodes if not all(node.input))
    if names.isdisjoint(node.op_type for node in nodes):
        return model
    return inliner.inline_selected_functions(model, [("", name) for name in sorted(names)], inline_schema_functions=True)


def _write_defaults(node: onnx.NodeProto, version: int) -> None:
    """Write out the default values of attributes, which the inliner loses."""
    from onnx import defs

    given = {attribute.name for attribute in node.attribute}
    try:
        schema = defs.get_schema(node.op_type, version)
    except defs.SchemaError as error:
        raise ModelError(
            f"The operator {node.op_type} of the node '{node.name}' is not in ONNX's operator set {version}.",
            "Export the model with ONNX's own operators only.",
        ) from error
    for name, attribute in sorted(schema.attributes.items()):
        if name not in given and attribute.default_value.type:
            node.attribute.append(attribute.default_value)


def raise_opset(model: onnx.ModelProto, least: int = OLDEST) -> onnx.ModelProto:
    """Raise `model` to opset `least` at least; nodes of foreign domains stay as they are.

    Old models get forms the compiler reads without error. Raises ModelError naming the part ONNX's converter cannot
    convert.
    """
    from onnx import version_converter

    version = max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=least)
    if version >= least:
        return model
    # files of before version 4 list their constants as inputs, too; these are bound by now
    model.ir_version = max(model.ir_version, _IR)
    failures = _converter_failures()
    try:
        converted = version_converter.convert_version(model, least)
    except failures as error:
        said = _unraised(model, least)
        raise ModelError(
            f"The model uses operator set {version}, which cannot be raised to {least}{said}.",
            f"Export the model with operator set {least} or newer.",
        ) from error
    converted.ir_version = max(model.ir_version, _IR if least < 21 else 10)
    return converted


def _converter_failures() -> tuple[type[Exception], ...]:
    from onnx import shape_inference, version_converter

    return RuntimeError, ValueError, shape_inference.InferenceError, version_converter.ConvertError


def _unraised(model: onnx.ModelProto, least: int) -> str:
    """Name the first node that ONNX's converter does not take, if one can be told."""
    from onnx import version_converter

    from ..refuse.node_form import first_refused, form_of

    node = first_refused(model, lambda part: version_converter.convert_version(part, least), _converter_failures())
    return f": it has no equal of the {node_title(node)} ({form_of(node, value_types(model.graph))})" if node is not None else ""


def raise_for_sequences(model: onnx.ModelProto) -> onnx.ModelProto:
    """Raise a model that splits into a sequence to the operator set whose Split is told the number of parts.

    Folding makes that Split of it, whatever the set.
    """
    splits = any(node.op_type == "SplitToSequence" for node in all_nodes(model.graph))
    return raise_opset(model, _PARTS) if splits else model


def lower_opset(model: onnx.ModelProto) -> None:
    """Declare, in place, the oldest operator set with every operator in its used form.

    It is `OLDEST` at least. A model exported for a set newer than ONNX Runtime or TVM knows mostly uses operators that
    did not change in it. Raises ModelError if the installed onnx does not know an operator of the set, or the set needed
    is newer than `NEWEST`.
    """
    from onnx import defs, helper

    version = model.opset_import[0].version
    needed = OLDEST
    for node in all_nodes(model.graph):
        try:
            needed = max(needed, defs.get_schema(node.op_type, version).since_version)
        except defs.SchemaError as error:
            raise ModelError(
                f"The operator {node.op_type} of the node '{node.name}' is not in ONNX's operator set {version}.",
                "Export the model with ONNX's own operators only.",
            ) from error
    if needed > NEWEST:
        raise ModelError(
            f"The model needs operator set {needed}; the newest that can be compiled is {NEWEST}.",
            f"Export the model with operator set {NEWEST} or older.",
        )
    model.opset_import[0].version = needed
    model.ir_version = max(_IR, helper.find_min_ir_version_for(list(model.opset_import)))
