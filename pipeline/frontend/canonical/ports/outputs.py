"""Give outputs the form in which the device reads them: logits, the index of the largest number, integers, channels last.

The steps go behind the file's own nodes, in this order: without the last Softmax, argmax or the top, layout, quantisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ModelError
from ....params.ports import OutputPort
from ..bind_shapes import dimensions
from ..node_builder import Names, NodeBuilder
from ..read_onnx import operator_set
from ..shapes import infer_what_is_open
from .inputs import TO_DEVICE
from .integers import MOVES, integer_output, last_nodes, replace_last
from .values import dtype_name, rename_result, write_type

if TYPE_CHECKING:
    import onnx

#: what makes probabilities of logits; ONNX Runtime's form for integers reads their scale and zero point too
_PROBABILITIES = frozenset({"Softmax", "LogSoftmax", "Sigmoid", "QLinearSoftmax", "QLinearSigmoid"})
_PAIRS = frozenset({"QuantizeLinear", "DequantizeLinear"})
#: first operator sets with QuantizeLinear, with more than bytes in it, with TopK of an operand, and Unsqueeze, Squeeze of one
_QUANTISES, _WIDE, _TOP = 10, 21, 10


def convert_output(model: onnx.ModelProto, name: str, port: OutputPort) -> dict[str, Any]:
    """Give the output `name` of `model` the form of `port`, in place; return the form. Raises ModelError."""
    chosen = port.argmax or port.top is not None
    if port.argmax and port.top is not None:
        raise ModelError(f"The output '{name}' has argmax and top.", "Give one of them.")
    if chosen and (port.scale is not None or port.zero_point is not None or port.layout):
        raise ModelError(f"The output '{name}' is an index: it has no scale or layout.", "Leave them out.")
    form: dict[str, Any] = {}
    if port.logits:
        form |= {"logits": _leave_out_probabilities(model, name)}
    computed = port.scale is not None or port.zero_point is not None
    if port.dtype is not None and np.dtype(port.dtype).kind in "iu" and not computed:
        form |= _raw(model, name, port.dtype)
    if chosen:
        form |= _index(model, name, port)
    if port.layout:
        form |= _channels_last(model, name)
    if computed or (port.dtype in ("float16", "float32") and not chosen):
        form |= _written(model, name, port)
    return form


def _leave_out_probabilities(model: onnx.ModelProto, name: str) -> str:
    """Leave out the last node that makes probabilities; return its operator."""
    graph = model.graph
    path = last_nodes(graph, name, MOVES - {"MaxPool"} | _PAIRS)
    if not path or path[-1].op_type not in _PROBABILITIES:
        last = f"its last node is {path[-1].op_type}" if path else "no node makes it"
        raise ModelError(
            f"The output '{name}' has no last Softmax, LogSoftmax or Sigmoid: {last}.", "Leave logits out."
        )
    end, build = path[-1], NodeBuilder(name, Names(graph))
    start = end.input[0]
    if end.op_type.startswith("QLinear"):
        start = build.node("DequantizeLinear", *end.input[:3])
    replace_last(model, name, [node for node in path if node.op_type not in _PAIRS], start, build.nodes)
    return end.op_type


def _raw(model: onnx.ModelProto, name: str, dtype: str) -> dict[str, Any]:
    """Leave out the last DequantizeLinear, if it reads numbers of `dtype`."""
    found = integer_output(model, name)
    made = dtype_name(_value(model, name))
    if made != dtype:
        why = f"it is {made}" if not isinstance(found, str) or not found else found
        raise ModelError(
            f"The output '{name}' is not {dtype} in the file: {why}.",
            f"Give scale and zero point: --output {name}={dtype},scale=…,zero-point=….",
        )
    return {} if isinstance(found, str) else found


def widen_output(model: onnx.ModelProto, name: str, dtype: str) -> dict[str, Any]:
    """Cast the output `name` of `model` to a wider dtype, in place; return the form."""
    value, build, made, shape = _renamed(model, name)
    build.cast(made, dtype, name)
    _finish(model, build, value, dtype, shape)
    return {"dtype": dtype}


def _index(model: onnx.ModelProto, name: str, port: OutputPort) -> dict[str, Any]:
    value, build, made, shape = _renamed(model, name)
    axis = port.axis if port.axis is not None else 1 if len(shape) > 3 else len(shape) - 1
    if not 0 <= axis < len(shape):
        raise ModelError(f"The output '{name}' has no axis {axis}: it has {len(shape)}.", "Give another axis.")
    version = operator_set(model.opset_import)
    if port.argmax:
        index, kept = build.node("ArgMax", made, axis=axis, keepdims=0), [*shape[:axis], *shape[axis + 1 :]]
    else:
        top, size = port.top or 1, shape[axis]
        if isinstance(size, int) and top > size:
            raise ModelError(
                f"The output '{name}' has {size} numbers along axis {axis}: no {top} largest.", "Give fewer."
            )
        if version < _TOP:
            index = build.many("TopK", [made], 2, axis=axis, k=top)[1]
        else:
            index = build.many("TopK", [made, build.integers(top)], 2, axis=axis)[1]
        kept = [*shape[:axis], top, *shape[axis + 1 :]]
    build.cast(index, "int32", name)
    _finish(model, build, value, "int32", kept)
    return {"dtype": "int32", "axis": axis, "quantised": False, "index": "argmax" if port.argmax else f"top {port.top}"}


def _channels_last(model: onnx.ModelProto, name: str) -> dict[str, Any]:
    value, build, made, shape = _renamed(model, name)
    dtype = dtype_name(value)
    if len(shape) != 4:
        raise ModelError(
            f"The output '{name}' has {len(shape)} axes, and nhwc is a form of four.", "Leave the layout out."
        )
    build.node("Transpose", made, result=name, perm=list(TO_DEVICE))
    _finish(model, build, value, dtype, [shape[each] for each in TO_DEVICE])
    return {"last": True}


def _written(model: onnx.ModelProto, name: str, port: OutputPort) -> dict[str, Any]:
    """Quantise an output, or cast it to other floats."""
    value, build, made, shape = _renamed(model, name)
    was = dtype_name(value)
    version, dtype = operator_set(model.opset_import), port.dtype or "int8"
    if np.dtype(dtype).kind == "f":
        build.cast(made, dtype, name)
        form: dict[str, Any] = {}
    else:
        if np.dtype(was).kind != "f":
            raise ModelError(f"The output '{name}' is {was} in the file: no floats to quantise.", "Leave scale out.")
        if version < _QUANTISES or (version < _WIDE and np.dtype(dtype).itemsize > 1) or dtype == "int32":
            raise ModelError(
                f"The file's operator set {version} does not quantise to {dtype}, which the output '{name}' has.",
                "Choose int8, or export the model with operator set 21.",
            )
        scale, zero = port.scale or 1.0, port.zero_point or 0
        limits = np.iinfo(dtype)
        if not limits.min <= zero <= limits.max:
            raise ModelError(f"The zero point {zero} of the output '{name}' is not {dtype}.", "Give another one.")
        if was != "float32":
            made = build.cast(made, "float32")
        constants = build.number(scale, np.float32), build.number(zero, dtype)
        build.node("QuantizeLinear", made, *constants, result=name)
        form = {"quantised": True, "scale": scale, "zero_point": zero}
    _finish(model, build, value, dtype, shape)
    return {"dtype": dtype, **form}


def _value(model: onnx.ModelProto, name: str) -> onnx.ValueInfoProto:
    return next(each for each in model.graph.output if each.name == name)


def _renamed(model: onnx.ModelProto, name: str) -> tuple[onnx.ValueInfoProto, NodeBuilder, str, list[int | str]]:
    """Rename the value of an output, in place; return its port, a builder for the nodes behind it, its new name, its sizes."""
    graph, value = model.graph, _value(model, name)
    shape = _sizes(model, value)
    build = NodeBuilder(name, Names(graph))
    made = build.names.new(f"{name}/as_in_file")
    if any(each.name == name for each in (*graph.input, *graph.initializer)):
        return value, build, name, shape
    rename_result(graph, name, made)
    return value, build, made, shape


def _sizes(model: onnx.ModelProto, value: onnx.ValueInfoProto) -> list[int | str]:
    """Return the sizes of an output, of which some may be open. Raises ModelError without a rank."""
    found = dimensions(value)
    if found is None:
        copy = deepcopy(model)
        inferred = infer_what_is_open(copy)
        found = next(dimensions(each) for each in inferred.graph.output if each.name == value.name)
    if found is None:
        raise ModelError(f"The output '{value.name}' has no shape in the file.", "Leave its form as it is in the file.")
    return found


def _finish(
    model: onnx.ModelProto, build: NodeBuilder, value: onnx.ValueInfoProto, dtype: str, shape: Sequence[int | str]
) -> None:
    """Add the nodes behind the file's own, which make the output `value` in its new form."""
    write_type(value, dtype, shape)
    model.graph.node.extend(build.nodes)
    model.graph.initializer.extend(build.initializers)
