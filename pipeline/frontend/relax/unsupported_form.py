"""Say of a node that it cannot be compiled: by our own reason, or by its form where only TVM's importer knows one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..canonical.node_builder import attributes_of

if TYPE_CHECKING:
    import onnx

#: most letters of an attribute's value
_LONGEST = 40


class UnsupportedForm(Exception):
    """Reason of ours why a node cannot be compiled, as the end of a sentence."""


def describe_form(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> str:
    """Describe the operands and attributes of a node; TVM's reasons are assertions and dumps of its own objects."""
    operands = ", ".join(_operand(types.get(name)) for name in node.input if name)
    values = {name: value for name, value in attributes_of(node).items() if isinstance(value, (int, float, str, list))}
    attributes = ", ".join(f"{name} {str(value)[:_LONGEST]}" for name, value in sorted(values.items()))
    said = f"operands {operands}" if operands else "no operands"
    return f"its form is not supported ({said}; {attributes})" if attributes else f"its form is not supported ({said})"


def _operand(kind: onnx.TypeProto | None) -> str:
    from onnx import TensorProto

    if kind is None:
        return "of unknown type"
    shape = "×".join(str(dim.dim_value) for dim in kind.tensor_type.shape.dim)
    return f"{TensorProto.DataType.Name(kind.tensor_type.elem_type).lower()} {shape or 'scalar'}"
