"""Bring LSTM, GRU and RNN into one form: time first, no result that nothing reads; a single step becomes operators.

    steps > 1     one node, one kernel with a loop over the steps: frontend/relax/recurrent/kernel.py
    one step      plain operators, which fuse and split like all others: recurrent_step.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ModelError
from .folding.fold_constants import fold
from .last_steps import read_last_steps
from .node_builder import NodeBuilder, attributes_of, spliced, stem_of
from .operators.recurrent_activations import fault_of_activations
from .read_onnx import all_nodes, node_title
from .recurrent_step import RECURRENT, is_one_step, one_step
from .shapes import infer_shapes, static_shape, value_types

if TYPE_CHECKING:
    import onnx

#: operands with (batch, directions, hidden) where the batch comes first: starting h and c
_STATES = (5, 6)


def canonical_recurrent(model: onnx.ModelProto) -> onnx.ModelProto:
    """Bring the recurrent nodes of `model` (with inferred shapes) into canonical form.

    Raises ModelError for forms that are not covered.
    """
    if not any(node.op_type in RECURRENT for node in model.graph.node):
        return model
    shorter = read_last_steps(model)
    if shorter is not model:
        model = infer_shapes(fold(shorter))
    nodes = {index: node for index, node in enumerate(model.graph.node) if node.op_type in RECURRENT}
    from onnx import numpy_helper

    given = {name for node in nodes.values() for name in node.input[1:]}
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name in given}
    types = value_types(model.graph)
    read = {name for node in all_nodes(model.graph) for name in node.input} | {each.name for each in model.graph.output}
    made = {index: _canonical(node, index, constants, types, read) for index, node in nodes.items()}
    return spliced(model, made)


def _canonical(
    node: onnx.NodeProto,
    index: int,
    constants: dict[str, np.ndarray],
    types: dict[str, onnx.TypeProto],
    read: set[str],
) -> NodeBuilder:
    attributes = attributes_of(node)
    inputs = [*node.input, *[""] * (8 - len(node.input))]
    outputs = [name if name in read else "" for name in node.output]
    shape = static_shape(types[inputs[0]]) if inputs[0] in types else None
    _refuse_forms(node, attributes, shape)
    batch_first = bool(attributes.get("layout", 0))
    build = NodeBuilder(stem_of(node, index))
    if batch_first:
        for place in (0, *_STATES):
            if inputs[place]:
                inputs[place] = build.node("Transpose", inputs[place], perm=[1, 0, 2])
        shape = (shape[1], shape[0], shape[2])
    if is_one_step(attributes, inputs, constants, shape):
        made = one_step(build, node.op_type, attributes, inputs, constants, shape)
    else:
        kept = {name: value for name, value in attributes.items() if name != "layout"}
        made = _looped(build, node.op_type, kept, inputs, [bool(name) for name in outputs])
    for place, (name, value) in enumerate(zip(outputs, made)):
        perm = [2, 0, 1, 3] if place == 0 else [1, 0, 2]
        if name and batch_first:
            build.node("Transpose", value, result=name, perm=perm)
        elif name:
            build.node("Identity", value, result=name)
    return build


def _looped(
    build: NodeBuilder, op: str, attributes: dict[str, Any], inputs: list[str], wanted: list[bool]
) -> list[str]:
    while not inputs[-1]:
        inputs = inputs[:-1]
    results = build.many(op, inputs, len(wanted), **attributes)
    for place, each in enumerate(wanted):
        if not each:
            build.nodes[-1].output[place] = ""
    return results


def _refuse_forms(node: onnx.NodeProto, attributes: dict[str, Any], shape: tuple[int, ...] | None) -> None:
    if shape is None:
        _refuse(node, "its number of steps is not static", "Give the inputs static shapes (--shape).")
    why = fault_of_activations(attributes)
    if why:
        _refuse(node, why, "Give it activations of ONNX's list, each with its numbers.")


def _refuse(node: onnx.NodeProto, why: str, hint: str) -> None:
    raise ModelError(f"The {node_title(node)} cannot be compiled: {why}.", hint)
