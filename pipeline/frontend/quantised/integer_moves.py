"""Move integers instead of floats: operators that choose or order elements commute with dequantisation.

    q ─► DequantizeLinear ─► Transpose ─► QuantizeLinear ─► r        q ─► Transpose ─► r
                                     └──► Softmax                              └─► DequantizeLinear ─► Softmax

Legal for any operator whose results are elements of its operands: (n − zero) · scale is the same number wherever it stands,
and it is monotone, so that the largest value is the value of the largest number. Quantising a dequantised number with the
same scale gives the number back (`Quantisation.returns`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..canonical.node_builder import NodeBuilder, attributes_of, build_replacements, spliced
from ..traits import MOVES, VIEWS, follow_axis
from .dataflow import Dataflow, dataflow_of
from .quantisation import EIGHT_BITS, Quantisation, Quantised, quantised_by

if TYPE_CHECKING:
    import onnx


class _Form(NamedTuple):
    """Node whose first operand is dequantised from `source`; `sources` are the integers of all dequantised values."""

    node: onnx.NodeProto
    attributes: dict[str, Any]
    source: Quantised
    sources: dict[str, Quantised]
    graph: Dataflow
    build: NodeBuilder


#: builds the operator on integers; returns the names of its results, none if it does not commute
_Move = Callable[[_Form], list[str]]


def move_integers(model: onnx.ModelProto) -> onnx.ModelProto:
    """Move every dequantisation of `model` (with inferred shapes) past the operators that only move elements.

    Nodes nobody reads any more stay, for folding to remove.
    """
    graph = dataflow_of(model)
    sources: dict[str, Quantised] = {}

    def move(node: onnx.NodeProto, build: NodeBuilder) -> None:
        if node.op_type == "DequantizeLinear":
            found = quantised_by(node, graph)
            if found is not None:
                sources[node.output[0]] = found
        elif node.op_type == "QuantizeLinear":
            _requantise(node, sources.get(node.input[0]), graph, build)
        else:
            sources.update(_move(node, sources, graph, build))

    return spliced(model, build_replacements(model.graph, graph.names, move, "/integer"))


def _requantise(node: onnx.NodeProto, source: Quantised | None, graph: Dataflow, build: NodeBuilder) -> None:
    """Build an Identity for a quantisation that gives the dequantised numbers back."""
    target = quantised_by(node, graph)
    if (
        source is not None
        and target is not None
        and source.quantisation == target.quantisation
        and source.quantisation.returns
    ):
        build.node("Identity", source.name, result=node.output[0])


def _move(
    node: onnx.NodeProto, sources: dict[str, Quantised], graph: Dataflow, build: NodeBuilder
) -> dict[str, Quantised]:
    """Build a node on integers and the dequantisations of its results; return the latter's sources."""
    source = sources.get(node.input[0]) if node.input else None
    if source is None or node.op_type not in _MOVES:
        return {}
    if source.quantisation.dtype not in EIGHT_BITS and node.op_type not in _ANY_DTYPE:
        return {}
    attributes, axis = attributes_of(node), source.quantisation.axis
    results = _MOVES[node.op_type](_Form(node, attributes, source, sources, graph, build))
    if axis is not None:
        before, after = graph.shape(node.input[0]), graph.shape(node.output[0])
        axis = follow_axis(node.op_type, axis, before, after, attributes.get("perm"))
    if not results or (source.quantisation.axis is not None and axis is None):
        build.nodes.clear()
        build.initializers.clear()
        return {}
    moved = {}
    extra = {} if axis is None else {"axis": axis}
    for name, result in zip(node.output, results, strict=True):
        if name:
            build.node("DequantizeLinear", result, source.scale, source.zero, result=name, **extra)
            moved[name] = replace(source, name=result, quantisation=replace(source.quantisation, axis=axis))
    return moved


def _same(form: _Form) -> list[str]:
    node = form.node
    return form.build.many(node.op_type, [form.source.name, *node.input[1:]], len(node.output), **form.attributes)


