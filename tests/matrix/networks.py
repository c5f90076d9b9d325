"""Write three small networks in the forms of an operator set, with numbers as a converter or a quantiser writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VENDOR = "com.microsoft"
#: kinds of numbers, with the first operator set that has them
NUMBERS = {
    "float32": 7, "float16": 7, "float16 with islands": 7, "QDQ s8": 10, "QDQ u8": 10, "QDQ per channel": 13, "QOperator": 10,
    "dynamic int8": 11, "4-bit weights": 10, "16-bit activations": 10,
}  # fmt: skip
NETWORKS = ("convolutional", "recurrent", "attention")
#: first sets of axes as inputs, of means' axes as inputs, of bounds as inputs, and of 4 and 16 bits in ONNX's own domain
_AXES, _MEANS, _BOUNDS, _NARROW = 13, 18, 11, 21
#: of all activations
_SCALE = 0.05


@dataclass
class Writer:
    """Nodes and constants of one network, in one operator set and kind of numbers; each layer in the forms of both."""

    numbers: str
    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.half = self.numbers.startswith("float16")
        self.float = np.float16 if self.half else np.float32
        self.kind = TensorProto.FLOAT16 if self.half else TensorProto.FLOAT

    def node(self, op: str, *inputs: str, results: int = 1, domain: str = "", **attributes: Any) -> str:
        names = [f"v{len(self.nodes)}_{place}" for place in range(results)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"n{len(self.nodes)}", domain=domain, **attributes))
        return names[0]

    def constant(self, value: np.ndarray | onnx.TensorProto) -> str:
        tensor = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(value)
        tensor.name = f"c{len(self.constants)}"
        self.constants.append(tensor)
        return tensor.name

    def floats(self, *shape: int) -> str:
        return self.constant((self.random.standard_normal(shape) * 0.4).astype(self.float))

    def number(self, value: float) -> str:
        return self.constant(np.asarray(value, self.float))

    def integers(self, *values: int) -> str:
        return self.constant(np.asarray(values, np.int64))

    def over_axes(self, op: str, value: str, *axes: int, since: int = _AXES, **attributes: Any) -> str:
        if self.opset >= since:
            return self.node(op, value, self.integers(*axes), **attributes)
        return self.node(op, value, axes=list(axes), **attributes)

    def island(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Write an operator that converters leave in float32."""
        if self.numbers != "float16 with islands":
            return self.node(op, *inputs, **attributes)
        wide = [self.node("Cast", each, to=TensorProto.FLOAT) if each else "" for each in inputs]
        return self.node("Cast", self.node(op, *wide, **attributes), to=TensorProto.FLOAT16)

    def clip(self, value: str, least: float, most: float) -> str:
        if self.opset >= _BOUNDS:
            return self.node("Clip", value, self.number(least), self.number(most))
        return self.node("Clip", value, min=float(least), max=float(most))

    def layer(self, op: str, x: str, shape: Sequence[int], bias: int = 0, **attributes: Any) -> str:
        """Write a Conv or MatMul of x and weights of a shape, and its biases."""
        weights = (self.random.standard_normal(shape) * 0.4).astype(np.float32)
        biases = (self.random.standard_normal(bias) * 0.1).astype(np.float32)
        if self.numbers == "dynamic int8" and op == "MatMul":
            return self._dynamic(x, weights)
        if self.numbers == "QOperator":
            return self._operator(op, x, weights, attributes)
        if NUMBERS[self.numbers] >= 10 and self.numbers != "dynamic int8":
            return self._dequantised(op, x, weights, biases, attributes)
        operands = [self.constant(each.astype(self.float)) for each in (weights, *([biases] if bias else []))]
        return self.node(op, x, *operands, **attributes)

    def _quantised(self, weights: np.ndarray, axis: int | None, most: int, dtype: str) -> tuple[str, str, str]:
        """Write weights as integers; return them, their scales and zero points."""
        others = tuple(each for each in range(weights.ndim) if each != axis)
        largest = np.abs(weights).max(axis=others if axis is not None else None, keepdims=axis is not None)
        scale = (largest / most).astype(np.float32)
        numbers = np.clip(np.rint(weights / scale), -most, most).astype(np.int8)
        scales = scale.reshape(-1) if axis is not None else scale
        kind = getattr(TensorProto, dtype)
        tensors = [
            helper.make_tensor("", kind, list(each.shape), each.reshape(-1).astype(int).tolist())
            for each in (numbers, np.zeros(scales.shape, np.int8))
        ]
        stored, zero = map(self.constant, tensors)
        return stored, self.constant(scales), zero

    def _domain(self) -> str:
        """Return the domain of quantisers to 4 and 16 bits: the vendor's before ONNX had them."""
        narrow = self.numbers in ("4-bit weights", "16-bit activations")
        return VENDOR if narrow and self.opset < _NARROW else ""

    def _activation(self) -> tuple[str, str]:
        dtype, zero = {"QDQ u8": (np.uint8, 128), "16-bit activations": (np.uint16, 1 << 15)}.get(
            self.numbers, (np.int8, 0)
        )
        wide = self.numbers == "16-bit activations"
        return self.constant(np.float32(_SCALE / 256 if wide else _SCALE)), self.constant(np.asarray(zero, dtype))

    def _rounded(self, value: str) -> str:
        scale, zero = self._activation()
        return self.node(
            "DequantizeLinear", self.node("QuantizeLinear", value, scale, zero, domain=self._domain()), scale, zero,
            domain=self._domain(),
        )  # fmt: skip

    def _dequantised(self, op: str, x: str, weights: np.ndarray, biases: np.ndarray, attributes: dict[str, Any]) -> str:
        narrow = self.numbers == "4-bit weights"
        axis = (0 if op == "Conv" else 1) if self.numbers == "QDQ per channel" else None
        stored = self._quantised(weights, axis, 7 if narrow else 127, "INT4" if narrow else "INT8")
        option = {} if axis is None else {"axis": axis}
        w = self.node("DequantizeLinear", *stored, domain=self._domain(), **option)
        operands = [w, *([self.constant(biases)] if biases.size else [])]
        if narrow:
            return self.node(op, x, *operands, **attributes)
        return self._rounded(self.node(op, self._rounded(x), *operands, **attributes))

    def _operator(self, op: str, x: str, weights: np.ndarray, attributes: dict[str, Any]) -> str:
        scale, zero = self._activation()
        stored = self._quantised(weights, None, 127, "INT8")
        x = self.node("QuantizeLinear", x, scale, zero)
        y = self.node(f"QLinear{op}", x, scale, zero, *stored, scale, zero, **attributes)
        return self.node("DequantizeLinear", y, scale, zero)

    def _dynamic(self, x: str, weights: np.ndarray) -> str:
        stored, scale, zero = self._quantised(weights, None, 127, "INT8")
        rounded = self.node("DynamicQuantizeLinear", x, results=3)
        sums = self.node("MatMulInteger", rounded, stored, f"{rounded[:-1]}2", zero)
        both = self.node("Mul", f"{rounded[:-1]}1", scale)
        return self.node("Mul", self.node("Cast", sums, to=TensorProto.FLOAT), both)


