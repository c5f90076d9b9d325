"""Drop constant channels between quantised convolutions: their filters, and the weights that read them.

    QLinearConv ─► channel by channel: depthwise convolutions, pools, Clip, views ─► QLinearConv
    filter f gone          …                                                     weights of channel f gone; bias + what they add

Results stay the same, bit for bit: a constant adds (its number − x's zero point) · Σ (w − w's zero point) to each sum. In
padding it would not, so there it has to be the zero point. Some constant channels stay: as many as keep the count a
multiple of what vectors need. Those lose their weights' values: biases that kept them constant need many bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.graph_context import Context, context_of
from ..canonical.node_builder import NodeBuilder, attributes_of, build_replacements, spliced
from .channel_ranges import BY_CHANNEL, Convolution, Ranges, channel_ranges, convolution_of, keeps_channels

if TYPE_CHECKING:
    import onnx

#: counts of channels stay multiples of it, if they are: vectors are full
_VECTOR = 16
#: biases of channels that they alone make constant are less
_FEW_BITS = 1 << 15


@dataclass(frozen=True)
class _Layer:
    """Hold a convolution and the ranges of its input and output."""

    node: onnx.NodeProto
    form: Convolution
    x: Ranges | None
    y: Ranges


def drop_constant_channels(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop the constant channels of `model`, sorted, with inferred shapes; return itself if it has none."""
    context = context_of(model)
    forms = [convolution_of(node, context) for node in model.graph.node]
    ranges = channel_ranges(model, forms, context)
    if not any(each.constant.any() for each in ranges.values()):
        return model
    groups = _Groups(model, forms, ranges, context)
    kept = groups.kept()

    def drop(node: onnx.NodeProto, build: NodeBuilder) -> None:
        if node.output[0] in groups.layers:
            _convolution(groups.layers[node.output[0]], kept, build, context)
        elif node.op_type == "Reshape" and node.output[0] in kept:
            shape = context.shape(node.output[0]) or ()
            target = build.integers(shape[0], len(kept[node.output[0]]), *shape[2:])
            build.node("Reshape", node.input[0], target, result=node.output[0])

    result = spliced(model, build_replacements(model.graph, context.names, drop))
    if result is not model:
        del result.graph.value_info[:]  # shapes are others
    return result


