"""Name the forms of operators that ONNX's evaluator in Python computes wrongly.

Read in onnx 1.23, and compared with ONNX Runtime. A model that only it can run is not verified if it has one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...frontend.canonical.graph_context import NodeView, Values
from ...frontend.canonical.operators.auto_pad import SAME
from ...frontend.canonical.read_onnx import ONNX_DOMAINS, operator_set
from ...frontend.canonical.shapes import infer_what_is_open, value_types, without_values

if TYPE_CHECKING:
    import onnx

#: the set from which on Softmax and its kin work along one axis
_ONE_AXIS = 13


def evaluator_fault(model: onnx.ModelProto) -> str:
    """Say which node of a model the evaluator computes wrongly, and why; "" for none."""
    if not any(node.op_type in _RULES for node in model.graph.node):
        return ""
    types = value_types(infer_what_is_open(without_values(model)).graph)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    values = Values(types, constants, operator_set(model.opset_import))
    for node in model.graph.node:
        known = node.op_type in _RULES and node.domain in ONNX_DOMAINS
        if known and (why := _RULES[node.op_type](NodeView(node, values))):
            return f"ONNX's evaluator computes {node.op_type} wrongly: {why}"
    return ""


def _softmax(node: NodeView) -> str:
    last = node.rank(0) is not None and node.get("axis", 1) in (-1, (node.rank(0) or 0) - 1)
    return "" if node.graph.opset >= _ONE_AXIS or last else "along one axis, in a set that means all from there on"


def _pool(node: NodeView) -> str:
    """Compare paddings of SAME: for ONNX Runtime and the library dilations do not count, and windows may begin inside."""
    if node.get("auto_pad") not in SAME:
        return ""
    if any(each > 1 for each in node.get("dilations", ())):
        return "its paddings count dilations"
    strides = node.get("strides", ())
    apart = any(stride - kernel > 1 for stride, kernel in zip(strides, node.attributes["kernel_shape"]))
    return "its windows begin at the edge" if apart else ""


def _norm_pool(node: NodeView) -> str:
    ends = node.get("ceil_mode") or node.get("auto_pad") in SAME
    return "by a mean, which has fewer elements at an end" if ends else ""


def _whole_maximum(node: NodeView) -> str:
    return "" if node.rank(0) == 4 else "over two dimensions, whatever its rank"


def _recurrent(node: NodeView) -> str:
    ignored = [name for name in ("activations", "clip", "input_forget") if node.get(name)]
    if node.name(4):
        ignored.append("sequence_lens")
    return f"without {', '.join(ignored)}" if ignored else ""


def _grid_sample(node: NodeView) -> str:
    cubic = node.get("mode") in ("bicubic", "cubic") and node.get("padding_mode") == "border"
    return "with cubic samples that begin at a border" if cubic else ""


def _resize(node: NodeView) -> str:
    shape, scales = node.shape(0), node.constant(2)
    if node.get("coordinate_transformation_mode") != "align_corners" or scales is None or shape is None:
        return ""
    sizes = [shape[axis] * float(scale) for axis, scale in zip(node.get("axes", range(len(shape))), scales)]
    return "with corners of fractional sizes" if any(not size.is_integer() for size in sizes) else ""


def _norm(node: NodeView) -> str:
    return "with p = 1 by a sum of signed numbers" if node.get("p", 2) == 1 else ""


#: operators by what is wrong with a form of theirs; "" for nothing
_RULES: dict[str, Callable[[NodeView], str]] = {
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _softmax),
    **dict.fromkeys(("AveragePool", "MaxPool"), _pool),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    "GlobalMaxPool": _whole_maximum,
    "GridSample": _grid_sample,
    "LpNormalization": _norm,
    "LpPool": _norm_pool,
    "Resize": _resize,
}
