"""Declare the operator sets that files with ONNX Runtime's operators leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ModelError
from ..canonical.opset import NEWEST
from ..canonical.read_onnx import all_nodes

if TYPE_CHECKING:
    import onnx

#: ONNX Runtime's own domain, whose operators it reads without a declaration
CONTRIB = "com.microsoft"
_ONNX = frozenset({"", "ai.onnx"})


def declare_sets(model: onnx.ModelProto) -> None:
    """Declare, in place, ONNX's operator set and that of ONNX Runtime's own operators where a file does not.

    ONNX Runtime reads a domain without a version in its newest one. Raises ModelError for a file that declares no set.
    """
    declared = {each.domain for each in model.opset_import}
    if not declared:
        raise ModelError("The model does not declare its ONNX operator set.", "Export the model again.")
    inside = [node for function in model.functions for node in function.node]
    used = {node.domain for node in (*all_nodes(model.graph), *inside)}
    if CONTRIB in used - declared:
        model.opset_import.add(domain=CONTRIB, version=1)
    if not declared & _ONNX:
        model.opset_import.add(domain="", version=NEWEST)
    for each in model.opset_import:
        if each.domain in _ONNX and each.version < 1:
            raise ModelError(f"The model declares ONNX's operator set {each.version}, which does not exist.", "Export the model again.")
