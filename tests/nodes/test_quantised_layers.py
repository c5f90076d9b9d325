"""Between two quantised layers no float tensor exists, and every target returns the same numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.targets import get_target, how_to_run

from ..frontend.onnx_nodes import NodeCase
from ..models import model_of, save
from .building import HOST, Outcome, compile_and_run
from .integer_oracle import evaluate
from .test_integer_nodes import EMULATED, is_exact

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]

SEQUENCE = ("legalize", "fold-constant", "fuse-operators", "share")
SHAPE = (1, 6, 10, 8)
#: layers between a dequantised `a` (and `b`, or weights) and a quantised `y`; the scale of y is twice that of a, so that
#: many sums lie between two steps
LAYERS = {
    "add": [("Add", "a b", {})],
    "scaled-sum": [("Mul", "a half", {}), ("Mul", "b third", {"out": "t"}), ("Add", "1 t", {})],
    "leaky-relu": [("LeakyRelu", "a", {"alpha": 0.1})],
    "hard-swish": [("HardSwish", "a", {})],
    "relu-of-both": [("Add", "a b", {}), ("Relu", "1", {})],
    "concat": [("Concat", "a b", {"axis": 1})],
    "weighted-conv": [("Conv", "a wf", {"pads": [1, 1, 1, 1]})],
    "matmul": [("MatMul", "a mf", {})],
}
#: results of sums in another order, and of functions approximated in another way, than ONNX Runtime's
ROUGH = {
    "average-pool": [("AveragePool", "a", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]})],
    "even-pool": [("AveragePool", "a", {"kernel_shape": [2, 2], "strides": [2, 2]})],
    "global-average-pool": [("GlobalAveragePool", "a", {})],
    "mean": [("ReduceMean", "a", {"axes": [2, 3], "keepdims": 0})],
    "swish": [("Sigmoid", "a", {"out": "g"}), ("Mul", "a g", {})],
    "softmax": [("Softmax", "a", {"axis": 1})],
    "tanh": [("Tanh", "a", {})],
}


def _model(layers: list) -> onnx.ModelProto:
    random, node = np.random.default_rng(0), helper.make_node
    weights = {
        "w": random.integers(-128, 127, (8, 6, 3, 3), np.int8),
        "m": random.integers(-128, 127, (8, 32), np.int8),
    }
    constants = {
        **weights, "s": np.float32(0.03), "z": np.int8(3), "sy": np.float32(0.06), "zy": np.int8(-5), "sb": np.float32(0.045),
        "sw": random.uniform(0.01, 0.02, 8).astype(np.float32), "zw": np.zeros(8, np.int8),
        "sm": random.uniform(0.01, 0.02, 32).astype(np.float32), "zm": np.zeros(32, np.int8),
        "half": np.float32(0.5), "third": np.float32(1 / 3),
    }  # fmt: skip
    nodes = [
        node("DequantizeLinear", ["a", "s", "z"], ["af"]), node("DequantizeLinear", ["b", "sb", "z"], ["bf"]),
        node("DequantizeLinear", ["w", "sw", "zw"], ["wf"], axis=0),
        node("DequantizeLinear", ["m", "sm", "zm"], ["mf"], axis=1),
    ]  # fmt: skip
    known = {"a": "af", "b": "bf"}
    for number, (op, operands, options) in enumerate(layers, start=1):
        attributes = dict(options)
        result = known[str(number)] = attributes.pop("out", f"t{number}")
        nodes.append(node(op, [known.get(each, each) for each in operands.split()], [result], **attributes))
    nodes.append(node("QuantizeLinear", [result, "sy", "zy"], ["y"]))
    used = {name for each in nodes[4:] for name in each.input}
    nodes = [each for each in nodes if used & set(each.output) or each.output[0] not in ("af", "bf", "wf", "mf")]
    read = {name for each in nodes for name in each.input}
    ports = {name: SHAPE for name in ("a", "b") if name in read}
    dtypes = dict.fromkeys((*ports, "y"), TensorProto.INT8)
    return model_of(
        nodes, ports, ["y"], {name: value for name, value in constants.items() if name in read}, dtypes=dtypes
    )


def _case(name: str, layers: list) -> NodeCase:
    model = _model(layers)
    random = np.random.default_rng(1)
    inputs = {port.name: random.integers(-128, 128, SHAPE, np.int8) for port in model.graph.input}
    return NodeCase(name, name, model, inputs, tuple(evaluate(model, inputs)), 0, 0)


def _cases() -> list[NodeCase]:
    return [_case(name, layers) for name, layers in (LAYERS | ROUGH).items()]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return compile_and_run(_cases(), SEQUENCE, tmp_path_factory.mktemp("layers"))


def test_results_are_those_of_the_float_layers(here: dict[str, Outcome]) -> None:
    wrong = {}
    for case in _cases():
        outputs = here[case.name].outputs
        near = case.name in ROUGH and outputs and np.abs(outputs[0].astype(int) - case.outputs[0]).max() <= 1
        if not near and not is_exact(case, outputs):
            wrong[case.name] = str(here[case.name])[:300]
    assert wrong == {}


def test_layers_that_are_not_fused_give_the_same(here: dict[str, Outcome], tmp_path: Path) -> None:
    cases = [_case(name, layers) for name, layers in LAYERS.items()]
    outcomes = compile_and_run(cases, ("legalize",), tmp_path)
    assert [case.name for case in cases if not is_exact(case, outcomes[case.name].outputs)] == []


@pytest.mark.parametrize("name", EMULATED)
def test_every_target_returns_the_same(name: str, here: dict[str, Outcome], tmp_path: Path) -> None:
    target = get_target(name)
    if not how_to_run(target).command:
        pytest.skip(how_to_run(target).how)
    outcomes = compile_and_run(_cases(), SEQUENCE, tmp_path, target)
    differ = {
        case: int((outcome.outputs[0] != here[case].outputs[0]).sum())
        for case, outcome in outcomes.items()
        if not outcome.outputs or not np.array_equal(outcome.outputs[0], here[case].outputs[0])
    }
    assert differ == {}


@pytest.mark.parametrize("name", LAYERS | ROUGH)
def test_no_float_tensor_lies_between_quantised_layers(name: str, tmp_path: Path) -> None:
    from passfit.frontend.canonicalise import import_model
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import Sequence

    model = import_model(save(_model((LAYERS | ROUGH)[name]), tmp_path))
    lowered, _ = replay(Sequence.parse(SEQUENCE), to_relax(model), model, name)
    program = lowered.program
    assert [program.tensors[each].dtype for step in program.steps for each in step.results] == ["int8"]
    # a weight stays as it is in the file
    assert max((each.size for each in lowered.weights if each.dtype == np.float32), default=0) <= 32
