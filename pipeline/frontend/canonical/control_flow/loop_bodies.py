"""Change the bodies of loops as models of their own: those of canonical Scans are closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import TYPE_CHECKING

from ...source.keep_outputs import read_from_outside

if TYPE_CHECKING:
    import onnx


def loop_bodies(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield the closed bodies of all Scans of a graph, nested ones too."""
    for body in _own_bodies(graph):
        yield body
        yield from loop_bodies(body)


def change_bodies(model: onnx.ModelProto, change: Callable[[onnx.ModelProto], onnx.ModelProto]) -> onnx.ModelProto:
    """Return `model` with its closed bodies changed as models; the same object if there are none."""
    if next(_own_bodies(model.graph), None) is None:
        return model
    copy = deepcopy(model)
    for body in _own_bodies(copy.graph):
        alone = type(model)(graph=body, opset_import=model.opset_import, ir_version=model.ir_version)
        body.CopyFrom(change(alone).graph)
    return copy


def _own_bodies(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield the closed bodies of the Scans in a graph itself."""
    for node in graph.node:
        for attribute in node.attribute if node.op_type == "Scan" else ():
            if attribute.name == "body" and not read_from_outside(attribute.g):
                yield attribute.g
