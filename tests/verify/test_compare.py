from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from passfit.errors import NumericError
from passfit.verify.compare import Case, compare
from passfit.verify.error_bounds import SLACK, output_range

from .one_output import compare_output

anything = arrays(np.float32, array_shapes(max_dims=3, max_side=4), elements=st.floats(width=32))


@given(anything)
def test_an_output_equals_itself(values):
    assert compare_output("x", values, values.copy(), 0.0).absolute == 0


@given(anything, st.data())
def test_a_difference_beyond_the_tolerance_is_found_and_named(values, data):
    finite = np.nan_to_num(values, nan=1, posinf=2, neginf=3).clip(-1e6, 1e6)
    where = data.draw(st.integers(0, finite.size - 1))
    changed = finite.copy()
    changed.flat[where] += np.float32(output_range([finite])) + np.float32(1)
    with pytest.raises(NumericError) as error:
        compare_output("x", changed, finite, 1e-4)
    index = [int(i) for i in np.unravel_index(where, finite.shape)]
    assert f"output 'x' of case 0, element {index}" in str(error.value)


def test_errors_are_relative_to_the_range():
    found = compare_output("x", np.float32([0, 10.5]), np.float32([0, 10]), 0.1)
    assert (found.absolute, found.relative) == (0.5, 0.05)


@pytest.mark.parametrize(("values", "expected"), [([3, 3], 3), ([-3], 3), ([0, 0], 1), ([], 1), ([1, 4], 3)])
def test_ranges(values, expected):
    assert output_range([np.array(values, np.float64)]) == expected


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_nan_and_infinities_must_be_at_the_same_places(odd):
    compare_output("x", np.float32([odd, 1]), np.float32([odd, 1]), 0)
    for result, expected in (([odd, 1], [1, 1]), ([1, 1], [odd, 1]), ([np.inf, 1], [-np.inf, 1])):
        with pytest.raises(NumericError):
            compare_output("x", np.float32(result), np.float32(expected), 1e9)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_])
def test_integers_must_be_equal(dtype):
    with pytest.raises(NumericError, match=r"element \[1\]"):
        compare_output("x", np.array([0, 1], dtype), np.array([0, 0], dtype), 1e9)


def test_another_shape_or_dtype_is_refused():
    with pytest.raises(NumericError):
        compare_output("x", np.zeros(2, np.float32), np.zeros(3, np.float32), 1)
    with pytest.raises(NumericError):
        compare_output("x", np.zeros(2, np.float32), np.zeros(2, np.float64), 1)


def test_empty_outputs_and_scalars_are_fine():
    assert compare_output("x", np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), 0).relative == 0
    with pytest.raises(NumericError, match=r"element \[\]"):
        compare_output("x", np.float32(1).reshape(()), np.float32(2).reshape(()), 1e-4)


def case(expected, noise=0.0, double=None):
    """Make a case with ONNX Runtime's `expected`, and its optimised outputs `noise` away."""
    optimized = {name: np.asarray(value + np.float32(noise)) for name, value in expected.items()}
    return Case({}, expected, optimized, double)


def test_without_doubles_onnx_runtimes_distance_from_itself_counts():
    expected, found = np.float32([0, 1e-3]), np.float32([1e-5, 1e-3])
    with pytest.raises(NumericError, match="output 'a' of case 0"):
        compare([{"a": found}], [case({"a": expected}, noise=1e-5 / SLACK / 2)], 1e-4)
    found = compare([{"a": found}], [case({"a": expected}, noise=2e-5)], 1e-4)
    assert found.relative == pytest.approx(1e-2) and found.library_to_double is None


def test_errors_below_the_references_own_are_reported_but_allowed():
    expected, found = np.float32([0, 1e-6]), np.float32([1e-8, 1e-6])
    assert compare([{"a": found}], [case({"a": expected})], 1e-4).relative == pytest.approx(1e-2)


def test_the_range_of_an_output_is_that_of_all_its_cases():
    ones, tens = {"a": np.float32([1])}, {"a": np.float32([11])}
    assert compare([{"a": np.float32([1.5])}, tens], [case(ones), case(tens)], 1).relative == pytest.approx(0.05)


