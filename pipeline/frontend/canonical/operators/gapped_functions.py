"""Give operators that ONNX defines by simpler ones their bodies where an operand is left out before another.

ONNX's inliner finds no body for such nodes; the operator's schema does, and the inliner then takes it as the model's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..opset import EXPANDED
from ..read_onnx import operator_set
from ..shapes import infer_what_is_open, value_types

if TYPE_CHECKING:
    import onnx

#: domain of the functions, gone once they are inlined
_DOMAIN = "passfit.gapped"


def add_gapped_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Make the gapped nodes of the main graph, in place, calls of functions of the model; return it."""
    import onnx
    from onnx import defs

    if not any(map(_is_gapped, model.graph.node)):
        return model
    types = value_types(infer_what_is_open(model).graph)
    version = operator_set(model.opset_import)
    for number, node in enumerate(filter(_is_gapped, model.graph.node)):
        if not defs.has(node.op_type, version):
            continue  # refused by name
        schema = defs.get_schema(node.op_type, version)
        if not schema.has_context_dependent_function or any(name and name not in types for name in node.input):
            continue
        given = [(types[name] if name else onnx.TypeProto()).SerializeToString() for name in node.input]
        body = schema.get_context_dependent_function(node.SerializeToString(), given)
        function = onnx.FunctionProto.FromString(body)
        function.domain, function.name = _DOMAIN, f"{node.op_type}_{number}"
        node.domain, node.op_type = function.domain, function.name
        model.functions.append(function)
    if model.functions:
        model.opset_import.add(domain=_DOMAIN, version=1)
    return model


def _is_gapped(node: onnx.NodeProto) -> bool:
    return node.op_type in EXPANDED and not node.domain and not all(node.input)
