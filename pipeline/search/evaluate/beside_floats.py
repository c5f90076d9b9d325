"""Estimate the memory of a quantised model and its float twin, by TVM's default sequence."""

from __future__ import annotations

import onnx
import tvm
from tvm import relax
from tvm.ir import Call, IRModule, Op

from ...errors import ModelError
from ...frontend.canonicalise import canonicalize
from ...frontend.imported_model import ImportedModel, port_names
from ...frontend.quantised.float_twin import float_twin, has_numbers, integer_share
from ...frontend.relax.to_relax import to_relax
from ...memory.footprint import BesideFloats, RamAndWeights
from ...passes.graph.folding.constant_folder import fold_constants
from ...passes.graph.rules.dataflow import bindings_of
from ...targets import Target
from ...tir import HOST
from .candidates import Candidate
from .evaluation import Evaluator

#: names of inputs and outputs
Ports = tuple[list[str], list[str]]


def beside_floats(imported: ImportedModel, target: Target) -> BesideFloats | None:
    """Return the share of integers and both memories; None for a model without quantised numbers.

    Nothing is searched for, so that the two differ in their dtypes alone.
    """
    if not has_numbers(imported.onnx):
        return None
    try:
        floats = _memory(*_twin(imported.onnx), imported.name, target)
    except ModelError:  # integers that are more than quantised numbers have no float form
        floats = None
    own = _memory(imported.graph, port_names(imported.onnx), imported.name, target)
    return BesideFloats(integer_share(imported.onnx), own, floats)


def _twin(model: onnx.ModelProto) -> tuple[IRModule, Ports]:
    """Return the graph of the float twin, and its ports: its file is freed before the weights become floats."""
    twin = canonicalize(float_twin(model))
    return _fold_weights(to_relax(twin)), port_names(twin)


def _fold_weights(module: IRModule) -> IRModule:
    """Dequantise the weights of a float twin, which has no other numbers."""
    calls = (binding.value for binding in bindings_of(module["main"]) if isinstance(binding.value, Call))
    others = {call.op.name for call in calls if isinstance(call.op, Op)} - {"relax.dequantize"}
    with tvm.target.Target(HOST):
        legal = relax.transform.LegalizeOps(skip_ops=sorted(others))(module)
    return fold_constants(legal, may_grow=True)


def _memory(graph: IRModule, ports: Ports, name: str, target: Target) -> RamAndWeights | None:
    evaluator = Evaluator(graph, name, target, *ports)
    try:
        found = evaluator.evaluate(Candidate().passes).footprint
    finally:
        evaluator.close()
    return None if found is None else RamAndWeights(found.ram, found.weights)
