"""Give outputs of a file the bounds of its library, zeros behind their lengths, and the lengths.

The file is the reference of every comparison. With this it returns what the library does, whatever compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from ..node_builder import Names, NodeBuilder, attributes_of, replace_nodes
from ..ports.apply import length_forms, port_forms, write_forms
from ..ports.values import rename_result
from ..read_onnx import operator_set
from ..shapes import static_shape

if TYPE_CHECKING:
    import onnx

#: the first operator set whose Slice has its bounds as operands
_SLICED = 10
#: default axis of the rows of nodes that choose; the results that have them: a bound of the first is one of all, but of a Loop
_AXES = {"Compress": 0, "Loop": 0, "NonMaxSuppression": 0, "NonZero": 1, "TopK": -1, "Unique": 0}
_OF_ROWS = {"TopK": (0, 1), "Unique": (0, 1, 3)}


def bound_results(model: onnx.ModelProto, bounds: Mapping[str, int]) -> None:
    """Cut the results of nodes that choose, and numbers, to their bounds by name, in place: what reads them gets what is left."""
    if not bounds:
        return
    build = NodeBuilder("bound", Names(model.graph))
    for given in model.graph.node:
        node = build.copy(given)
        axis = _AXES.get(node.op_type, 0)
        if node.op_type in ("Compress", "TopK"):
            axis = int(attributes_of(node).get("axis", axis))
        shared = bounds.get(node.output[0], 0) if node.op_type in _OF_ROWS else 0
        for place, name in enumerate(node.output):
            bound = bounds.get(name, shared if place in _OF_ROWS.get(node.op_type, (0,)) else 0)
            if not bound:
                continue
            node.output[place] = whole = build.names.new(f"{name}/whole")
            if node.op_type in _AXES:
                _slice(build, whole, bound, axis, operator_set(model.opset_import), name)
            else:
                most = build.number(bound, np.int64)
                build.node("Where", build.node("Less", whole, most), whole, most, result=name)
    replace_nodes(model.graph, build.nodes)
    model.graph.initializer.extend(build.initializers)


def _slice(build: NodeBuilder, whole: str, end: int, axis: int, version: int, result: str) -> None:
    if version < _SLICED:
        build.node("Slice", whole, result=result, starts=[0], ends=[end], axes=[axis])
    else:
        build.node("Slice", whole, *(build.integers(each) for each in (0, end, axis)), result=result)


def fix_outputs(given: onnx.ModelProto, canonical: onnx.ModelProto) -> onnx.ModelProto:
    """Return `given` with the outputs of `canonical`, its import; `given` itself where the data decide no length."""
    forms = port_forms(canonical)
    outputs = {value.name: value for value in canonical.graph.output}
    found = length_forms(forms)
    lengths = {name: found[name] for name in outputs if name in found}
    present = {value.name for value in given.graph.output}
    if all(length["output"] in present for length in lengths.values()):
        return given
    fixed = deepcopy(given)
    names = Names(fixed.graph)
    for name, length in lengths.items():
        build = NodeBuilder(name, names)
        made = names.new(f"{name}/open")
        rename_result(fixed.graph, name, made)
        _fill(build, made, outputs[name], length)
        next(value for value in fixed.graph.output if value.name == name).CopyFrom(outputs[name])
        fixed.graph.output.append(outputs[length["output"]])
        fixed.graph.node.extend(build.nodes)
        fixed.graph.initializer.extend(build.initializers)
    write_forms(fixed, forms)
    return fixed


def _fill(build: NodeBuilder, made: str, output: onnx.ValueInfoProto, length: Mapping[str, object]) -> None:
    """Build the output of at most the bound, and its length, int64 [1]."""
    from onnx import helper

    axis, shape = int(str(length["axis"])), static_shape(output.type) or ()
    valid = build.node("Gather", build.node("Shape", made), build.integers(axis), axis=0, result=str(length["output"]))
    rest = build.node("Sub", build.integers(shape[axis]), valid)
    sizes = [rest if place == axis else build.integers(size) for place, size in enumerate(shape)]
    element = output.type.tensor_type.elem_type
    zero = helper.make_tensor("zero", element, [1], np.zeros(1, helper.tensor_dtype_to_np_dtype(element)))
    zeros = build.node("ConstantOfShape", build.node("Concat", *sizes, axis=0), value=zero)
    build.node("Concat", made, zeros, axis=axis, result=output.name)
