"""Check NonZero and Compress against ONNX Runtime, for none, some and all of their elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.errors import ModelError

from ....models import NodeBuilder, model_of, run, shape_of
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


def test_whatever_reads_a_bounded_result_reads_what_is_left() -> None:
    b = NodeBuilder()
    places = b.node("NonZero", "x")
    numbers = b.node("GatherND", "x", b.node("Transpose", places))
    outputs = [b.node("ReduceSum", numbers), b.node("Size", numbers), places]
    dtypes = {outputs[1]: TensorProto.INT64, places: TensorProto.INT64}
    random, bound = np.random.default_rng(0), 5
    cases = [{"x": random.random((3, 4)).astype(np.float32) * (random.random((3, 4)) < share)} for share in SHARES]
    canonical = check(b.model([3, 4], *outputs, dtypes=dtypes), cases, bounds={places: bound})
    for case in cases:
        left = case["x"][case["x"] != 0][:bound]
        total, count = run(canonical, case)[:2]
        assert np.isclose(total.item(), left.sum()) and count == left.size


def test_each_of_two_equal_choices_has_a_bound_of_its_own() -> None:
    nodes = [helper.make_node("NonZero", ["x"], [name]) for name in "ab"]
    model = model_of(nodes, {"x": [3, 4]}, ["a", "b"], dtypes=dict.fromkeys("ab", TensorProto.INT64))
    for bounds in ({"b": 3}, {"a": 4}, {"a": 4, "b": 3}, {"a": 3, "b": 3}):
        found = check(model, [{"x": np.eye(3, 4, dtype=np.float32) + share} for share in (0, 1)], bounds=bounds)
        sizes = {value.name: shape_of(value)[-1] for value in found.graph.output}
        assert [sizes[name] for name in "ab"] == [bounds.get(name, 12) for name in "ab"]


def places_above_0(b: NodeBuilder) -> str:
    return b.node("NonZero", b.node("Greater", "x", b.constant(np.float32(0))))


def test_choices_by_equal_masks_are_of_one_length() -> None:
    """Assign x[mask] = exp(x[mask]) of which each x[mask] has a mask of its own."""
    b = NodeBuilder()
    index, of = (b.node("Transpose", places_above_0(b), perm=[1, 0]) for _ in range(2))
    value = b.node("ScatterND", "x", index, b.node("Exp", b.node("GatherND", "x", of)))
    check(b.model([3, 4], value), [{"x": np.eye(3, 4, dtype=np.float32) - share} for share in (0.5, 0, 2)])


@pytest.mark.parametrize("bound", [2, 9])
def test_what_is_chosen_by_equal_masks_up_to_other_bounds_differs(bound: int) -> None:
    b = NodeBuilder()
    one, other = places_above_0(b), places_above_0(b)
    outputs = [b.node("ReduceSum", b.node("NonZero", each)) for each in (one, other)]
    model = b.model([3, 4], *outputs, dtypes=dict.fromkeys(outputs, TensorProto.INT64))
    check(model, [{"x": np.arange(12, dtype=np.float32).reshape(3, 4) - 4}], bounds={other: bound})


@pytest.mark.parametrize("copied", ["Identity", "Cast"])
def test_outputs_of_one_open_value_keep_their_names(copied: str) -> None:
    cast = {"to": TensorProto.INT64} if copied == "Cast" else {}
    nodes = [helper.make_node("NonZero", ["x"], ["a"]), helper.make_node(copied, ["a"], ["b"], **cast)]
    cases = [{"x": np.eye(3, 4, dtype=np.float32) * share} for share in (0, 1)]
    for outputs in (["a", "b"], ["b", "a"]):
        found = check(model_of(nodes, {"x": [3, 4]}, outputs, dtypes=dict.fromkeys("ab", TensorProto.INT64)), cases)
        assert [value.name for value in found.graph.output] == [*outputs, *(f"{each}_length" for each in outputs)]


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
