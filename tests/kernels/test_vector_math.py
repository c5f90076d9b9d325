"""Exponentials as arithmetic: as exact as a float32 can be, on all of its range, and for what is no number."""

import math

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from tvm import te, tirx

from passfit.kernels.expressions import walk
from passfit.kernels.vector_math import with_vector_math
from passfit.targets import native_target

pytestmark = pytest.mark.tvm

EPSILON = 2.0**-23
REFERENCES = {
    "exp": np.exp,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
}


def kernel(name, count, dtype="float32"):
    data = te.placeholder((count,), dtype, "data")
    return te.create_prim_func([data, te.compute((count,), lambda i: getattr(tirx, name)(data[i]), "result")])


def computed(name, values):
    target = native_target()
    if target is None:
        pytest.skip("this machine is none of the targets")
    device = tvm.target.Target(target.tvm_config())
    function = with_vector_math(kernel(name, len(values))).with_attr("global_symbol", "f")
    built = tvm.tirx.build(tvm.IRModule({"f": function}), target=tvm.target.Target(device, host=device))
    result = tvm.runtime.tensor(np.zeros(len(values), "float32"))
    built["f"](tvm.runtime.tensor(values), result)
    return result.numpy()


@pytest.mark.parametrize("name", REFERENCES)
def test_it_is_what_the_function_is_to_a_few_units_in_the_last_place(name):
    values = np.concatenate([np.linspace(-87, 88.7, 20001), np.linspace(-5, 5, 20001), np.geomspace(1e-6, 10, 5001)])
    values = values.astype("float32")
    with np.errstate(over="ignore"):
        expected = REFERENCES[name](values.astype("float64"))
    error = np.abs(computed(name, values) - expected)
    # what never leaves -1 … 1 is exact relative to 1
    assert np.all(error <= 3 * EPSILON * (np.abs(expected) if name == "exp" else 1.0))


@pytest.mark.parametrize(
    ("name", "ends"), [("exp", (0, math.inf)), ("sigmoid", (0, 1)), ("tanh", (-1, 1)), ("erf", (-1, 1))]
)
def test_beyond_all_numbers(name, ends):
    low, lower, high, higher, odd = computed(name, np.array([-math.inf, -1e30, math.inf, 1e30, math.nan], "float32"))
    assert (low, high) == pytest.approx(ends, abs=EPSILON)
    assert (lower, higher) == pytest.approx(ends, abs=EPSILON)
    assert math.isnan(odd)


@pytest.mark.parametrize("name", REFERENCES)
def test_no_call_is_left_and_other_dtypes_stay(name):
    def calls(function):
        body = function.body.block.body.body.block.body.value
        return [each.op.name for each in walk(body) if getattr(getattr(each, "op", None), "name", "").endswith(name)]

    assert calls(kernel(name, 4)) == [f"tirx.{name}"]
    assert calls(with_vector_math(kernel(name, 4))) == []
    assert calls(with_vector_math(kernel(name, 4, "float64"))) == [f"tirx.{name}"]
