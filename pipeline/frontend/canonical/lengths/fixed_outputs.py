"""Give the outputs of a file the shapes that its library has: zeros behind their lengths, and the lengths beside them.

The file is the reference of every comparison. With this it returns what the library does, whatever compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from ..node_builder import Names, NodeBuilder
from ..ports.apply import port_forms, write_forms
from ..ports.values import rename_result
from ..read_onnx import operator_set
from ..shapes import static_shape

if TYPE_CHECKING:
    import onnx

#: the first operator set whose Slice has its bounds as operands
_SLICED = 10


def fix_outputs(given: onnx.ModelProto, canonical: onnx.ModelProto) -> onnx.ModelProto:
    """Return `given` with the outputs of `canonical`, its import; `given` itself where the data decide no length."""
    forms = port_forms(canonical)
    outputs = {value.name: value for value in canonical.graph.output}
    lengths = {name: forms["outputs"][name]["length"] for name in outputs if "length" in forms["outputs"].get(name, {})}
    present = {value.name for value in given.graph.output}
    if all(length["output"] in present for length in lengths.values()):
        return given
    fixed = deepcopy(given)
    names = Names(fixed.graph)
    for name, length in lengths.items():
        shape = static_shape(outputs[name].type) or ()
        build = NodeBuilder(name, names)
        made = names.new(f"{name}/open")
        rename_result(fixed.graph, name, made)
        _fill(
            build, made, name, length, shape, outputs[name].type.tensor_type.elem_type, operator_set(given.opset_import)
        )
        next(value for value in fixed.graph.output if value.name == name).CopyFrom(outputs[name])
        fixed.graph.output.append(outputs[length["output"]])
        fixed.graph.node.extend(build.nodes)
        fixed.graph.initializer.extend(build.initializers)
    write_forms(fixed, forms)
    return fixed


def _fill(
    build: NodeBuilder,
    made: str,
    name: str,
    length: Mapping[str, object],
    shape: tuple[int, ...],
    element: int,
    version: int,
) -> None:
    """Build the output and its length, int64 [1], of at most the bound."""
    from onnx import helper

    axis = int(str(length["axis"]))
    if version < _SLICED:
        cut = build.node("Slice", made, starts=[0], ends=[shape[axis]], axes=[axis])
    else:
        cut = build.node("Slice", made, *(build.integers(each) for each in (0, shape[axis], axis)))
    valid = build.node("Gather", build.node("Shape", cut), build.integers(axis), axis=0, result=str(length["output"]))
    rest = build.node("Sub", build.integers(shape[axis]), valid)
    sizes = [rest if place == axis else build.integers(size) for place, size in enumerate(shape)]
    zero = helper.make_tensor("zero", element, [1], np.zeros(1, helper.tensor_dtype_to_np_dtype(element)))
    zeros = build.node("ConstantOfShape", build.node("Concat", *sizes, axis=0), value=zero)
    build.node("Concat", cut, zeros, axis=axis, result=name)
