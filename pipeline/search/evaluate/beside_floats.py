"""Estimate the memory of a quantised model and its float twin, by TVM's default sequence."""

from __future__ import annotations

import onnx
from tvm.ir import IRModule

from ...errors import ModelError
from ...frontend.canonicalise import canonicalize
from ...frontend.imported_model import ImportedModel, port_names
from ...frontend.quantised.float_twin import float_twin, has_numbers, integer_share
from ...frontend.relax.to_relax import to_relax
from ...memory.footprint import BesideFloats, RamAndWeights
from ...targets import Target
from .candidates import Candidate
from .evaluation import Evaluator


def beside_floats(imported: ImportedModel, target: Target) -> BesideFloats | None:
    """Return the share of integers and both memories; None for a model without quantised numbers.

    Nothing is searched for, so that the two differ in their dtypes alone.
    """
    if not has_numbers(imported.onnx):
        return None
    try:
        twin = canonicalize(float_twin(imported.onnx))
        floats = _memory(to_relax(twin), twin, imported.name, target)
    except ModelError:  # integers that are more than quantised numbers have no float form
        floats = None
    own = _memory(imported.graph, imported.onnx, imported.name, target)
    return BesideFloats(integer_share(imported.onnx), own, floats)


def _memory(graph: IRModule, model: onnx.ModelProto, name: str, target: Target) -> RamAndWeights | None:
    evaluator = Evaluator(graph, name, target, *port_names(model))
    try:
        found = evaluator.evaluate(Candidate().passes).footprint
    finally:
        evaluator.close()
    return None if found is None else RamAndWeights(found.ram, found.weights)
