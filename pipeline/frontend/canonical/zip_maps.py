"""Make tables of ZipMap's sequences of maps, which no library of C can return: the numbers stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def unzip_maps(model: onnx.ModelProto, domain: str) -> None:
    """Replace each ZipMap of the domain `domain` by Identity, in place: a column for each class, in the order of its classes.

    Converters of scikit-learn write one behind every classifier, unless told otherwise (`options={"zipmap": False}`).
    """
    from onnx import TensorProto

    unzipped = set()
    for node in model.graph.node:
        if node.op_type == "ZipMap" and node.domain == domain:
            node.op_type, node.domain = "Identity", ""
            del node.attribute[:]
            unzipped.add(node.output[0])
    for value in model.graph.output:
        if value.name in unzipped:
            value.type.Clear()
            value.type.tensor_type.elem_type = TensorProto.FLOAT
