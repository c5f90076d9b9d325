"""Look up the known facts of a node before the model runs: attributes, constants, shapes and dtypes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...frontend.canonical.graph_context import Values
from ...frontend.canonical.node_builder import inner_graphs
from ...frontend.canonical.read_onnx import ONNX_DOMAINS, declare_set, operator_set
from ...frontend.canonical.shapes import infer_copy, inference_failures, without_values

if TYPE_CHECKING:
    import onnx

Dims = tuple[int | None, ...]
#: most elements of a constant that is read
_MOST = 1 << 20


class ModelView:
    """Model with its constants, and with types inferred as far as ONNX can, when they are asked for."""

    def __init__(self, model: onnx.ModelProto):
        """Inline the model's own functions; weights are neither copied nor read."""
        from onnx import inliner

        self._light: onnx.ModelProto | None = None
        self.graph = model.graph
        self._model = model
        self.opset = operator_set(model.opset_import)
        if model.functions:
            self._light = inliner.inline_local_functions(_declare_one_set(without_values(model), self.opset))
            self.graph = self._light.graph
        self._constants = {tensor.name: tensor for graph in all_graphs(self.graph) for tensor in graph.initializer}
        self._constants |= {tensor.name: tensor for tensor in model.graph.initializer}
        self._makers = {name: node for graph in all_graphs(self.graph) for node in graph.node for name in node.output}
        self._values: dict[str, np.ndarray | None] = {}

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of a constant; None for another value, or a large one."""
        if name not in self._values:
            self._values[name] = self._constant(name)
        return self._values[name]

    def _constant(self, name: str) -> np.ndarray | None:
        from onnx import helper, numpy_helper

        tensor = self._constants.get(name)
        maker = self._makers.get(name)
        if tensor is None and maker is not None and maker.op_type == "Constant":
            for attribute in maker.attribute:
                value = helper.get_attribute_value(attribute)
                if attribute.name == "value":
                    tensor = value
                elif attribute.name in ("value_int", "value_ints", "value_float", "value_floats"):
                    return np.asarray(value)
        if tensor is None and maker is not None and maker.op_type == "Identity":
            return self.constant(maker.input[0])
        if tensor is None or math.prod(tensor.dims) >= _MOST or tensor.data_location == tensor.EXTERNAL:
            return None
        value = numpy_helper.to_array(tensor)
        return value if value.dtype.kind in "iufb" else None

    def dims(self, name: str) -> Dims | None:
        """Return the sizes of a value, None for an unknown one; None for an unknown rank."""
        return self._around(name).sizes(name)

    def element(self, name: str) -> int:
        """Return ONNX's number of a value's dtype; 0 for an unknown one."""
        return self._around(name).element(name)

    def _around(self, name: str) -> Values:
        """Return the constants and types; for a constant no type needs to be inferred."""
        return Values({} if name in self._constants else self._types, self._constants)

    @cached_property
    def _types(self) -> dict[str, onnx.TypeProto]:
        light = self._light if self._light is not None else without_values(self._model)
        types = {}
        for graph in all_graphs(_infer(light).graph):
            for value in (*graph.value_info, *graph.output, *graph.input):
                if value.type.HasField("tensor_type"):
                    types[value.name] = value.type
        return types


def _infer(model: onnx.ModelProto) -> onnx.ModelProto:
    """Infer types as far as ONNX can: it fails on files that ONNX Runtime runs."""
    try:
        return infer_copy(model)
    except inference_failures():
        return model


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and the graphs within its nodes."""
    yield graph
    for node in graph.node:
        for body in inner_graphs(node):
            yield from all_graphs(body)


class NodeView:
    """Node of a model; operands are named by their numbers."""

    def __init__(self, node: onnx.NodeProto, model: ModelView):
        """View `node` with the shapes, dtypes and constants of its values in `model`."""
        self.node = node
        self.model = model

    @property
    def key(self) -> str:
        """Name the operator: with its domain, if it is not ONNX's own."""
        name = self.node.op_type
        return name if self.node.domain in ONNX_DOMAINS else f"{self.node.domain}:{name}"

    @property
    def opset(self) -> int:
        """Return the version of ONNX's operators."""
        return self.model.opset

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute."""
        from onnx import helper

        found = next((each for each in self.node.attribute if each.name == name), None)
        return default if found is None else helper.get_attribute_value(found)

    def operand(self, number: int) -> str:
        """Return the name of an operand; empty if there is none."""
        return self.node.input[number] if number < len(self.node.input) else ""

    def constant(self, number: int) -> np.ndarray | None:
        """Return the value of a constant operand."""
        return self.model.constant(self.operand(number)) if self.operand(number) else None

    def dims(self, number: int) -> Dims | None:
        """Return the sizes of an operand."""
        return self.model.dims(self.operand(number)) if self.operand(number) else None

    def rank(self, number: int) -> int | None:
        """Return the rank of an operand."""
        dims = self.dims(number)
        return None if dims is None else len(dims)

    def size(self, number: int, axis: int) -> int | None:
        """Return the size of an operand's axis."""
        dims = self.dims(number)
        return dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None

    def result_dims(self) -> Dims | None:
        """Return the sizes of the first result."""
        return self.model.dims(self.node.output[0])

    def is_integer(self, number: int) -> bool:
        """Return whether an operand is of a known integer dtype."""
        from onnx import helper

        element = self.model.element(self.operand(number)) if self.operand(number) else 0
        return bool(element) and helper.tensor_dtype_to_np_dtype(element).kind in "iu"


def _declare_one_set(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    """Declare, in place, the model's operator set for its functions, as ONNX Runtime reads them; return the model."""
    for function in model.functions:
        declare_set(function.opset_import, version)
    return model
