"""Leave out the QuantizeLinear of inputs and the DequantizeLinear of outputs, exactly: the integers become the ports.

    x ─► Transpose ─┬► QuantizeLinear ─► a        becomes      x ─► Transpose ─► a, b
                    └► QuantizeLinear ─► b

Only elements may move between: where x is read as a float too, it stays one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...source.keep_outputs import drop_unneeded, reads
from ...traits import VIEWS
from ..node_builder import Names
from ..read_onnx import node_title, operator_set
from ..shapes import constant_tensors
from .values import dtype_name, rename_reads, rename_result, static_sizes, write_type

if TYPE_CHECKING:
    import onnx

#: operators that pass elements on, unchanged: the scale of their result is that of their first operand
MOVES = VIEWS | {"Identity", "MaxPool", "Slice", "Transpose"}
#: first operator set in which all of these move bytes, and those that do not before
_BYTES, _OF_FLOATS = 12, frozenset({"Flatten", "MaxPool"})
#: operators that read no element
_SIZES = ("Shape", "Size")


class Scale(NamedTuple):
    """Scale, zero point and dtype of a quantisation."""

    scale: float
    zero_point: int
    dtype: str

    @property
    def form(self) -> dict[str, Any]:
        """Return the entries of a port's form."""
        return {"dtype": self.dtype, "quantised": True, "scale": self.scale, "zero_point": self.zero_point}


def integer_input(model: onnx.ModelProto, name: str) -> dict[str, Any] | str:
    """Make the input `name` the integers that its QuantizeLinear nodes make, in place; return its form, or why it stays."""
    graph = model.graph
    value = next(each for each in graph.input if each.name == name)
    if dtype_name(value) not in ("float32", "float16"):
        return ""
    moves: list[onnx.NodeProto] = []
    ends: list[onnx.NodeProto] = []
    for node in _readers(graph, name, _byte_moves(model), moves):
        if node.op_type != "QuantizeLinear":
            return f"the {node_title(node)} reads it"
        ends.append(node)
    constants = constant_tensors(graph)
    scales = {scale_at(node, constants) for node in ends}
    if len(scales) != 1:
        return "its QuantizeLinear nodes have several scales" if scales else "no QuantizeLinear reads it"
    scale = scales.pop()
    if scale is None:
        return f"the {node_title(ends[0])} has a scale for each channel, or one that is computed"
    inside = {each for node in moves for each in node.output} | {name}
    outputs = {each.name for each in graph.output}
    if inside & outputs:
        return "it is an output as well"
    shape, kind = static_sizes(value), dtype_name(value)
    for node in ends:
        if node.output[0] in outputs:
            result, source = node.output[0], node.input[0]
            node.Clear()
            node.op_type = "Identity"
            node.input.append(source)
            node.output.append(result)
        else:
            rename_reads(graph, node.output[0], node.input[0])
            graph.node.remove(node)
    for index in reversed(range(len(graph.value_info))):
        if graph.value_info[index].name in inside:
            del graph.value_info[index]
    write_type(value, scale.dtype, shape)
    return {
            "shape": shape, "file": {"dtype": kind, "shape": shape}, "axis": 0, "turned": False, "bgr": False,
            "mean": [], "factor": [], **scale.form}  # fmt: skip


def _byte_moves(model: onnx.ModelProto) -> frozenset[str]:
    """Return the operators that move bytes in the operator set of a model."""
    return MOVES if operator_set(model.opset_import) >= _BYTES else MOVES - _OF_FLOATS


def _readers(
    graph: onnx.GraphProto, name: str, through: frozenset[str], moves: list[onnx.NodeProto]
) -> Iterator[onnx.NodeProto]:
    """Yield the readers of a value behind nodes that move its elements, which are added to `moves`."""
    for node in [*graph.node]:
        if name not in reads(node):
            continue
        if node.op_type in through and name == node.input[0] and name not in node.input[1:] and len(node.output) == 1:
            moves.append(node)
            yield from _readers(graph, node.output[0], through, moves)
        elif not (node.op_type in _SIZES and not node.domain):
            yield node


def integer_output(model: onnx.ModelProto, name: str) -> dict[str, Any] | str:
    """Make the output `name` the integers that its DequantizeLinear reads, in place; return its form, or why it stays."""
    graph = model.graph
    value = next(each for each in graph.output if each.name == name)
    if dtype_name(value) not in ("float32", "float16"):
        return ""
    path = last_nodes(graph, name, _byte_moves(model))
    last = path[-1] if path else None
    if last is None or last.op_type != "DequantizeLinear":
        return "no DequantizeLinear makes it" if last is None else f"the {node_title(last)} makes it"
    scale = scale_at(last, constant_tensors(graph))
    if scale is None:
        return f"the {node_title(last)} has a scale for each channel, or one that is computed"
    replace_last(model, name, path, last.input[0])
    shape = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in value.type.tensor_type.shape.dim]
    write_type(value, scale.dtype, shape if value.type.tensor_type.HasField("shape") else None)
    return scale.form


def last_nodes(graph: onnx.GraphProto, name: str, through: frozenset[str]) -> list[onnx.NodeProto]:
    """Trace a value back to its first node with an operator outside of `through`; last node first."""
    makers = {each: node for node in graph.node for each in node.output}
    found: list[onnx.NodeProto] = []
    while name in makers:
        found.append(makers[name])
        if makers[name].op_type not in through:
            break
        name = makers[name].input[0]
    return found


def replace_last(model: onnx.ModelProto, name: str, path: list[onnx.NodeProto], start: str, made: Any = ()) -> None:
    """Make the output `name` anew, in place: the nodes of `path` but its last one, on `start`; others keep theirs.

    Nodes `made` come first. What no output needs any more goes.
    """
    graph, names = model.graph, Names(model.graph)
    kept = names.new(f"{name}/as_in_file")
    rename_result(graph, name, kept)
    nodes = list(made)
    for node in reversed(path[:-1]):
        copied = deepcopy(node)
        copied.name = names.new(f"{name}/{node.op_type}")
        copied.input[0] = start
        start = copied.output[0] = names.new(f"{name}/{node.output[0]}")
        nodes.append(copied)
    if nodes:
        nodes[-1].output[0] = name
    else:
        from onnx import helper

        nodes.append(helper.make_node("Identity", [start], [name], name=names.new(f"{name}/Identity")))
    graph.node.extend(nodes)
    drop_unneeded(graph)


def scale_at(
    node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto], places: tuple[int, int] = (1, 2)
) -> Scale | None:
    """Return the scale at two places among the operands of a node; None if it has several, or no constant one."""
    from onnx import TensorProto, helper, numpy_helper

    given = [constants.get(node.input[each]) for each in places if each < len(node.input) and node.input[each]]
    attributes = {each.name: each for each in node.attribute}
    if any(each is None or each.data_location == TensorProto.EXTERNAL for each in given) or "block_size" in attributes:
        return None
    scale, *zero = (numpy_helper.to_array(each) for each in given if each is not None)
    if scale.size != 1 or any(each.size != 1 for each in zero) or not np.isfinite(scale).all():
        return None
    dtype = zero[0].dtype if zero else np.dtype(np.uint8)
    if not zero and "output_dtype" in attributes and attributes["output_dtype"].i:
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(attributes["output_dtype"].i))
    if dtype.kind not in "iu":
        return None
    return Scale(float(scale.item()), int(zero[0].item()) if zero else 0, dtype.name)
