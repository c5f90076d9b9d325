"""Write a small network of two products, seeded, to models/net.onnx: the stage `export` of dvc.yaml."""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

width = int(sys.argv[1])
random = np.random.default_rng(0)
weights = {"w1": random.normal(0, 0.3, (32, width)), "w2": random.normal(0, 0.3, (width, 4))}
nodes = [
    helper.make_node("MatMul", ["features", "w1"], ["hidden"], name="hidden"),
    helper.make_node("Relu", ["hidden"], ["active"], name="active"),
    helper.make_node("MatMul", ["active", "w2"], ["scores"], name="scores"),
]
graph = helper.make_graph(
    nodes,
    "net",
    [helper.make_tensor_value_info("features", TensorProto.FLOAT, (1, 32))],
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, (1, 4))],
    [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
)
Path("models").mkdir(exist_ok=True)
onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), "models/net.onnx")