def _convolutional(w: Writer, x: str) -> str:
    first = w.node("Relu", w.layer("Conv", x, (8, 4, 3, 3), 8, pads=[1, 1, 1, 1]))
    pooled = w.node("MaxPool", first, kernel_shape=[2, 2], strides=[2, 2])
    deep = w.clip(w.layer("Conv", pooled, (8, 1, 3, 3), pads=[1, 1, 1, 1], group=8), 0, 6)
    total = w.node("Add", w.layer("Conv", deep, (8, 8, 1, 1), 8), pooled)
    flat = w.node("Flatten", w.island("GlobalAveragePool", total))
    return w.island("Softmax", w.layer("MatMul", flat, (8, 5)), axis=1)


def _recurrent(w: Writer, x: str) -> str:
    embedded = w.node("Tanh", w.layer("MatMul", x, (6, 6)))
    weights = [w.floats(*shape) for shape in ((1, 12, 6), (1, 12, 4), (1, 24))]
    if w.numbers == "float16 with islands":
        w.constants[-3:] = [
            numpy_helper.from_array(numpy_helper.to_array(each).astype(np.float16), each.name)
            for each in w.constants[-3:]
        ]
    states = w.island("GRU", embedded, *weights, hidden_size=4)
    return w.layer("MatMul", w.over_axes("Squeeze", states, 1), (4, 3))


def _attention(w: Writer, x: str) -> str:
    shape = w.integers(1, 6, 2, 4)
    q, k, v = (
        w.node("Transpose", w.node("Reshape", w.layer("MatMul", x, (8, 8)), shape), perm=perm)
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    scores = w.island("Softmax", w.node("Mul", w.node("MatMul", q, k), w.number(0.5)), axis=-1 if w.opset > 10 else 3)
    heads = w.node("Transpose", w.node("MatMul", scores, v), perm=[0, 2, 1, 3])
    total = w.node("Add", w.layer("MatMul", w.node("Reshape", heads, w.integers(1, 6, 8)), (8, 8)), x)
    centred = w.node("Sub", total, w.over_axes("ReduceMean", total, 2, since=_MEANS))
    spread = w.over_axes("ReduceMean", w.node("Mul", centred, centred), 2, since=_MEANS)
    return w.node("Div", centred, w.node("Sqrt", w.node("Add", spread, w.number(1e-3))))


_WRITERS = {
    "convolutional": (_convolutional, (1, 4, 8, 8), (1, 5)),
    "recurrent": (_recurrent, (5, 1, 6), (5, 1, 3)),
    "attention": (_attention, (1, 6, 8), (1, 6, 8)),
}


def network(name: str, numbers: str, opset: int, vendor: bool = False) -> onnx.ModelProto:
    """Build a network; `vendor` puts an operator of ONNX Runtime's own before its result."""
    write, shape, result = _WRITERS[name]
    writer = Writer(numbers, opset)
    islands = numbers == "float16 with islands"  # of float32 inputs and outputs
    value = write(writer, writer.node("Cast", "x", to=TensorProto.FLOAT16) if islands else "x")
    value = writer.node("Cast", value, to=TensorProto.FLOAT) if islands else value
    value = writer.node("FastGelu", value, domain=VENDOR) if vendor else value
    writer.nodes.append(helper.make_node("Identity", [value], ["y"], name="last"))
    kind = TensorProto.FLOAT if islands else writer.kind
    ports = [helper.make_tensor_value_info(*each) for each in (("x", kind, shape), ("y", kind, result))]
    graph = helper.make_graph(writer.nodes, "network", ports[:1], ports[1:], writer.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
