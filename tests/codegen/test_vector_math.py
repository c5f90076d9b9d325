"""Test exponentials expanded into arithmetic: float32 accuracy on the whole range, and NaN."""

import math

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
import tvm_ffi
from tvm import te, tirx

from passfit.codegen.elf import read_object
from passfit.codegen.objects import build_module
from passfit.codegen.symbols import uses_workspace
from passfit.codegen.vector_math import expand_vector_math, ready_for_vectors

from ..kernels.programs import HOST

pytestmark = pytest.mark.tvm

EPSILON = 2.0**-23
ODD = np.array([-math.inf, -1e30, math.inf, 1e30, math.nan], "float32")
REFERENCES = {
    "exp": np.exp,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
}


def elementwise(element, count, dtype="float32"):
    data = te.placeholder((count,), dtype, "data")
    return te.create_prim_func([data, te.compute((count,), lambda i: element(data, i), "result")])


def kernel(name, count, dtype="float32"):
    return elementwise(lambda data, i: getattr(tirx, name)(data[i]), count, dtype)


def computed(kernel, values):
    """Run the compiled kernel, of as many elements, on `values`."""
    result = tvm.runtime.tensor(np.zeros(len(values), "float32"))
    build_module({"f": kernel}, HOST)["f"](tvm.runtime.tensor(values), result)
    return result.numpy()


@pytest.mark.parametrize("name", REFERENCES)
def test_it_is_what_the_function_is_to_a_few_units_in_the_last_place(name):
    values = np.concatenate([np.linspace(-87, 88.7, 20001), np.linspace(-5, 5, 20001), np.geomspace(1e-6, 10, 5001)])
    values = values.astype("float32")
    with np.errstate(over="ignore"):
        expected = REFERENCES[name](values.astype("float64"))
    error = np.abs(computed(kernel(name, len(values)), values) - expected)
    # what never leaves -1 … 1 is exact relative to 1
    assert np.all(error <= 3 * EPSILON * (np.abs(expected) if name == "exp" else 1.0))


def test_tanh_keeps_the_relative_precision_of_small_numbers():
    """Chains of tanh amplify what its smallest results lose: a ladder of 24 differed by 4e-3."""
    values = np.geomspace(1e-30, 8, 30001).astype("float32")
    values = np.concatenate([values, -values])
    expected = np.tanh(values.astype("float64"))
    error = np.abs(computed(kernel("tanh", len(values)), values) - expected)
    assert np.all(error <= 8 * EPSILON * np.abs(expected))


@pytest.mark.parametrize(
    ("name", "ends"), [("exp", (0, math.inf)), ("sigmoid", (0, 1)), ("tanh", (-1, 1)), ("erf", (-1, 1))]
)
def test_beyond_all_numbers(name, ends):
    low, lower, high, higher, odd = computed(kernel(name, 5), ODD)
    assert (low, high) == pytest.approx(ends, abs=EPSILON)
    assert (lower, higher) == pytest.approx(ends, abs=EPSILON)
    assert math.isnan(odd)


@pytest.mark.parametrize("name", REFERENCES)
def test_no_call_is_left_and_other_dtypes_stay(name):
    def calls(function):
        return str(function).count(f"{name}(")

    assert calls(kernel(name, 4)) == 1
    assert calls(expand_vector_math(ready_for_vectors(kernel(name, 4)))) == 0
    assert calls(expand_vector_math(ready_for_vectors(kernel(name, 4, "float64")))) == 1


def vectorised(kernel, lanes=8):
    schedule = tvm.s_tir.Schedule(kernel)
    schedule.vectorize(schedule.split(*schedule.get_loops(schedule.get_sblock("result")), [None, lanes])[1])
    return schedule.mod["main"]


@pytest.mark.parametrize("form", [lambda kernel: kernel, vectorised])
def test_functions_of_functions_of_functions(form):
    # each put in place of its argument, wherever that is used, they would be 10**20 instructions
    def element(data, i):
        value = data[i]
        for _ in range(4):
            value = tirx.sigmoid(tirx.tanh(tirx.erf(tirx.exp(0.0 - value))))
        return value

    def expected(value):
        for _ in range(4):
            value = REFERENCES["sigmoid"](np.tanh(REFERENCES["erf"](np.exp(-value))))
        return value

    values = np.linspace(-3, 3, 64).astype("float32")
    assert computed(form(elementwise(element, 64)), values) == pytest.approx(expected(values), rel=1e-5)


@pytest.mark.parametrize("form", [lambda kernel: kernel, vectorised])
def test_what_is_not_chosen_is_not_read(form):
    # 1 TiB beyond the data: reading there ends the process
    def element(data, i):
        far = tirx.if_then_else(tirx.sigmoid(data[i]) > 2.0, tirx.exp(data[i + 2**38]), tirx.tanh(data[i]))
        return tirx.if_then_else(i < 40, far, tirx.if_then_else(i < 50, 7.0, tirx.erf(data[i])))

    values = np.linspace(-3, 3, 64).astype("float32")
    expected = np.concatenate([np.tanh(values[:40]), np.full(10, 7), REFERENCES["erf"](values[50:])])
    assert computed(form(elementwise(element, 64)), values) == pytest.approx(expected, abs=1e-6)


def test_what_is_used_twice_is_bound_before_its_store():
    values = np.linspace(-3, 3, 64).astype("float32")
    twice = elementwise(lambda data, i: (tirx.exp(data[i]) + 1.0) / (tirx.exp(data[i]) + 3.0), 64)
    expected = (np.exp(values) + 1) / (np.exp(values) + 3)
    assert computed(twice, values) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", REFERENCES)
def test_what_an_expression_binds_stays_in_it(name):
    values = np.linspace(-3, 3, 64).astype("float32")

    def element(data, i):
        square = tirx.Var("square", "float32")
        return tirx.Let(square, data[i] * data[i], getattr(tirx, name)(square) - square)

    expected = REFERENCES[name](values**2) - values**2
    assert computed(elementwise(element, 64), values) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", REFERENCES)
def test_registers_need_no_workspace(name, tmp_path):
    build_module({"f": vectorised(kernel(name, 64))}, HOST).write_to_file(str(tmp_path / "f.o"), "o")
    assert not uses_workspace(read_object((tmp_path / "f.o").read_bytes()))


def test_equal_calls_of_one_statement_are_computed_once():
    """A leaky ReLU of a gate names it thrice."""
    x, y = (tirx.decl_buffer([8], "float32", name) for name in "xy")
    at = tirx.Var("at", "int32")
    gate = tirx.sigmoid(tirx.BufferLoad(x, [at]))
    leaky = tirx.Select(gate > 0, gate, gate * tirx.const(0.01, "float32"))
    kernel = expand_vector_math(tirx.PrimFunc([x, y], tirx.For(at, 0, 8, 0, tirx.BufferStore(y, leaky, [at]))))
    divisions: list[object] = []
    tvm_ffi.structural_walk(kernel.body, (tirx.Div, divisions.append))
    assert len(divisions) == 1
