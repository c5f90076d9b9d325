"""Describe the form of a node, and find the first node that a converter refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from .node_builder import attributes_of, replace_nodes

if TYPE_CHECKING:
    import onnx

#: most letters shown of an attribute
_LONGEST = 40


class UnsupportedForm(Exception):
    """Reason of ours why a node cannot be compiled, as the end of a sentence, and the next step if it is this form's own."""

    def __init__(self, why: str, step: str = "") -> None:
        super().__init__(why)
        self.step = step


def form_of(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> str:
    """Return the operands and attributes of a node, such as "float32 2x3 and int64 1, with axis=1".

    Required attributes that it lacks are named too.
    """
    operands = [_word(types.get(name)) for name in node.input if name]
    attributes = [f"{name}={_show(value)}" for name, value in sorted(attributes_of(node).items())]
    said = " and ".join(filter(None, (", ".join(operands[:-1]), *operands[-1:]))) or "no operands"
    said = f"{said}, with {', '.join(attributes)}" if attributes else said
    lacking = _lacking(node)
    return f"{said}, without {' and '.join(lacking)}" if lacking else said


def _lacking(node: onnx.NodeProto) -> list[str]:
    """List the attributes that the newest form of the operator requires, and the node lacks."""
    from onnx import defs

    if not defs.has(node.op_type, node.domain):
        return []
    given = {attribute.name for attribute in node.attribute}
    schema = defs.get_schema(node.op_type, node.domain)
    return sorted(name for name, attribute in schema.attributes.items() if attribute.required and name not in given)


def foreign_dtype(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], opset: int) -> tuple[str, str] | None:
    """Return a dtype that the node's operator set has not for an operand, and the next step; None if it has them all."""
    from onnx import TensorProto, defs

    if not defs.has(node.op_type, opset, node.domain):
        return None
    forms = [
        each for each in defs.get_all_schemas_with_history() if (each.name, each.domain) == (node.op_type, node.domain)
    ]
    for place, name in enumerate(filter(None, node.input)):
        element = types[name].tensor_type.elem_type if name in types else TensorProto.UNDEFINED
        given = TensorProto.DataType.Name(element).lower()
        taken = {form.since_version: _taken(form, place) for form in sorted(forms, key=lambda form: form.since_version)}
        own = taken[defs.get_schema(node.op_type, opset, node.domain).since_version]
        if element and own and given not in own:
            later = [version for version, dtypes in taken.items() if version > opset and given in dtypes]
            if later:
                return given, f"Export the model with operator set {later[0]}."
            return given, f"Cast it to {', '.join(sorted(own))} before."
    return None


def _taken(form: onnx.defs.OpSchema, place: int) -> set[str]:
    """Return the dtypes of tensors that an operator takes at a place."""
    operands = form.inputs[min(place, len(form.inputs) - 1) :][:1]
    return {dtype[7:-1] for each in operands for dtype in each.types if dtype.startswith("tensor(")}


def _word(kind: onnx.TypeProto | None) -> str:
    from onnx import TensorProto, helper

    if kind is None or not kind.HasField("tensor_type"):
        return "a value of unknown type" if kind is None else "no tensor"
    number = kind.tensor_type.elem_type
    known = number in TensorProto.DataType.values() and number not in (TensorProto.UNDEFINED, TensorProto.STRING)
    dtype = (
        str(helper.tensor_dtype_to_np_dtype(number))
        if known
        else "string"
        if number == TensorProto.STRING
        else "unknown"
    )
    if not kind.tensor_type.HasField("shape"):
        return dtype
    sizes = [str(dim.dim_value) if dim.HasField("dim_value") else "?" for dim in kind.tensor_type.shape.dim]
    return f"{dtype} {'x'.join(sizes) or 'scalar'}"


def _show(value: Any) -> str:
    said = " ".join(str(value).split()) if isinstance(value, (bool, int, float, str, list)) else "…"
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"


def first_refused(
    model: onnx.ModelProto, convert: Callable[[onnx.ModelProto], object], failures: tuple[type[Exception], ...]
) -> onnx.NodeProto | None:
    """Return the first node that `convert` refuses by one of `failures`, given the nodes before it; None if it takes all."""
    nodes = list(model.graph.node)
    part = deepcopy(model)
    del part.graph.output[:]

    def passes(count: int) -> bool:
        replace_nodes(part.graph, nodes[:count])
        try:
            convert(part)
        except failures:
            return False
        return True

    if not nodes or passes(len(nodes)):
        return None
    low, high = 0, len(nodes)  # the first `low` nodes are taken, the first `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return nodes[low]
