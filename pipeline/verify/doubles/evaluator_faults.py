"""Name the forms of operators that ONNX's evaluator in Python computes wrongly.

Read in onnx 1.23, and compared with ONNX Runtime. A model that only it can run is not verified if it has one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...frontend.canonical.graph_context import Values
from ...frontend.canonical.node_builder import attributes_of
from ...frontend.canonical.operators.auto_pad import SAME
from ...frontend.canonical.read_onnx import ONNX_DOMAINS, operator_set
from ...frontend.canonical.shapes import infer_what_is_open, value_types, without_values

if TYPE_CHECKING:
    import onnx

#: the set from which on Softmax and its kin work along one axis
_ONE_AXIS = 13


class _Form(NamedTuple):
    """Node with its operator set, the shape of its first operand and the scales of a Resize, as far as known."""

    node: onnx.NodeProto
    attributes: dict[str, Any]
    shape: tuple[int, ...] | None
    scales: np.ndarray | None
    opset: int


def evaluator_fault(model: onnx.ModelProto) -> str:
    """Say which node of a model the evaluator computes wrongly, and why; "" for none."""
    if not any(node.op_type in _RULES for node in model.graph.node):
        return ""
    types = value_types(infer_what_is_open(without_values(model)).graph)
    values = Values(types, {tensor.name: tensor for tensor in model.graph.initializer})
    opset = operator_set(model.opset_import)
    for node in model.graph.node:
        if node.op_type not in _RULES or node.domain not in ONNX_DOMAINS:
            continue
        scales = values.constant(node.input[2]) if node.op_type == "Resize" and len(node.input) > 2 else None
        form = _Form(node, attributes_of(node), values.shape(node.input[0]), scales, opset)
        if why := _RULES[node.op_type](form):
            return f"ONNX's evaluator computes {node.op_type} wrongly: {why}"
    return ""


def _softmax(form: _Form) -> str:
    last = form.shape is not None and form.attributes.get("axis", 1) in (-1, len(form.shape) - 1)
    return "" if form.opset >= _ONE_AXIS or last else "along one axis, in a set that means all from there on"


def _pool(form: _Form) -> str:
    """Compare paddings of SAME: for ONNX Runtime and the library dilations do not count, and windows may begin inside."""
    if form.attributes.get("auto_pad") not in SAME:
        return ""
    if any(each > 1 for each in form.attributes.get("dilations", ())):
        return "its paddings count dilations"
    strides = form.attributes.get("strides", ())
    apart = any(stride - kernel > 1 for stride, kernel in zip(strides, form.attributes["kernel_shape"]))
    return "its windows begin at the edge" if apart else ""


def _norm_pool(form: _Form) -> str:
    ends = form.attributes.get("ceil_mode") or form.attributes.get("auto_pad") in SAME
    return "by a mean, which has fewer elements at an end" if ends else ""


def _whole_maximum(form: _Form) -> str:
    return "" if form.shape is not None and len(form.shape) == 4 else "over two dimensions, whatever its rank"


def _recurrent(form: _Form) -> str:
    ignored = [name for name in ("activations", "clip", "input_forget") if form.attributes.get(name)]
    if len(form.node.input) > 4 and form.node.input[4]:
        ignored.append("sequence_lens")
    return f"without {', '.join(ignored)}" if ignored else ""


def _grid_sample(form: _Form) -> str:
    cubic = form.attributes.get("mode") in ("bicubic", "cubic") and form.attributes.get("padding_mode") == "border"
    return "with cubic samples that begin at a border" if cubic else ""


def _resize(form: _Form) -> str:
    if (
        form.attributes.get("coordinate_transformation_mode") != "align_corners"
        or form.scales is None
        or form.shape is None
    ):
        return ""
    axes = form.attributes.get("axes", range(len(form.shape)))
    sizes = [form.shape[axis] * float(scale) for axis, scale in zip(axes, form.scales)]
    return "with corners of fractional sizes" if any(not size.is_integer() for size in sizes) else ""


def _norm(form: _Form) -> str:
    return "with p = 1 by a sum of signed numbers" if form.attributes.get("p", 2) == 1 else ""


#: operators by what is wrong with a form of theirs; "" for nothing
_RULES: dict[str, Callable[[_Form], str]] = {
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _softmax),
    **dict.fromkeys(("AveragePool", "MaxPool"), _pool),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    "GlobalMaxPool": _whole_maximum,
    "GridSample": _grid_sample,
    "LpNormalization": _norm,
    "LpPool": _norm_pool,
    "Resize": _resize,
}
