"""Canonical ONNX to a graph: TVM's Relax, each call marked with the ONNX node it comes from.

TVM's own importer does the work. It is entered by its class rather than by `from_onnx`, so that every call it emits
carries a span whose source name is the ONNX node's name (read back by provenance.py).
"""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import TYPE_CHECKING

from ...errors import ModelError
from ..canonical.read_onnx import node_title
from ..canonical.shapes import static_shape
from ..refuse.operators import refuse_unsupported

if TYPE_CHECKING:
    import onnx
    import tvm


#: letters of TVM's reason that are shown: some hold whole objects
_LONGEST = 400


def to_relax(model: onnx.ModelProto) -> tvm.IRModule:
    """The Relax module of a canonical model: one function `main`, inputs and outputs in the model's order.

    Initializers become constants. Raises ModelError where TVM's importer does not take an operator, naming the node.
    """
    import tvm

    from .importer import NodeImporter

    refuse_unsupported(model)
    shapes = {value.name: static_shape(value.type) for value in model.graph.input}
    importer = NodeImporter({name: list(shape) for name, shape in shapes.items() if shape is not None})
    said = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(said):
        # It warns of renamed inputs and prints the inputs of a node it fails on; both are said better here.
        warnings.simplefilter("ignore")
        try:
            return importer.from_onnx(model.graph, model.opset_import[0].version)
        except (
            tvm.error.OpNotImplemented, NotImplementedError, AssertionError, ArithmeticError, AttributeError,
            LookupError, RuntimeError, TypeError, ValueError,
        ) as error:  # fmt: skip
            if importer.node is None:
                raise
            raise ModelError(
                f"The {node_title(importer.node)} cannot be compiled: {_first_line(error)}.",
                "Replace it by simpler operators before exporting the model.",
            ) from error


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = lines[-1] if lines else type(error).__name__
    return (line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …").rstrip(".")
