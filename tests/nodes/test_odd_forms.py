"""Models whose form is odd: nothing computed, scalars, ports that share memory, values a sort must put somewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.targets import how_to_run

from ..frontend.onnx_nodes import NodeCase
from ..models import model_of, run
from .building import HOST, compile_and_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]

_NAN = np.nan


def _model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, np.ndarray],
    outputs: dict[str, int],
    constants: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in inputs.items()} | outputs
    shapes = {name: value.shape for name, value in inputs.items()}
    return model_of(nodes, shapes, tuple(outputs), constants or {}, dtypes=kinds, name="odd")


def _case(name: str, *model: object) -> NodeCase:
    """The outputs are ONNX Runtime's."""
    made, inputs = _model(*model), model[1]
    return NodeCase(name, name, made, inputs, tuple(np.asarray(o) for o in run(made, inputs)), 1e-5, 1e-6)


def _cases() -> list[NodeCase]:
    node, random = helper.make_node, np.random.default_rng(0)
    x = random.standard_normal((2, 3)).astype(np.float32)
    whole, flag, scalar = np.arange(6).reshape(2, 3), np.array([[True, False, True]]), np.array(2.5, np.float32)
    single, long, truth = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    ties = np.array([[3, 1, 3, 2, 1, 3], [-np.inf, np.inf, 0, -0.0, 5, -5]], np.float32)
    return [
        _case("input-is-output", [node("Identity", ["x"], ["y"])], {"x": x}, {"y": single}),
        _case(
            "one-value-twice",
            [node("Relu", ["x"], ["y"]), node("Identity", ["y"], ["z"])],
            {"x": x}, {"y": single, "z": single},
        ),
        _case(
            "view-and-its-source",
            [node("Relu", ["x"], ["y"]), node("Flatten", ["y"], ["z"], axis=0), node("Neg", ["z"], ["n"])],
            {"x": x}, {"y": single, "z": single, "n": single},
        ),
        _case(
            "constant-output",
            [node("Neg", ["c"], ["y"]), node("Neg", ["x"], ["z"])],
            {"x": x}, {"y": single, "z": single}, {"c": np.arange(3, dtype=np.float32)},
        ),
        _case("unused-input", [node("Neg", ["x"], ["y"])], {"x": x, "u": whole}, {"y": single}),
        _case(
            "scalars",
            [
                node("Mul", ["a", "b"], ["c"]), node("Add", ["c", "x"], ["y"]),
                node("ReduceSum", ["y"], ["s"], keepdims=0),
            ],
            {"a": scalar, "b": scalar, "x": x}, {"c": single, "y": single, "s": single},
        ),
        _case(
            "whole-numbers",
            [
                node("Div", ["n", "three"], ["q"]), node("Mul", ["q", "big"], ["y"]),
                node("Cast", ["y"], ["f"], to=single),
            ],
            {"n": whole}, {"y": long, "f": single}, {"three": np.array(3), "big": np.array(2**40)},
        ),
        _case(
            "truth-values",
            [node("Not", ["p"], ["q"]), node("And", ["q", "r"], ["y"]), node("Where", ["y", "x", "zero"], ["z"])],
            {"p": flag, "r": np.array([[True], [False]]), "x": x}, {"y": truth, "z": single},
            {"zero": np.zeros((), np.float32)},
        ),
        _case(
            "results-no-one-reads",
            [node("Split", ["x"], ["a", "b", "c"], axis=1), node("Neg", ["b"], ["y"])], {"x": x}, {"y": single},
        ),
        _case(
            "top-of-ties",
            [node("TopK", ["x", "k"], ["v", "i"], axis=1)], {"x": ties}, {"v": single, "i": long}, {"k": np.array([6])},
        ),
        _case(
            "least-along-the-first-axis",
            [node("TopK", ["x", "k"], ["v", "i"], axis=0, largest=0)],
            {"x": random.standard_normal((7, 2, 3)).astype(np.float32)}, {"v": single, "i": long}, {"k": np.array([3])},
        ),
        _case(
            "extremes-of-infinities",
            [node("ReduceMax", ["m"], ["y"], axes=[1]), node("Neg", ["m"], ["n"]), node("ReduceMin", ["n"], ["z"], axes=[1])],
            {"m": np.array([[-np.inf, -np.inf, -np.inf], [-np.inf, 2, 1]], np.float32)}, {"y": single, "z": single},
        ),
        _case(
            "places-of-equals",
            [
                node("ArgMax", ["m"], ["y"], axis=1, select_last_index=1), node("ArgMax", ["m"], ["z"], axis=1),
                node("Neg", ["m"], ["n"]), node("ArgMin", ["n"], ["u"], axis=1), node("ArgMax", ["b"], ["v"], axis=0),
            ],
            {"m": np.array([[-np.inf] * 3, [-np.inf, 2, 2]], np.float32), "b": np.full((3, 2), -128, np.int8)},
            {"y": long, "z": long, "u": long, "v": long},
        ),
        _case(
            "sum-along-and-against",
            [
                node("CumSum", ["x", "axis"], ["y"], exclusive=1), node("CumSum", ["y", "axis"], ["z"], reverse=1),
                node("ScatterElements", ["z", "at", "x"], ["s"], axis=1),
            ],
            {"x": x}, {"y": single, "z": single, "s": single},
            {"axis": np.array(1), "at": np.array([[2, 1, 0], [0, 2, -2]])},
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("over", ["element-wise", "reduction"])
def test_odd_models_compute_what_onnx_runtime_does(over: str, tmp_path: Path) -> None:
    cases = _cases()
    outcomes = compile_and_run(
        cases, ("legalize", "fold-constant", f"fuse-operators{{over={over}}}", "share"), tmp_path
    )
    wrong = {case.name: str(outcomes[case.name]) for case in cases if not _same(case, outcomes[case.name].outputs)}
    assert wrong == {}


def _same(case: NodeCase, results: tuple[np.ndarray, ...]) -> bool:
    return len(results) == len(case.outputs) and all(
        got.dtype == expected.dtype and got.shape == expected.shape
        and np.allclose(got, expected, rtol=case.rtol, atol=case.atol)
        for got, expected in zip(results, case.outputs)
    )  # fmt: skip


@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_sort_takes_nan_for_the_largest(k: int, tmp_path: Path) -> None:
    x = np.array([_NAN, 1, _NAN, 3, 1], np.float32)
    nodes = [helper.make_node("TopK", ["x", "k"], ["v", "i"])]
    model = _model(nodes, {"x": x}, {"v": TensorProto.FLOAT, "i": TensorProto.INT64}, {"k": np.array([k])})
    case = NodeCase("nan", "TopK", model, {"x": x}, (), 0, 0)
    outcome = compile_and_run([case], ("legalize",), tmp_path)["nan"]
    np.testing.assert_array_equal(outcome.outputs[0], [_NAN, _NAN, 3, 1, 1][:k])
    assert outcome.outputs[1].tolist() == [0, 2, 3, 1, 4][:k]