class _Groups:
    """Join values with the same channels; find the channels to keep of each group."""

    def __init__(
        self,
        model: onnx.ModelProto,
        forms: Sequence[Convolution | None],
        ranges: Mapping[str, Ranges],
        context: Context,
    ):
        self.context, self.ranges = context, ranges
        #: by the name of a result
        self.layers: dict[str, _Layer] = {}
        self._leader: dict[str, str] = {}
        self._fixed = {value.name for value in (*model.graph.input, *model.graph.output)}
        #: by the name of a value: convolutions that sum over its channels
        self._sums: dict[str, list[Convolution]] = {}
        for node, form in zip(model.graph.node, forms):
            if form is not None and node.output[0] in ranges:
                self.layers[node.output[0]] = _Layer(node, form, ranges.get(node.input[0]), ranges[node.output[0]])
            self._enter(node, form if node.output[0] in self.layers else None)

    def kept(self) -> dict[str, list[int]]:
        """Return the channels to keep of each value that loses some."""
        members: dict[str, list[str]] = {}
        for name in self.ranges:
            members.setdefault(self._find(name), []).append(name)
        fixed = {self._find(name) for name in self._fixed}
        found: dict[str, list[int]] = {}
        for leader, names in members.items():
            if leader in fixed:
                continue
            gone = np.logical_and.reduce([self._removable(name) for name in names])
            count, some = len(gone), math.gcd(len(gone), _VECTOR)
            left = max(some, -(-int((~gone).sum()) // some) * some)
            if left < count:
                spare = np.flatnonzero(gone)[: left - int((~gone).sum())]
                channels = sorted({*np.flatnonzero(~gone).tolist(), *spare.tolist()})
                found |= dict.fromkeys(names, channels)
        return found

    def _enter(self, node: onnx.NodeProto, form: Convolution | None) -> None:
        x = node.input[0] if node.input else ""
        if form is not None and form.depthwise and form.shape[0] > 1:
            self._join(x, node.output[0])
        elif form is not None and form.groups == 1:
            self._sums.setdefault(x, []).append(form)
        elif self._keeps_channels(node):
            self._join(x, node.output[0])
        else:
            self._fixed |= {x, *node.output}
        self._fixed.update(list(node.input)[1:])

    def _keeps_channels(self, node: onnx.NodeProto) -> bool:
        if not node.output or not {node.input[0], node.output[0]} <= self.ranges.keys():
            return False
        constants = [self.context.constant(name) for name in list(node.input)[1:] if name]
        single = all(each is not None and each.size == 1 for each in constants)
        return keeps_channels(node, self.context) or (node.op_type in BY_CHANNEL and single)

    def _removable(self, name: str) -> np.ndarray:
        """Return for each channel of a value whether its readers that sum over channels let it go."""
        own = self.ranges[name]
        gone = own.constant
        for form in self._sums.get(name, []):
            if form.padded:
                gone = gone & (own.low == form.x_zero)
        return gone

    def _find(self, name: str) -> str:
        while (above := self._leader.get(name, name)) != name:
            name = above
        return name

    def _join(self, one: str, other: str) -> None:
        self._leader[self._find(other)] = self._find(one)


def _convolution(layer: _Layer, kept: Mapping[str, list[int]], build: NodeBuilder, context: Context) -> None:
    """Build a convolution without the channels that go, unless it stays the same."""
    node, form = layer.node, layer.form
    inputs, attributes = [*node.input, *[""] * (9 - len(node.input))], attributes_of(node)
    channels, filters = kept.get(inputs[0]), kept.get(node.output[0])
    weights, scale, zeros = (np.array(context.constant(inputs[place])) for place in (3, 4, 5))
    alone = _constant_biases(layer, scale)
    if channels is None and filters is None and not alone:
        return
    bias = form.bias.copy()
    if channels is not None and not form.depthwise:
        assert layer.x is not None
        less = form.weights.sum(2) * (layer.x.low - form.x_zero)
        less[:, channels] = 0
        bias += less.sum(1)
        weights = weights[:, channels]
    for f, (number, by) in alone.items():
        bias[f] = number
        weights[f] = zeros.ravel()[f if zeros.size > 1 else 0]
        if scale.size > 1:
            scale[f] = by
    own = filters if filters is not None else list(range(len(weights)))
    if form.depthwise and filters is not None:
        attributes["group"] = len(filters)
    for place, value in ((3, weights), (4, scale), (5, zeros)):
        inputs[place] = build.constant(value[own] if value.size > 1 or place == 3 else value)
    if inputs[8] or bias.any():
        inputs[8] = build.constant(bias[own].astype(np.int32))
    build.node("QLinearConv", *(inputs if inputs[8] else inputs[:8]), result=node.output[0], **attributes)
    build.nodes[-1].name = node.name


def _constant_biases(layer: _Layer, scale: np.ndarray) -> dict[int, tuple[int, np.float32]]:
    """Find biases that alone give constant channels their numbers, by filter, with the scale of its weights.

    That is the largest scale of all filters: the number has few bits.
    """
    form, found = layer.form, {}
    largest = int(np.argmax(form.multiplier))
    for f in np.flatnonzero(layer.y.constant & (form.weights != 0).any((1, 2))).tolist():
        by = largest if scale.size > 1 else f
        wanted, multiplier = int(layer.y.low[f]), float(form.multiplier[by])
        number = round((wanted - form.y_zero) / multiplier) if multiplier > 0 else 0
        sums = np.zeros_like(form.bias)
        sums[by] = number - form.bias[by]
        if abs(number) < _FEW_BITS and int(form.numbers(sums)[by]) == wanted:
            found[f] = number, scale.ravel()[by if scale.size > 1 else 0]
    return found
