"""Numbers of few bits: libraries round them as ml_dtypes and ONNX Runtime do, and take and return them in wider dtypes."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model
from passfit.targets import get_target, how_to_run

from ..frontend.onnx_nodes import NodeCase
from ..models import model_of, run, save
from .building import HOST, compile_and_run
from .test_integer_nodes import EMULATED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]

SEQUENCE = ("legalize", "fold-constant", "fuse-operators", "share")
RNG = np.random.default_rng(12)
FLOATS = {
    "BFLOAT16": ml_dtypes.bfloat16, "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2, "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}  # fmt: skip
WHOLE = ("INT4", "UINT4", "INT2", "UINT2")
node = helper.make_node


def _model(
    nodes: list[onnx.NodeProto], x: np.ndarray, constants: dict | None = None, opset: int = 25
) -> onnx.ModelProto:
    model = model_of(nodes, {"x": x.shape}, ["y"], constants or {}, opset=opset)
    model.ir_version = 12
    return model


def _edges(dtype: type) -> np.ndarray:
    """Return all numbers of eight bits, or some of sixteen, those half-way, their neighbours, and what is beyond them."""
    codes = np.arange(256, dtype=np.uint8) if np.dtype(dtype).itemsize == 1 else np.arange(0, 1 << 16, 97, np.uint16)
    numbers = codes.view(dtype).astype(np.float32)
    exact = np.unique(numbers[np.isfinite(numbers)])
    middle = exact[1:] / 2 + exact[:-1] / 2
    beside = [np.nextafter(middle, np.float32(to)) for to in (np.inf, -np.inf)]
    return np.concatenate([exact, middle, *beside, np.float32([-0.0, np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-40])])


def _rounded(kind: str) -> NodeCase:
    x = _edges(FLOATS[kind])
    limits = {} if kind == "BFLOAT16" else {"saturate": 0}
    nodes = [node("Cast", ["x"], ["n"], to=getattr(TensorProto, kind), **limits), node("Cast", ["n"], ["y"], to=1)]
    with np.errstate(all="ignore"):
        expected = x.astype(FLOATS[kind]).astype(np.float32)
    return NodeCase(kind, kind, _model(nodes, x), {"x": x}, (expected,), 0, 0)


def _as_onnxruntime(name: str, nodes: list[onnx.NodeProto], x: np.ndarray, constants: dict | None = None) -> NodeCase:
    model = _model(nodes, x, constants)
    return NodeCase(name, name, model, {"x": x}, tuple(run(model, {"x": x})), 0, 0)


def _cases() -> list[NodeCase]:
    spread = np.concatenate([np.arange(-20, 20, 0.25), [1e9, np.inf, -np.inf, np.nan]]).astype(np.float32)
    limited = [
        _as_onnxruntime(
            f"{kind} within its largest number",
            [node("Cast", ["x"], ["n"], to=getattr(TensorProto, kind)), node("Cast", ["n"], ["y"], to=1)],
            _edges(FLOATS[kind]),
        )
        for kind in FLOATS
        if kind != "BFLOAT16"
    ]
    whole = [
        _as_onnxruntime(
            kind, [node("Cast", ["x"], ["n"], to=getattr(TensorProto, kind)), node("Cast", ["n"], ["y"], to=1)], spread
        )
        for kind in WHOLE
    ]
    between = [
        _as_onnxruntime(
            f"{dtype} between layers, {scale.ndim}",
            [
                node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=axis),
                node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=axis),
            ],
            RNG.standard_normal((4, 6)).astype(np.float32),
            {"s": scale, "z": np.full(scale.shape, zero).astype(getattr(ml_dtypes, dtype))},
        )
        for dtype, zero in (("int4", 1), ("uint4", 7))
        for axis, scale in ((1, np.float32(0.2)), (0, np.float32([0.1, 0.2, 0.3, 0.7])))
    ]
    return [*map(_rounded, FLOATS), *limited, *whole, *between, *_divided(), _transposed()]


def _transposed() -> NodeCase:
    """Return a transposed convolution of groups, rounded to bfloat16: of whole numbers, so that its sums are exact."""
    x, weights = (RNG.integers(-4, 5, size).astype(np.float32) for size in ((1, 4, 6, 6), (4, 2, 3, 3)))
    nodes = [
        node("ConvTranspose", ["x", "w"], ["p"], strides=[2, 2], group=2),
        node("Mul", ["p", "c"], ["m"]),
        node("Cast", ["m"], ["n"], to=TensorProto.BFLOAT16),
        node("Cast", ["n"], ["y"], to=TensorProto.FLOAT),
    ]
    model = _model(nodes, x, {"w": weights, "c": np.float32(1.03125)}, opset=22)
    (exact,) = run(
        _model([*nodes[:2], node("Identity", ["m"], ["y"])], x, {"w": weights, "c": np.float32(1.03125)}, 22), {"x": x}
    )
    expected = exact.astype(ml_dtypes.bfloat16).astype(np.float32)
    return NodeCase("ConvTranspose in bfloat16", "ConvTranspose", model, {"x": x}, (expected,), 0, 0)


def _divided() -> list[NodeCase]:
    """Return quantisations by bfloat16 scales: the quotient is rounded to bfloat16 first, if `precision` does not say float32."""
    from onnx.reference import ReferenceEvaluator

    x, scale = RNG.standard_normal((4, 50)).astype(np.float32), np.float32([0.103, 0.0576, 0.0898, 0.0835])
    cases = []
    for precision in ({}, {"precision": TensorProto.FLOAT}):
        nodes = [
            node("Cast", ["x"], ["n"], to=TensorProto.BFLOAT16),
            node("Cast", ["s"], ["m"], to=TensorProto.BFLOAT16),
            node("QuantizeLinear", ["n", "m", "z"], ["q"], axis=0, **precision),
            node("Cast", ["q"], ["y"], to=TensorProto.FLOAT),
        ]
        model = _model(nodes, x, {"s": scale, "z": np.uint8([224, 155, 148, 150])}, opset=23)
        expected = tuple(ReferenceEvaluator(model).run(None, {"x": x}))
        name = f"quantised by bfloat16 {precision}"
        cases.append(NodeCase(name, name, model, {"x": x}, expected, 0, 0))
    assert (cases[0].outputs[0] != cases[1].outputs[0]).any()
    return cases


@pytest.mark.parametrize("name", ["", *EMULATED])
def test_libraries_round_as_others_do(name: str, tmp_path: Path) -> None:
    target = get_target(name) if name else HOST
    if name and not how_to_run(target).command:
        pytest.skip(how_to_run(target).how)
    cases = _cases()
    outcomes = compile_and_run(cases, SEQUENCE, tmp_path, target)
    for case in cases:
        assert outcomes[case.name].outputs, outcomes[case.name]
        np.testing.assert_array_equal(outcomes[case.name].outputs[0], case.outputs[0], err_msg=case.name)


def _brain(weights: int) -> onnx.ModelProto:
    """Return a layer in bfloat16 whose input and output are of it, too."""
    product = node("MatMul", ["x", "w"], ["p"], name="product")
    model = _model([product, node("Relu", ["p"], ["y"])], np.zeros((2, 64)), opset=22)
    values = RNG.standard_normal((64, weights)).astype(ml_dtypes.bfloat16)
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.BFLOAT16, values.shape, values.tobytes(), True))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.BFLOAT16
    return model


def test_inputs_and_outputs_hold_the_numbers_in_floats(tmp_path: Path) -> None:
    model = _brain(8)
    imported = import_model(save(model, tmp_path))
    assert [value.type.tensor_type.elem_type for value in (*imported.graph.input, *imported.graph.output)] == [1, 1]
    x = RNG.standard_normal((2, 64)).astype(ml_dtypes.bfloat16).astype(np.float32)
    outcome = compile_and_run([NodeCase("brain", "brain", model, {"x": x}, (), 0, 0)], SEQUENCE, tmp_path)["brain"]
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0]).astype(np.float32)
    (found,) = outcome.outputs
    np.testing.assert_array_equal(found, found.astype(ml_dtypes.bfloat16).astype(np.float32))
    np.testing.assert_allclose(found, np.maximum(x @ weights, 0), rtol=2**-7, atol=1e-3)


def test_large_weights_may_take_the_bytes_of_the_file(tmp_path: Path) -> None:
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import Sequence

    model = import_model(save(_brain(256), tmp_path))
    lowered, _ = replay(
        Sequence.parse(("legalize", "fold-constant{grow=0}", "fuse-operators")), to_relax(model), model, "brain"
    )
    assert sum(each.nbytes for each in lowered.weights) <= 64 * 256 * 2 + 64


def test_numbers_of_few_bits_inside_a_graph_of_a_node_are_refused(tmp_path: Path) -> None:
    body = helper.make_graph(
        [node("Add", ["s", "e"], ["t"]), node("Identity", ["t"], ["u"])], "body",
        *([helper.make_tensor_value_info(each, TensorProto.BFLOAT16, [3]) for each in names] for names in ("se", "tu")),
    )  # fmt: skip
    steps = node("Scan", ["n", "m"], ["f", "r"], name="steps", body=body, num_scan_inputs=1)
    cast = [node("Cast", [a], [b], to=TensorProto.BFLOAT16) for a, b in (("x", "n"), ("w", "m"))]
    model = _model([*cast, steps, node("Cast", ["r"], ["y"], to=1)], np.zeros(3), opset=22)
    model.graph.input.append(helper.make_tensor_value_info("w", 1, [700, 3]))
    with pytest.raises(ModelError, match="Scan node 'steps.*' reads or makes numbers of few bits"):
        import_model(save(model, tmp_path))
