"""Refuse nodes that lack a required operand, before ONNX's inference: it ends the process at some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ModelError
from ..canonical.read_onnx import CLASSICAL, NEWEST, ONNX_DOMAINS, all_nodes, node_title

if TYPE_CHECKING:
    import onnx


def refuse_lacking_operands(model: onnx.ModelProto) -> None:
    """Check that nodes have the operands that ONNX requires, in functions too. Raises ModelError for the first."""
    from onnx import defs

    single = defs.OpSchema.FormalParameterOption.Single
    for body, imports in ((model.graph, model.opset_import), *((each, each.opset_import) for each in model.functions)):
        versions = {"" if each.domain in ONNX_DOMAINS else each.domain: each.version for each in imports}
        for node in all_nodes(body):
            domain = "" if node.domain in ONNX_DOMAINS else node.domain
            version = versions.get(domain, NEWEST)
            if domain not in ("", CLASSICAL) or not defs.has(node.op_type, version, domain):
                continue
            for place, operand in enumerate(defs.get_schema(node.op_type, version, domain).inputs):
                if operand.option == single and not any(node.input[place : place + 1]):
                    raise ModelError(
                        f"The {node_title(node)} lacks its operand '{operand.name}'.", "Export the model again."
                    )
