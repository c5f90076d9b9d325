"""Declare the operator sets that files with ONNX Runtime's operators leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ModelError
from .read_onnx import ONNX_DOMAINS, all_nodes, operator_set

if TYPE_CHECKING:
    import onnx

#: ONNX Runtime's own domain, whose operators it reads without a declaration
CONTRIB = "com.microsoft"


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
    if version < 1:
        raise ModelError(
            f"The model declares ONNX's operator set {version}, which does not exist.", "Export the model again."
        )
    others = [each for each in model.opset_import if each.domain not in ONNX_DOMAINS]
    del model.opset_import[:]
    model.opset_import.add(domain="", version=version)
    model.opset_import.extend(others)