def _max_pool(form: _Form) -> list[str]:
    """Build the pool, unless the places of its maxima are read too."""
    return _same(form) if len(form.node.output) == 1 else []


def _resize(form: _Form) -> list[str]:
    """Build the copy of nearest elements; other modes compute, and extrapolation needs a value of its own."""
    copies = form.attributes.get("mode", "nearest") == "nearest"
    crops = form.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    return _same(form) if copies and not crops else []


def _pad(form: _Form) -> list[str]:
    """Build the padding with the number of its value, if there is one exactly."""
    node, attributes, source, _, graph, build = form
    inputs = [*node.input, "", "", ""]
    if attributes.get("mode", "constant") != "constant":
        return build.many("Pad", [source.name, inputs[1], "", inputs[3]], 1, **attributes)
    value = graph.constant(inputs[2]) if inputs[2] else np.zeros(1, np.float32)
    number = _exact(source.quantisation, float(value.ravel()[0])) if value is not None and value.size else None
    if number is None:
        return []
    constant = build.number(number, source.quantisation.dtype)
    return build.many("Pad", [source.name, inputs[1], constant, inputs[3]], 1, **attributes)


def _relu(form: _Form) -> list[str]:
    return _clip_numbers(form.source, 0.0, math.inf, form.build)


def _clip(form: _Form) -> list[str]:
    bounds = clip_bounds(form.node, form.graph)
    return _clip_numbers(form.source, *bounds, form.build) if bounds is not None else []


def clip_bounds(node: onnx.NodeProto, graph: Dataflow) -> tuple[float, float] | None:
    """Return the constant bounds of a Relu or Clip, ±infinity if absent; None if one is not known."""
    if node.op_type == "Relu":
        return 0.0, math.inf
    bounds = [-math.inf, math.inf]
    for place, name in enumerate(list(node.input)[1:3]):
        if not name:
            continue
        value = graph.constant(name)
        if value is None or value.size != 1 or np.isnan(value).any():
            return None
        bounds[place] = float(value.ravel()[0])
    low, high = bounds
    return min(low, high), high  # ONNX: the larger bound of two in the wrong order does not count


def _clip_numbers(source: Quantised, low: float, high: float, build: NodeBuilder) -> list[str]:
    quantisation = source.quantisation
    least, most = quantisation.limits
    numbers = []
    for bound, end in ((low, least), (high, most)):
        outside = bound <= quantisation.dequantise(end) if end == least else bound >= quantisation.dequantise(end)
        number = end if outside else _exact(quantisation, bound)
        if number is None:
            return []
        numbers.append(number)
    if numbers == [least, most]:
        return [build.node("Identity", source.name)]
    return [build.node("Clip", source.name, *(build.number(n, quantisation.dtype) for n in numbers))]


def _exact(quantisation: Quantisation, value: float) -> int | None:
    """Return the number of a value, None if its value is another or there are channels."""
    if quantisation.axis is not None or not math.isfinite(value):
        return None
    number = quantisation.quantise(value)
    return number if quantisation.dequantise(number) == value else None


def _concat(form: _Form) -> list[str]:
    """Build the concatenation of tensors of one quantisation."""
    parts = [form.sources.get(name) for name in form.node.input]
    names = [part.name for part in parts if part is not None and part.quantisation == form.source.quantisation]
    if len(names) < len(parts) or form.source.quantisation.axis is not None:
        return []
    return form.build.many("Concat", names, 1, **form.attributes)


#: operators that ONNX Runtime and TVM have for all integers: an int32 bias is reshaped before it is added
_ANY_DTYPE = VIEWS | {"Identity", "Transpose"}
_MOVES: dict[str, _Move] = {
    **dict.fromkeys(MOVES - {"GatherND", "SpaceToDepth"}, _same),
    "Clip": _clip,
    "Concat": _concat,
    "MaxPool": _max_pool,
    "Pad": _pad,
    "Relu": _relu,
    "Resize": _resize,
}
