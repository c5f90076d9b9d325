"""Change the bodies of loops as models of their own: those of canonical Scans are closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .long_loops import read_from_outside

if TYPE_CHECKING:
    import onnx


def loop_bodies(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield the closed bodies of all Scans of a graph, nested ones too."""
    for node in graph.node:
        for attribute in node.attribute if node.op_type == "Scan" else ():
            if attribute.name == "body" and not read_from_outside(attribute.g):
                yield attribute.g
                yield from loop_bodies(attribute.g)


def with_bodies(model: onnx.ModelProto, change: Callable[[onnx.ModelProto], onnx.ModelProto]) -> onnx.ModelProto:
    """Return `model` with its closed bodies changed as models; the same object if there are none."""
    if next(loop_bodies(model.graph), None) is None:
        return model
    copy = type(model)()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        for attribute in node.attribute if node.op_type == "Scan" else ():
            if attribute.name == "body" and not read_from_outside(attribute.g):
                body = type(model)(graph=attribute.g, opset_import=model.opset_import, ir_version=model.ir_version)
                attribute.g.CopyFrom(change(body).graph)
    return copy
