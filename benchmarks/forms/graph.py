"""A graph under construction: shapes follow from onnx's own inference, weights from a seed."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Graph:
    """Append nodes by `node`, which returns the name of the result; weights by `normal` and `constant`.

    Weights are normal with variance `gain` / fan-in, so that activations stay of order one: 2 behind a ReLU.
    """

    def __init__(self, name: str, opset: int = 17, seed: int = 0):
        self.name, self.opset = name, opset
        self.types: dict[str, onnx.TypeProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}
        self._random = np.random.default_rng(seed)

    def shape(self, x: str) -> tuple[int, ...]:
        return tuple(each.dim_value for each in self.types[x].tensor_type.shape.dim)

    def input(self, name: str, *shape: int, kind: int = FLOAT) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.types[name] = self._inputs[-1].type
        return name

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        """Append a node; return its result, the first of `outputs`."""
        return self.nodes(op, *inputs, outputs=outputs, **attributes)[0]

    def nodes(self, op: str, *inputs: str, outputs: int, **attributes: object) -> list[str]:
        """Append a node; return all its results."""
        title = f"{op.lower()}_{len(self._nodes)}"
        results = [title if number == 0 else f"{title}_{number}" for number in range(outputs)]
        node = helper.make_node(op, list(inputs), results, name=f"node_{title}", **attributes)
        schema = onnx.defs.get_schema(op, self.opset)
        given = [each for each in inputs if each]
        found = onnx.shape_inference.infer_node_outputs(
            schema, node, {each: self.types[each] for each in given},
            {each: self._weights[each] for each in given if each in self._weights},
            opset_imports=[helper.make_opsetid("", self.opset)], ir_version=self._ir,
        )  # fmt: skip
        self._nodes.append(node)
        self.types.update(found)
        return results

    def constant(self, values: object, kind: type = np.float32) -> str:
        """Append an initialiser."""
        name = f"val_{len(self._weights)}"
        self._weights[name] = weight = numpy_helper.from_array(np.asarray(values, kind), name)
        self.types[name] = helper.make_tensor_type_proto(weight.data_type, weight.dims)
        return name

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def normal(self, *shape: int, fan_in: int = 1, gain: float = 1.0) -> str:
        return self.constant(self._random.standard_normal(shape) * math.sqrt(gain / fan_in))

    def near_one(self, *shape: int) -> str:
        return self.constant(self._random.normal(1, 0.1, shape))

    def near_zero(self, *shape: int) -> str:
        return self.constant(self._random.normal(0, 0.1, shape))

    # forms that all families share

    def scale(self, op: str, x: str, value: float) -> str:
        """Combine x with a scalar constant."""
        return self.node(op, x, self.constant(value))

    def reshape(self, x: str, *shape: int) -> str:
        return self.node("Reshape", x, self.integers(*shape))

    def transpose(self, x: str, *order: int) -> str:
        return self.node("Transpose", x, perm=order)

    def slice(self, x: str, start: int, end: int, axis: int) -> str:
        return self.node("Slice", x, self.integers(start), self.integers(end), self.integers(axis), self.integers(1))

    def split(self, x: str, *sizes: int, axis: int) -> list[str]:
        return self.nodes("Split", x, self.integers(*sizes), outputs=len(sizes), axis=axis)

    def pad(self, x: str, before: int, after: int, mode: str = "constant", axes: int = 1) -> str:
        """Pad the last `axes` axes by `before` and `after`."""
        rest = [0] * (len(self.shape(x)) - axes)
        pads = self.integers(*rest, *[before] * axes, *rest, *[after] * axes)
        return self.node("Pad", x, pads, *([self.constant(0.0)] if mode == "constant" else []), mode=mode)

    def conv(self, x: str, channels: int, kernel: int | tuple[int, ...], *, stride: int | tuple[int, ...] = 1, dilation: int = 1,
             padding: int | tuple[int, ...] | None = None, groups: int = 1, gain: float = 2.0, bias: bool = True) -> str:  # fmt: skip
        """Append a convolution over all axes behind the channels; by default padded so that stride 1 keeps the size."""
        axes = len(self.shape(x)) - 2
        kernels, strides = ((each,) * axes if isinstance(each, int) else each for each in (kernel, stride))
        padding = tuple((each - 1) * dilation // 2 for each in kernels) if padding is None else padding
        pads = (padding,) * axes if isinstance(padding, int) else padding
        before = self.shape(x)[1] // groups
        weights = self.normal(channels, before, *kernels, fan_in=before * math.prod(kernels), gain=gain)
        return self.node(
            "Conv", x, weights, *([self.near_zero(channels)] if bias else []), kernel_shape=kernels, strides=strides,
            pads=[*pads, *pads], dilations=[dilation] * axes, group=groups,
        )  # fmt: skip

    def conv_transpose(self, x: str, channels: int, kernel: int, stride: int, padding: int = 0) -> str:
        _, before, *size = self.shape(x)
        axes = len(size)
        weights = self.normal(before, channels, *[kernel] * axes, fan_in=before * (kernel // stride) ** axes, gain=2.0)
        return self.node(
            "ConvTranspose", x, weights, self.near_zero(channels), kernel_shape=[kernel] * axes, strides=[stride] * axes,
            pads=[padding] * 2 * axes, dilations=[1] * axes, group=1,
        )  # fmt: skip

    def batch_norm(self, x: str) -> str:
        count = self.shape(x)[1]
        variance = self.constant(self._random.uniform(0.8, 1.2, count))
        return self.node(
            "BatchNormalization",
            x,
            self.near_one(count),
            self.near_zero(count),
            self.near_zero(count),
            variance,
            epsilon=1e-5,
        )

    def linear(self, x: str, units: int, gain: float = 1.0, bias: bool = True) -> str:
        before = self.shape(x)[-1]
        product = self.node("MatMul", x, self.normal(before, units, fan_in=before, gain=gain))
        return self.node("Add", product, self.near_zero(units)) if bias else product

    def layer_norm(self, x: str) -> str:
        width = self.shape(x)[-1]
        return self.node("LayerNormalization", x, self.near_one(width), self.near_zero(width), axis=-1, epsilon=1e-5)

    def embedding(self, ids: str, words: int, width: int) -> str:
        return self.node("Gather", self.normal(words, width), ids)

    def swish(self, x: str) -> str:
        return self.node("Mul", x, self.node("Sigmoid", x))

    def model(self, *outputs: str) -> onnx.ModelProto:
        """Return the finished graph, its results named `output_0` and so on."""
        ports = []
        for number, result in enumerate(outputs):
            self._nodes.append(helper.make_node("Identity", [result], [f"output_{number}"]))
            ports.append(helper.make_value_info(f"output_{number}", self.types[result]))
        graph = helper.make_graph(self._nodes, self.name, self._inputs, ports, list(self._weights.values()))
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=self._ir,
            producer_name="passfit forms",
        )

    @property
    def _ir(self) -> int:
        return 8 if self.opset < 18 else 10
