"""Random forms of floats and bytes on a core with Helium equal ONNX Runtime: any channels, tails, windows, and NaN that passes bounds."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.targets import get_target, how_to_run

from ..frontend.onnx_nodes import NodeCase
from ..models import model_of
from ..nodes.building import compile_and_run
from ..nodes.test_onnx_nodes import SEQUENCES
from ..profiles import examples
from ..verify.one_output import compare_output

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
M55 = get_target("mps3-an547")
#: forms in an image
FORMS = 24
#: element-wise operators, and whether they pass NaN from one operand
ONE = {"Relu": True, "LeakyRelu": True, "Abs": True, "Clip": True, "Sigmoid": False, "Tanh": False, "Exp": False}


def case_of(number: int, nodes, inputs: dict[str, np.ndarray], constants=()) -> NodeCase:
    """Make a case of a graph with one output, y, whose values are ONNX Runtime's."""
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in inputs.items()}
    own = dict(constants)
    kinds["y"] = TensorProto.INT8 if nodes[-1].op_type == "QuantizeLinear" else kinds["x"]
    model = model_of(nodes, {name: value.shape for name, value in inputs.items()}, ["y"], own, dtypes=kinds)
    model = onnx.shape_inference.infer_shapes(model)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    name = f"case{number}_{'_'.join(node.op_type for node in nodes)}"
    return NodeCase(name.lower(), nodes[0].op_type, model, inputs, tuple(session.run(None, inputs)), 0, 0)


def elementwise(random, number: int) -> NodeCase:
    shape = tuple(int(each) for each in random.integers(1, (3, 4, 40)))
    x, y = (random.standard_normal(shape).astype(np.float32) for _ in range(2))
    name = str(random.choice([*ONE, "Max"]))
    if ONE.get(name):
        x.flat[:: int(random.integers(3, 7))] = np.nan
    if name == "Max":
        y = y[:, :1]
        return case_of(
            number,
            [helper.make_node("Mul", ["x", "b"], ["z"]), helper.make_node(name, ["z", "b"], ["y"])],
            {"x": x, "b": y},
        )
    bounds = {"low": np.float32(-0.4), "high": np.float32(0.6)} if name == "Clip" else {}
    return case_of(number, [helper.make_node(name, ["x", *bounds], ["y"])], {"x": x}, bounds)


def contraction(random, number: int) -> NodeCase:
    channels, filters, height, width = (int(each) for each in random.integers((1, 1, 3, 3), (18, 14, 9, 21)))
    taps, stride, pad = (int(each) for each in random.integers((1, 1, 0), (4, 3, 2)))
    groups = channels if random.random() < 0.4 else 1
    filters = channels if groups > 1 else filters
    x = random.standard_normal((1, channels, height, width)).astype(np.float32)
    w = random.standard_normal((filters, channels // groups, taps, taps)).astype(np.float32)
    conv = helper.make_node(
        "Conv", ["x", "w", "b"], ["z"], group=groups, strides=[stride] * 2, pads=[min(pad, taps - 1)] * 4
    )
    constants = {"w": w, "b": random.standard_normal(filters).astype(np.float32)}
    return case_of(number, [conv, helper.make_node("Relu", ["z"], ["y"])], {"x": x}, constants)


def rows(random, number: int) -> NodeCase:
    m, k, n = (int(each) for each in random.integers(1, (6, 40, 30)))
    x = random.standard_normal((m, k)).astype(np.float32)
    name = str(random.choice(["MatMul", "Softmax", "ReduceMean", "ReduceMax"]))
    if name == "MatMul":
        w = random.standard_normal((k, n)).astype(np.float32)
        return case_of(number, [helper.make_node(name, ["x", "w"], ["y"])], {"x": x}, {"w": w})
    return case_of(
        number, [helper.make_node(name, ["x"], ["y"], **({} if name == "Softmax" else {"axes": [1]}))], {"x": x}
    )


def window(random, number: int) -> NodeCase:
    channels, height, width = (int(each) for each in random.integers((1, 4, 4), (20, 9, 20)))
    taps, stride, pad = (int(each) for each in random.integers((2, 1, 0), (4, 3, 2)))
    name = str(random.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"]))
    own = {} if name.startswith("Global") else {"kernel_shape": [taps] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    dtype = random.choice([np.float32, np.int8, np.uint8] if name == "MaxPool" else [np.float32])
    x = random.standard_normal((1, channels, height, width)) * (1 if dtype is np.float32 else 50)
    x = x.astype(dtype) if dtype is np.float32 else x.astype(np.int8).view(dtype)
    return case_of(number, [helper.make_node(name, ["x"], ["y"], **own)], {"x": x})


def quantised(random, number: int) -> NodeCase:
    channels, height, width = (int(each) for each in random.integers((1, 2, 2), (20, 9, 20)))
    x, b = (random.integers(-128, 128, (1, channels, height, width)).astype(np.int8) for _ in range(2))
    constants = {"s": np.float32(0.043), "t": np.float32(0.057), "p": np.int8(random.integers(-9, 9)), "q": np.int8(3)}
    first = helper.make_node("DequantizeLinear", ["x", "s", "p"], ["u"])
    last = helper.make_node("QuantizeLinear", ["v", "t", "q"], ["y"])
    name = str(random.choice(["Add", "Mul", "Relu", "GlobalAveragePool", "AveragePool", "MaxPool"]))
    if name in ("Add", "Mul"):
        second = helper.make_node("DequantizeLinear", ["b", "s", "q"], ["w"])
        return case_of(
            number, [first, second, helper.make_node(name, ["u", "w"], ["v"]), last], {"x": x, "b": b}, constants
        )
    own = {"kernel_shape": [2, 2]} if name in ("AveragePool", "MaxPool") else {}
    return case_of(number, [first, helper.make_node(name, ["u"], ["v"], **own), last], {"x": x}, constants)


def move(random, number: int) -> NodeCase:
    shape = tuple(int(each) for each in random.integers(1, (3, 20, 30)))
    x = (random.standard_normal(shape) * 50).astype(random.choice([np.float32, np.int8]))
    name = str(random.choice(["Concat", "Transpose", "Pad"]))
    if name == "Pad":
        return case_of(
            number, [helper.make_node(name, ["x", "p"], ["y"])], {"x": x}, {"p": np.array([0, 1, 2, 0, 0, 3])}
        )
    own = {"axis": 2} if name == "Concat" else {"perm": [0, 2, 1]}
    return case_of(number, [helper.make_node(name, ["x", "x"] if name == "Concat" else ["x"], ["y"], **own)], {"x": x})


MAKERS = (elementwise, contraction, rows, window, quantised, move)


@settings(max_examples=examples(4), phases=[Phase.generate])  # a smaller seed is not a smaller case
@given(st.integers(0, 1 << 20))
def test_random_forms_are_equal(tmp_path_factory, seed):
    if how_to_run(M55).command is None:
        pytest.skip(how_to_run(M55).how)
    random = np.random.default_rng(seed)
    cases = [MAKERS[number % len(MAKERS)](random, number) for number in range(FORMS)]
    outcomes = compile_and_run(cases, SEQUENCES["tvm-default"], tmp_path_factory.mktemp("board"), M55)
    assert {name: each.failure or each.refusal for name, each in outcomes.items() if not each.outputs} == {}
    for case in cases:
        # averages of floats at a tie fall to one side or the other, by the order of their sum
        tolerance = 1e-4 if case.outputs[0].dtype == np.float32 else 0.02 if "averagepool" in case.name else 0
        compare_output(f"{seed} {case.name}", outcomes[case.name].outputs[0], case.outputs[0], tolerance)
