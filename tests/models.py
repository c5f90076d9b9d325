"""ONNX models for tests: of nodes at hand, or made node by node; and ONNX Runtime as their reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT

Shape = Sequence[int | str | None] | None


def model_of(
    nodes: Iterable[onnx.NodeProto],
    inputs: Mapping[str, Shape],
    outputs: Sequence[str] | Mapping[str, Shape],
    constants: Mapping[str, np.ndarray] | Sequence[onnx.TensorProto] = (),
    *,
    opset: int = 17,
    dtype: int = FLOAT,
    dtypes: Mapping[str, int] | None = None,
    name: str = "test",
    domain: str = "",
    domain_opset: int = 1,
) -> onnx.ModelProto:
    """Return a model of `nodes`; inputs and outputs are of `dtype`, but for those of `dtypes`.

    Outputs given as names have no shape; constants are arrays by name, or tensors. `domain` is imported beside ONNX's own.
    """
    kinds = dtypes or {}
    # an output may be named twice
    results = outputs.items() if isinstance(outputs, Mapping) else [(port, None) for port in outputs]
    given, made = (
        [helper.make_tensor_value_info(port, kinds.get(port, dtype), shape) for port, shape in ports]
        for ports in (inputs.items(), results)
    )
    weights = constants
    if isinstance(constants, Mapping):
        weights = [numpy_helper.from_array(np.asarray(value), each) for each, value in constants.items()]
    graph = helper.make_graph(list(nodes), name, given, made, weights)
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, domain_opset)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


class NodeBuilder:
    """Collect nodes; every method returns the name of a result. Nodes are named after their operator and number."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.random = np.random.default_rng(0)

    def node(self, op: str, *inputs: str, results: int = 1, **attributes: Any) -> str:
        names = [f"t{len(self.nodes)}_{i}" for i in range(results)]
        title = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, names, name=title, **attributes))
        return names[0]

    def results(self) -> list[str]:
        """Return all results of the last node."""
        return list(self.nodes[-1].output)

    def weight(self, *shape: int, scale: float = 0.4) -> str:
        return self.constant((self.random.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, value: np.ndarray) -> str:
        name = f"w{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def model(self, shape: Sequence[int], *outputs: str, **options: Any) -> onnx.ModelProto:
        """Return the model of one input `x`; `options` are those of model_of."""
        return model_of(self.nodes, {"x": shape}, outputs, self.constants, **{"name": "small"} | options)


def save(model: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    path = folder / name
    onnx.save(model, path)
    return path


def run(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return ONNX Runtime's results, nothing optimised."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {each.name: inputs[each.name] for each in session.get_inputs()})


def shape_of(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
