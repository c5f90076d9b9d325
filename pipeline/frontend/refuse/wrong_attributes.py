"""Refuse attributes that ONNX does not define, or of another type, or no groups: readers would take a text for a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..canonical.read_onnx import ONNX_DOMAINS, all_nodes, operator_set, refuse

if TYPE_CHECKING:
    import onnx


def refuse_wrong_attributes(model: onnx.ModelProto) -> None:
    """Check the names and types of all attributes against their operators, axes and numbers of groups. Raises ModelError for the first."""
    from onnx import AttributeProto, defs

    version, names = operator_set(model.opset_import), AttributeProto.AttributeType.Name
    for node in all_nodes(model.graph):
        if node.domain not in ONNX_DOMAINS or not defs.has(node.op_type, version):
            continue
        known = defs.get_schema(node.op_type, version).attributes
        for attribute in node.attribute:
            if attribute.name.startswith("__"):  # internal symbols, which ONNX leaves unchecked
                continue
            if attribute.name not in known:
                refuse(node, f"has an attribute '{attribute.name}', which operator set {version} does not define")
            wanted = int(known[attribute.name].type.value)
            if AttributeProto.UNDEFINED not in (attribute.type, wanted) and attribute.type != wanted:
                refuse(
                    node, f"has the attribute '{attribute.name}' of type {names(attribute.type)}, not {names(wanted)}"
                )
            if attribute.name in ("axis", "axes") and any(
                each >> 31 not in (0, -1) for each in (attribute.i, *attribute.ints)
            ):
                # ONNX's inference takes their low bits
                refuse(node, f"has {attribute.name}={attribute.i or [*attribute.ints]}, which no tensor has")
            if attribute.name == "group" and attribute.i < 1:
                refuse(node, f"has group={attribute.i}, not 1 or more")
