"""Quantise a float model as exporters do: values and weights between QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .reference import expected

#: operators whose result has the quantisation of their operand
_MOVES = ("MaxPool", "Flatten", "Resize")
_LAYERS = ("Conv", "Gemm")


def quantise(
    model: onnx.ModelProto, inputs: Mapping[str, np.ndarray], random: np.random.Generator, left: float
) -> onnx.ModelProto:
    """Return `model` with each value quantised to int8 or uint8 by its range; nodes stay float with probability `left`.

    Weights are int8, by tensor or by filter; biases int32, or float, which is a layer left in float for most compilers.
    """
    values = _values(model, inputs)
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    work = _Work(random, np.dtype(random.choice(["int8", "uint8"])), bool(random.random() < 0.5))
    current = {"x": work.through("x", values["x"])}
    for node in model.graph.node:
        float_node = random.random() < left
        names = [current.get(name, name) for name in node.input]
        if node.op_type in _LAYERS and not float_node:
            names[1] = work.weight(node.input[1], weights[node.input[1]])
            if len(names) > 2 and names[0] in work.scales and random.random() < 0.8:
                names[2] = work.bias(
                    node.input[2], weights[node.input[2]], work.scales[names[0]], work.scales[names[1]]
                )
        quantised = helper.make_node(node.op_type, names, list(node.output), name=node.name)
        quantised.attribute.extend(node.attribute)
        work.nodes.append(quantised)
        result = node.output[0]
        if not float_node and values[result].dtype == np.float32:
            like = names[0] if node.op_type in _MOVES else ""
            current[result] = work.through(result, values[result], like)
    ends = {value.name: current.get(value.name, value.name) for value in model.graph.output}
    made = [helper.make_tensor_value_info(name, 1, values[old].shape) for old, name in ends.items()]
    used = set().union(*map(names_read, work.nodes))
    constants = [tensor for tensor in model.graph.initializer if tensor.name in used]
    constants += [numpy_helper.from_array(value, name) for name, value in work.constants.items()]
    graph = helper.make_graph(work.nodes, "fuzz", list(model.graph.input), made, constants)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=8)


def names_read(node: onnx.NodeProto) -> set[str]:
    """Name the values that a node reads, those of its branches too."""
    inner = [each for attribute in node.attribute if attribute.HasField("g") for each in attribute.g.node]
    return set(node.input).union(*map(names_read, inner))


def _values(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return every value of a model."""
    names = [name for node in model.graph.node for name in node.output]
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.output[:]
    whole.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    return dict(zip(names, expected(whole, inputs))) | dict(inputs)


class _Work:
    """Nodes and constants of the quantised graph; `scales` by the name of a dequantised value."""

    def __init__(self, random: np.random.Generator, dtype: np.dtype, by_filter: bool):
        self.random, self.dtype, self.by_filter = random, dtype, by_filter
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.scales: dict[str, np.ndarray] = {}
        self._zeros: dict[str, tuple[str, str]] = {}

    def through(self, name: str, value: np.ndarray, like: str = "") -> str:
        """Quantise and dequantise a value, with the scale of the value `like` if given; return the result's name."""
        scale, zero = self._zeros.get(like, ("", ""))
        if not scale:
            info = np.iinfo(self.dtype)
            low, high = min(float(value.min()), 0.0), max(float(value.max()), 0.0)
            step = max(high - low, 1e-3) / 255
            scale, zero = f"{name}_scale", f"{name}_zero"
            self.constants[scale] = np.float32(step)
            self.constants[zero] = np.asarray(np.clip(round(info.min - low / step), info.min, info.max), self.dtype)
        result = f"{name}_dq"
        self.nodes.append(helper.make_node("QuantizeLinear", [name, scale, zero], [f"{name}_q"], name=f"{name}_Q"))
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", scale, zero], [result], name=f"{name}_DQ"))
        self.scales[result], self._zeros[result] = self.constants[scale], (scale, zero)
        return result

    def weight(self, name: str, value: np.ndarray) -> str:
        """Dequantise int8 weights; return the result's name."""
        axes = tuple(range(1, value.ndim)) if self.by_filter else None
        scale = np.asarray(np.maximum(np.abs(value).max(axis=axes), 1e-4) / 127, np.float32)
        spread = scale.reshape(-1, *[1] * (value.ndim - 1)) if self.by_filter else scale
        self.constants[f"{name}_i8"] = np.clip(np.rint(value / spread), -127, 127).astype(np.int8)
        return self._dequantised(name, "_i8", scale, np.int8)

    def bias(self, name: str, value: np.ndarray, of_input: np.ndarray, of_weight: np.ndarray) -> str:
        """Dequantise an int32 bias; return the result's name."""
        scale = np.asarray(of_input * of_weight, np.float32)
        self.constants[f"{name}_i32"] = np.rint(value / scale).astype(np.int32)
        return self._dequantised(name, "_i32", scale, np.int32)

    def _dequantised(self, name: str, ending: str, scale: np.ndarray, dtype: type) -> str:
        self.constants[f"{name}_s"], self.constants[f"{name}_z"] = scale, np.zeros(scale.shape, dtype)
        axis = {"axis": 0} if scale.ndim else {}
        self.nodes.append(
            helper.make_node(
                "DequantizeLinear", [name + ending, f"{name}_s", f"{name}_z"], [f"{name}_dq"], name=f"{name}_DQ", **axis
            )
        )
        self.scales[f"{name}_dq"] = scale
        return f"{name}_dq"
