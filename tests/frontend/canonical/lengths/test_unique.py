"""Check Unique, and TopK of a number that is an input, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.backend import Backend
from passfit.errors import ModelError

from ....models import NodeBuilder, model_of, run
from ....profiles import examples
from .checking import check, imported

RESULTS = ("y", "first", "inverse", "counts")
INT64 = TensorProto.INT64


@settings(max_examples=examples(16))
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3), st.sampled_from((TensorProto.FLOAT, INT64)), st.booleans(),
    st.integers(1, 70), st.integers(0, 99),
)  # fmt: skip
def test_unique(shape: list[int], element: int, ordered: bool, bound: int, seed: int) -> None:
    node = helper.make_node("Unique", ["x"], list(RESULTS), sorted=int(ordered))
    dtypes = {"x": element, **dict.fromkeys(RESULTS, INT64), "y": element}
    random, dtype = np.random.default_rng(seed), helper.tensor_dtype_to_np_dtype(element)
    cases = [{"x": random.integers(-few, few, shape).astype(dtype)} for few in (1, 3, 50)]
    check(model_of([node], {"x": shape}, RESULTS, dtypes=dtypes), cases, bounds={"y": bound})


@pytest.mark.parametrize("ordered", [False, True])
def test_a_library_finds_the_same_elements(ordered: bool) -> None:
    node = helper.make_node("Unique", ["x"], list(RESULTS), axis=0, sorted=int(ordered))
    model = model_of([node], {"x": [30]}, RESULTS, dtypes=dict.fromkeys(RESULTS[1:], INT64))
    library, random = Backend.prepare(model), np.random.default_rng(0)
    for few in (1, 4, 99):
        x = random.integers(-few, few, 30).astype(np.float32)
        for found, expected in zip(library.run({"x": x}), run(model, {"x": x}), strict=True):
            assert np.array_equal(found, expected) and found.dtype == expected.dtype


@pytest.mark.parametrize("ordered", [0, 1])
def test_unique_elements_of_those_that_the_data_choose(ordered: int) -> None:
    b = NodeBuilder()
    kept = b.node("Compress", "x", b.node("Greater", "x", b.constant(np.float32(0))), axis=0)
    found = b.node("Unique", kept, results=4, sorted=ordered)
    results = (found, *b.results()[1:])
    model = b.model([9], *results, dtypes=dict.fromkeys(results[1:], INT64))
    x = np.array([3, -1, 2, 3, 9, 2, -2, 3, 1], np.float32)
    check(model, [{"x": x}, {"x": abs(x)}, {"x": np.where(x == 9, np.float32(np.finfo(np.float32).max), x)}])


def test_other_forms_of_unique_are_refused() -> None:
    node = helper.make_node("Unique", ["x"], ["y"], axis=0)
    with pytest.raises(ModelError, match="only whole tensors and vectors"):
        imported(model_of([node], {"x": [3, 2]}, ["y"]))


@pytest.mark.parametrize("axis, largest", [(0, 1), (-1, 0)])
def test_the_largest_as_many_as_an_input_says(axis: int, largest: int) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "places"], axis=axis, largest=largest)
    model = model_of([node], {"x": [4, 5], "k": [1]}, ["y", "places"], dtypes={"k": INT64, "places": INT64})
    x = np.random.default_rng(0).integers(0, 4, (4, 5)).astype(np.float32)
    check(model, [{"x": x, "k": np.array([k])} for k in range(5)], bounds={"y": 3})
    check(model, [{"x": x, "k": np.array([k])} for k in range(5)])


@pytest.mark.parametrize("largest", [0, 1])
def test_at_most_so_many_of_those_that_the_data_choose(largest: int) -> None:
    b = NodeBuilder()
    kept = b.node("Compress", "x", b.node("Greater", "x", b.constant(np.float32(0))), axis=0)
    count = b.node("Concat", b.constant(np.array([4])), b.node("Shape", kept), axis=0)
    best = b.node("TopK", kept, b.node("ReduceMin", count, axes=[0], keepdims=1), results=2, axis=0, largest=largest)
    places = b.results()[1]
    model = b.model([9], best, places, dtypes={places: INT64})
    x = np.array([3, -1, 2, 3, 9, 2, -2, 3, 1], np.float32)
    check(model, [{"x": x}, {"x": abs(x)}, {"x": -x}, {"x": -abs(x)}])
    with pytest.raises(ModelError, match="fixed number of rows, and there may be fewer"):
        best = b.node("TopK", kept, b.constant(np.array([4])), results=2)
        imported(b.model([9], best))
