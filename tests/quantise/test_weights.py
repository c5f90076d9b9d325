"""Narrow weights alone, or all floats: within the rounding of their numbers, and small in the library."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from passfit import api
from passfit.quantise.prepare import prepare
from passfit.quantise.weights import BLOCKS, narrow_weights, to_halves
from passfit.targets import get_target

from ..models import NodeBuilder, model_of, run, save
from .networks import KINDS, drawn


def dequantised(model: onnx.ModelProto, name: str) -> np.ndarray:
    """Return the weights of a narrow model as floats."""
    model.graph.output.append(onnx.helper.make_tensor_value_info(name, 1, None))
    return run(
        model,
        {
            each.name: np.zeros([dim.dim_value for dim in each.type.tensor_type.shape.dim], np.float32)
            for each in model.graph.input
        },
    )[-1]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(1, 70), st.booleans(), st.sampled_from([8, 4]))
def test_no_weight_is_off_by_more_than_half_a_step_of_its_block(filters: int, taps: int, transposed: bool, bits: int):
    b = NodeBuilder()
    b.random = np.random.default_rng(filters * taps)
    weights = b.weight(*((filters, taps) if transposed else (taps, filters)), scale=1.0)
    b.node("Gemm", "x", weights, transB=int(transposed))
    exact = b.constants[weights]
    narrow = narrow_weights(prepare(b.model([1, taps], b.results()[0]), BLOCKS), bits)
    if exact.size < 512:
        assert len(narrow.graph.node) == 1
        return
    found = dequantised(narrow, narrow.graph.node[-1].input[1])
    lines = exact if transposed else exact.T
    for line, wrong in zip(lines, abs(found - exact) if transposed else abs(found - exact).T):
        for start in range(0, taps, 32):
            step = abs(line[start : start + 32]).max() / ((1 << (bits - 1)) - 1)
            assert wrong[start : start + 32].max() <= step * 0.5001 + 1e-7


@pytest.mark.parametrize("kind", KINDS)
def test_halves_are_near_the_floats_and_keep_the_ports(kind: str):
    model = KINDS[kind]()
    halves = to_halves(prepare(model))
    onnx.checker.check_model(halves)
    assert [each.type.tensor_type.elem_type for each in (*halves.graph.input, *halves.graph.output)] == [1] * (
        1 + len(model.graph.output)
    )
    weights = [each for each in halves.graph.initializer if numpy_helper.to_array(each).size > 8]
    assert weights and all(each.data_type == each.FLOAT16 for each in weights)
    (sample,) = drawn(model, 1).values
    for exact, found in zip(run(model, sample), run(halves, sample), strict=True):
        assert abs(found - exact).max() <= 0.02 * max(1.0, abs(exact).max())


def test_halves_leave_the_operators_of_scikit_learn_in_floats():
    random = np.random.default_rng(0)
    weights = random.standard_normal((6, 4)).astype(np.float32)
    nodes = [
        onnx.helper.make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.5] * 6, scale=[2.0] * 6),
        onnx.helper.make_node("MatMul", ["s", "w"], ["m"]),
        onnx.helper.make_node("Normalizer", ["m"], ["n"], domain="ai.onnx.ml", norm="L2"),
        onnx.helper.make_node("Relu", ["n"], ["y"]),
    ]
    model = model_of(nodes, {"x": [1, 6]}, {"y": [1, 4]}, {"w": weights}, domain="ai.onnx.ml", domain_opset=3)
    halves = to_halves(prepare(model))
    assert {each.data_type for each in halves.graph.initializer} == {onnx.TensorProto.FLOAT16}
    (sample,) = drawn(model, 1).values
    np.testing.assert_allclose(run(halves, sample)[0], run(model, sample)[0], atol=0.01)


@pytest.mark.tvm
@pytest.mark.slow
@pytest.mark.parametrize(("bits", "most"), [(8, 0.32), (4, 0.20)])
def test_libraries_store_narrow_weights_and_compute_with_them(tmp_path, bits: int, most: float):
    """A scale of four bytes for 32 weights: 0.28 and 0.16 of the floats. Some weights are too few to be narrowed."""
    b = NodeBuilder()
    planes = b.node("Relu", b.node("Conv", "x", b.weight(32, 16, 3, 3), pads=[1] * 4))
    b.node("Gemm", b.node("Flatten", b.node("GlobalAveragePool", planes)), b.weight(32, 40))
    model = b.model([1, 16, 6, 6], b.results()[0])
    target = get_target("mps2-an386")
    cheap = api.SearchSettings(evaluations=1, workers=0)
    weights = []
    for name, each in (("float", model), ("narrow", narrow_weights(prepare(model, BLOCKS), bits))):
        report = api.compile_model(save(each, tmp_path, f"{name}.onnx"), target, out=tmp_path / name, search=cheap)
        weights.append(report.best.weights)
    assert weights[1] <= most * weights[0]
