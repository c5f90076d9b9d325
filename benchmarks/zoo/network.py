"""A network under construction: nodes, shapes and seeded weights, named as an exporter of PyTorch names them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IMAGENET = (1, 3, 224, 224)
CLASSES = 1000
Shape = tuple[int, ...]

#: what is left of the mean square of normally distributed values, roughly
_RELU, _SWISH, _SIGMOID, _MAXIMUM = 0.5, 0.45, 0.29, 1.5


class Network:
    """Every method appends to the network and returns the name of its result; tensors are NCHW float32, batch 1.

    Weights are normal with variance 1 / (fan-in × mean square of what is read): after a ReLU the initialisation of He
    et al. (2015), and so that activations stay of order one after what else there is. The mean squares are estimates.
    """

    def __init__(self, name: str, shape: Shape = IMAGENET, seed: int = 0):
        self.name, self.shapes = name, {"input": shape}
        self._mean_square = {"input": 1.0}
        #: how much of it is of parts that are never negative
        self._positive: dict[str, float] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._scope: list[str] = []
        self._taken: dict[str, int] = {}
        self._random = np.random.default_rng(seed)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Append inside it to the module `name`."""
        self._scope.append(name)
        yield
        self._scope.pop()

    def channels(self, x: str) -> int:
        return self.shapes[x][1]

    # with weights

    def conv(self, x: str, channels: int, kernel: int = 3, stride: int = 1, *, padding: int | None = None,
             groups: int = 1, bias: bool = False) -> str:  # fmt: skip
        """Append a convolution; by default padded so that stride 1 keeps the size."""
        padding = kernel // 2 if padding is None else padding
        _, before, *size = self.shapes[x]
        title = self._title("Conv")
        fan_in = before // groups * kernel**2
        weights = [self._normal(title, (channels, before // groups, kernel, kernel), self._deviation(x, fan_in))]
        if bias:
            weights.append(self._bias(title, channels))
        size = [(extent + 2 * padding - kernel) // stride + 1 for extent in size]
        return self._node(
            "Conv", [x, *weights], (1, channels, *size), 1.0, title, kernel_shape=[kernel] * 2, strides=[stride] * 2,
            pads=[padding] * 4, group=groups, dilations=[1, 1],
        )  # fmt: skip

    def conv_transpose(self, x: str, channels: int, factor: int = 2) -> str:
        """Append an up-convolution: kernel and stride are `factor`."""
        _, before, *size = self.shapes[x]
        title = self._title("ConvTranspose")
        weights = self._normal(title, (before, channels, factor, factor), self._deviation(x, before))
        bias = self._bias(title, channels)
        return self._node(
            "ConvTranspose", [x, weights, bias], (1, channels, *(extent * factor for extent in size)), 1.0, title,
            kernel_shape=[factor] * 2, strides=[factor] * 2, pads=[0] * 4, group=1, dilations=[1, 1],
        )  # fmt: skip

    def batch_norm(self, x: str) -> str:
        title, count, random = self._title("BatchNormalization"), self.channels(x), self._random
        statistics = {
            "weight": random.normal(1, 0.1, count),
            "bias": random.normal(0, 0.1, count),
            "running_mean": random.normal(0, 0.1, count),
            "running_var": random.uniform(0.8, 1.2, count),
        }
        weights = [self._weight(title, name, values.astype(np.float32)) for name, values in statistics.items()]
        mean_square = self._mean_square[x]
        return self._node("BatchNormalization", [x, *weights], self.shapes[x], mean_square, title, epsilon=1e-5)

    def dense(self, x: str, units: int) -> str:
        """Append a fully connected layer with bias on a matrix of one row."""
        title, before = self._title("Gemm"), self.shapes[x][1]
        weights = self._normal(title, (units, before), self._deviation(x, before))
        bias = self._bias(title, units)
        return self._node("Gemm", [x, weights, bias], (1, units), 1.0, title, transB=1)

    def gated(self, x: str) -> str:
        """x times the sigmoid of a learnt number."""
        title = self._title("Sigmoid")
        gate = self._node("Sigmoid", [self._normal(title, (1,), 1.0)], (1,), _SIGMOID, title)
        return self.mul(x, gate)

    # element by element

    def relu(self, x: str) -> str:
        positive = self._positive.get(x, 0.0)
        mean_square = positive + (self._mean_square[x] - positive) * _RELU
        return self._positively(self._node("Relu", [x], self.shapes[x], mean_square), mean_square)

    def relu6(self, x: str) -> str:
        title = self._title("Clip")
        limits = [self._weight(title, name, np.float32(value)) for name, value in (("min", 0), ("max", 6))]
        return self._node("Clip", [x, *limits], self.shapes[x], self._mean_square[x] * _RELU, title)

    def leaky_relu(self, x: str) -> str:
        return self._node("LeakyRelu", [x], self.shapes[x], self._mean_square[x] * _RELU, alpha=0.1)

    def swish(self, x: str) -> str:
        gate = self.sigmoid(x)
        return self._node("Mul", [x, gate], self.shapes[x], self._mean_square[x] * _SWISH)

    def sigmoid(self, x: str) -> str:
        return self._node("Sigmoid", [x], self.shapes[x], _SIGMOID)

    def mul(self, x: str, y: str) -> str:
        """x times y, which is broadcast."""
        return self._node("Mul", [x, y], self.shapes[x], self._mean_square[x] * self._mean_square[y])

    def add(self, x: str, y: str) -> str:
        assert self.shapes[x] == self.shapes[y], (self.shapes[x], self.shapes[y])
        result = self._node("Add", [x, y], self.shapes[x], self._mean_square[x] + self._mean_square[y])
        return self._positively(result, self._positive.get(x, 0.0) + self._positive.get(y, 0.0))

    def mean(self, parts: list[str]) -> str:
        if len(parts) == 1:
            return parts[0]
        mean_square = sum(self._mean_square[part] for part in parts) / len(parts) ** 2
        return self._node("Mean", parts, self.shapes[parts[0]], mean_square)

    # the rest

    def concat(self, *parts: str) -> str:
        """Along the channels."""
        count = sum(map(self.channels, parts))
        mean_square = sum(self.channels(part) * self._mean_square[part] for part in parts) / count
        return self._node("Concat", parts, (1, count, *self.shapes[parts[0]][2:]), mean_square, axis=1)

    def halves(self, x: str) -> tuple[str, str]:
        """Return the first and the second half of the channels."""
        _, count, *size = self.shapes[x]
        title = self._title("Split")
        lengths = self._weight(title, "split", np.array([count // 2, count // 2], np.int64))
        first, second = (f"{title}_output_{number}" for number in range(2))
        shape = (1, count // 2, *size)
        self._node("Split", [x, lengths], shape, self._mean_square[x], title, results=[first, second], axis=1)
        return first, second

    def max_pool(self, x: str, kernel: int, stride: int, padding: int = 0) -> str:
        result = self._pool("MaxPool", x, kernel, stride, padding, _MAXIMUM)
        return self._positively(result, self._positive.get(x, 0.0) * _MAXIMUM)

    def average_pool(self, x: str, kernel: int, stride: int, padding: int = 0) -> str:
        return self._pool("AveragePool", x, kernel, stride, padding, 1.0, count_include_pad=0)

    def global_average_pool(self, x: str) -> str:
        return self._node("GlobalAveragePool", [x], (*self.shapes[x][:2], 1, 1), self._mean_square[x] / 2)

    def flatten(self, x: str) -> str:
        return self._node("Flatten", [x], (1, math.prod(self.shapes[x])), self._mean_square[x], axis=1)

    def upsample(self, x: str, factor: int = 2) -> str:
        """Repeat every pixel `factor` times in each direction."""
        _, count, *size = self.shapes[x]
        title = self._title("Resize")
        scales = self._weight(title, "scales", np.array([1, 1, factor, factor], np.float32))
        return self._node(
            "Resize", [x, "", scales], (1, count, *(extent * factor for extent in size)), self._mean_square[x], title,
            mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric",
        )  # fmt: skip

    def classifier(self, x: str, classes: int = CLASSES) -> onnx.ModelProto:
        """Append the end of most networks, and return the network: means of the channels, then a layer of one unit a class."""
        with self.scope("classifier"):
            x = self.dense(self.flatten(self.global_average_pool(x)), classes)
        return self.model(x)

    def model(self, *outputs: str) -> onnx.ModelProto:
        """Return the finished network."""

        def ports(names: tuple[str, ...]) -> list[onnx.ValueInfoProto]:
            return [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes[name]) for name in names]

        graph = helper.make_graph(self._nodes, self.name, ports(("input",)), ports(outputs), self._weights)
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=8, producer_name="passfit zoo")

    def _pool(self, op: str, x: str, kernel: int, stride: int, padding: int, factor: float,
              **attributes: object) -> str:  # fmt: skip
        size = [(extent + 2 * padding - kernel) // stride + 1 for extent in self.shapes[x][2:]]
        return self._node(
            op, [x], (1, self.channels(x), *size), self._mean_square[x] * factor, kernel_shape=[kernel] * 2,
            strides=[stride] * 2, pads=[padding] * 4, **attributes,
        )  # fmt: skip

    def _positively(self, x: str, mean_square: float) -> str:
        self._positive[x] = mean_square
        return x

    def _node(self, op: str, inputs: object, shape: Shape, mean_square: float, title: str | None = None,
              results: list[str] | None = None, **attributes: object) -> str:  # fmt: skip
        """Appends a node whose results all have `shape`; returns the first."""
        title = title or self._title(op)
        results = results or [f"{title}_output_0"]
        self._nodes.append(helper.make_node(op, list(inputs), results, name=title, **attributes))
        for result in results:
            self.shapes[result], self._mean_square[result] = shape, mean_square
        return results[0]

    def _title(self, op: str) -> str:
        path = "/".join(["", *self._scope, op])
        self._taken[path] = number = self._taken.get(path, -1) + 1
        return f"{path}_{number}" if number else path

    def _deviation(self, x: str, fan_in: int) -> float:
        return 1 / math.sqrt(fan_in * self._mean_square[x])

    def _normal(self, title: str, shape: Shape, deviation: float) -> str:
        values = self._random.standard_normal(shape, dtype=np.float32)
        values *= np.float32(deviation)
        return self._weight(title, "weight", values)

    def _bias(self, title: str, count: int) -> str:
        return self._weight(title, "bias", self._random.normal(0, 0.1, count).astype(np.float32))

    def _weight(self, title: str, what: str, values: np.ndarray) -> str:
        name = f"{title[1:].replace('/', '.')}.{what}"
        self._weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name