def test_the_worst_of_all_cases_and_outputs_counts():
    zeros = {"a": np.float32([0, 1]), "b": np.float32([0, 10])}
    worse = {"a": np.float32([0, 1.25]), "b": np.float32([0, 10.5])}
    found = compare([zeros, worse], [case(zeros), case(zeros)], 1)
    assert (found.absolute, found.relative) == (0.5, 0.25)


def test_the_first_output_in_order_is_named():
    good, bad = np.float32([0, 1]), np.float32([0, 2])
    with pytest.raises(NumericError, match="output 'b' of case 1"):
        compare([{"a": good, "b": good}, {"a": good, "b": bad}], [case({"a": good, "b": good})] * 2, 1e-4)


def test_one_unit_in_the_last_place_of_float16_is_no_difference():
    expected = np.array([0.127, 1.0, 0.0], np.float16)
    neighbours = np.nextafter(expected, np.float16(2))
    assert abs(neighbours - expected).max() > 6e-4
    compare_output("y", neighbours, expected, 6e-4)
    with pytest.raises(NumericError, match="element \\[0\\]"):
        compare_output("y", expected + np.float16(0.001), expected, 6e-4)


def test_errors_are_measured_from_the_doubles_where_there_are_some():
    runtime, double = np.float32([0, 1]), np.array([0.0, 1.001])
    cases = [case({"a": runtime}, double={"a": double})]
    found = compare([{"a": np.float32([0, 1.001])}], cases, 1e-4)
    assert found.absolute == pytest.approx(1e-3, rel=1e-3)
    assert found.library_to_double < 1e-6 and found.onnxruntime_to_double == pytest.approx(1e-3)
    with pytest.raises(NumericError):
        compare([{"a": np.float32([0, 1.001 + 1e-3 * SLACK + 1e-4])}], cases, 1e-4)


def test_a_few_elements_may_be_as_far_as_onnx_runtimes_worst_and_not_all():
    """Put one element of ONNX Runtime's far off: one of the library's may be as well, but not all."""
    double = np.linspace(0, 1, 10_000)
    runtime = double.astype(np.float32)
    runtime[17] += np.float32(1e-3)
    cases = [case({"a": runtime}, double={"a": double})]
    one, all_of_them = double.astype(np.float32), (double + 1e-3).astype(np.float32)
    one[4711] += np.float32(2e-3)
    compare([{"a": one}], cases, 1e-4)
    with pytest.raises(NumericError, match="root mean square"):
        compare([{"a": all_of_them}], cases, 1e-4)


def test_a_value_beyond_the_models_precision_may_be_infinite_where_onnx_runtimes_is():
    cases = [case({"a": np.float32([np.inf, 1])}, double={"a": np.array([1e40, 1.0])})]
    compare([{"a": np.float32([np.inf, 1])}], cases, 1e-4)
    with pytest.raises(NumericError, match="infinities"):
        compare([{"a": np.float32([1, 1])}], cases, 1e-4)


def test_a_refusal_carries_the_errors_of_every_output():
    good, bad = np.float32([0, 1]), np.float32([0, 2])
    with pytest.raises(NumericError) as error:
        compare([{"a": good, "b": bad}], [case({"a": good, "b": good})], 1e-4)
    fine, wrong = error.value.outputs
    assert (fine["output"], fine["library"]["largest"]) == ("a", 0)
    assert wrong["library"]["largest"] == 1 > wrong["allowed"]["largest"]


def test_an_index_may_be_any_that_a_reference_finds():
    """Make two scores equal but for rounding: moved by that, the reference chooses differently."""
    cases = [replace(case({"a": np.int64([3])}, double={"a": np.int64([4])}), witnesses=({"a": np.int64([5])},))]
    compare([{"a": np.int64([5])}], cases, 1e-4)
    with pytest.raises(NumericError, match="exact equality"):
        compare([{"a": np.int64([4])}], cases, 1e-4)


def test_a_dequantised_integer_may_be_as_many_units_away_as_an_integer():
    expected, apart = {"y": np.float32([-2.2, 1.0, 0.0])}, {"y": np.float32([-2.15, 1.0, 0.0])}
    looked = replace(case(expected, double=expected), double=None, units=1, scales={"y": 0.05})
    compare([apart], [looked], 1e-4)
    for wrong in (replace(looked, scales={}), replace(looked, units=0), replace(looked, scales={"y": 0.04})):
        with pytest.raises(NumericError):
            compare([apart], [wrong], 1e-4)
