"""Convert canonical ONNX to a Relax graph, with variables named after their ONNX nodes.

TVM's own importer does the work. It is entered by its class rather than by `from_onnx`, so that every variable it emits
is named after the ONNX node (importer.py; provenance.py reads the names back).
"""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import TYPE_CHECKING

from ..canonical.node_form import UnsupportedForm
from ..canonical.read_onnx import operator_set, refuse
from ..canonical.shapes import static_shape
from ..refuse.operators import refuse_unsupported
from .plain_dequantisation import plain_dequantisations

if TYPE_CHECKING:
    import onnx
    import tvm


def to_relax(model: onnx.ModelProto) -> tvm.IRModule:
    """Convert a canonical model to Relax: one function `main`, ports in the model's order.

    Initializers become constants. Raises ModelError, naming the node, if TVM's importer does not take its form; another error is a bug.
    """
    from .importer import NodeImporter

    refuse_unsupported(model)
    model = plain_dequantisations(model)
    shapes = {value.name: static_shape(value.type) for value in model.graph.input}
    importer = NodeImporter({name: list(shape) for name, shape in shapes.items() if shape is not None})
    said = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(said):
        # It warns of renamed inputs and prints the inputs of a failing node; the errors here say both better.
        warnings.simplefilter("ignore")
        try:
            return importer.from_onnx(model.graph, operator_set(model.opset_import))
        except UnsupportedForm as error:
            assert importer.node is not None
            what = f"cannot be compiled: {error}"
            refuse(importer.node, what, "Replace it by simpler operators before exporting the model.")
