"""Check NonZero and Compress against ONNX Runtime, for none, some and all of their elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.errors import ModelError

from ....models import model_of
from ....profiles import examples
from .checking import check, imported

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3)
SHARES = (0.0, 0.4, 1.0)


@settings(max_examples=examples(12))
@given(
    SHAPES, st.sampled_from((TensorProto.FLOAT, TensorProto.INT32, TensorProto.BOOL)), st.integers(1, 200), st.data()
)
def test_non_zero(shape: list[int], element: int, bound: int, data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = helper.tensor_dtype_to_np_dtype(element)
    model = model_of(
        [helper.make_node("NonZero", ["x"], ["y"])], {"x": shape}, ["y"], dtypes={"x": element, "y": TensorProto.INT64}
    )
    cases = [{"x": (random.random(shape) < share).astype(dtype)} for share in SHARES]
    if dtype == np.float32:
        cases += [{"x": np.full(shape, value, dtype)} for value in (np.nan, -0.0, np.inf)]
    check(model, cases, bounds={"y": bound})


@settings(max_examples=examples(12))
@given(SHAPES, st.booleans(), st.integers(1, 200), st.integers(1, 6), st.data())
def test_compress(shape: list[int], whole: bool, bound: int, flags: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count = min(flags, int(np.prod(shape)) if whole else shape[axis])
    node = helper.make_node("Compress", ["x", "flags"], ["y"], **({} if whole else {"axis": axis}))
    model = model_of([node], {"x": shape, "flags": [count]}, ["y"], dtypes={"flags": TensorProto.BOOL})
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    cases = [{"x": random.random(shape).astype(np.float32), "flags": random.random(count) < share} for share in SHARES]
    check(model, cases, bounds={"y": bound})


def test_constant_flags_give_a_fixed_length() -> None:
    node = helper.make_node("Compress", ["x", "flags"], ["y"], axis=1)
    model = model_of([node], {"x": [2, 3]}, ["y"], {"flags": np.array([True, False, True])})
    canonical = check(model, [{"x": np.arange(6, dtype=np.float32).reshape(2, 3)}])
    assert [value.name for value in canonical.graph.output] == ["y"]


def test_importing_twice_changes_nothing() -> None:
    model = model_of([helper.make_node("NonZero", ["x"], ["y"])], {"x": [2, 3]}, ["y"], dtypes={"y": TensorProto.INT64})
    once = imported(model, bounds={"y": 4})
    assert imported(once).SerializeToString(deterministic=True) == once.SerializeToString(deterministic=True)


def test_a_bound_of_another_name_is_refused() -> None:
    model = model_of([helper.make_node("NonZero", ["x"], ["y"])], {"x": [4]}, ["y"], dtypes={"y": TensorProto.INT64})
    with pytest.raises(ModelError, match="decide no length 'z'; they decide those of y"):
        imported(model, bounds={"z": 3})
    with pytest.raises(ModelError, match="selects nothing: its bound is 0"):
        imported(model, bounds={"y": 0})


@pytest.mark.parametrize("opset", [9, 10, 12, 17])
def test_files_of_old_sets_are_compared_too(opset: int) -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["places"]), helper.make_node("Abs", ["places"], ["y"])]
    model = model_of(nodes, {"x": [2, 3]}, ["y"], opset=opset, dtypes={"y": TensorProto.INT64})
    check(
        model,
        [{"x": (np.arange(6) < count).astype(np.float32).reshape(2, 3)} for count in (0, 2, 6)],
        bounds={"places": 4},
    )
