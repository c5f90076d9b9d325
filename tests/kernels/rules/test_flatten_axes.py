"""Check axis fusion: the same elements in fewer dimensions, and nothing else changed."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx

from passfit.codegen.objects import build_module
from passfit.kernels.rules.flatten_axes import flatten_axes, with_shapes_of

from ...profiles import examples
from ..programs import HOST

pytestmark = pytest.mark.tvm
_FEW = settings(max_examples=examples(25))


def shapes(kernel):
    return [tuple(int(extent) for extent in param.ty.shape) for param in kernel.params]


def elementwise(shape, *operands):
    """Build an element-wise kernel; each operand has extents of 1 along broadcast axes."""
    given = [te.placeholder(each, "float32", f"operand{number}") for number, each in enumerate(operands)]

    def element(*axes):
        return sum(each[tuple(0 if int(n) == 1 else a for a, n in zip(axes, each.shape))] for each in given)

    return te.create_prim_func([*given, te.compute(shape, element, "result")])


def test_all_axes_of_an_elementwise_kernel():
    assert shapes(flatten_axes(elementwise((2, 3, 7, 7), (2, 3, 7, 7)))) == [(294,), (294,)]


def test_a_broadcast_axis_stays_apart():
    kernel = flatten_axes(elementwise((2, 3, 7, 7), (2, 3, 7, 7), (1, 3, 1, 1)))
    assert shapes(kernel) == [(2, 3, 49), (1, 3, 1, 1), (2, 3, 49)]


def test_a_convolution_of_single_elements_is_a_product_of_matrices():
    data, weight = te.placeholder((1, 8, 5, 6), "float32", "data"), te.placeholder((4, 8), "float32", "weight")
    c = te.reduce_axis((0, 8), "c")
    result = te.compute((1, 4, 5, 6), lambda n, f, y, x: te.sum(data[n, c, y, x] * weight[f, c], [c]), "result")
    assert shapes(flatten_axes(te.create_prim_func([data, weight, result]))) == [(1, 8, 30), (4, 8), (1, 4, 30)]


def test_what_is_read_in_part_keeps_its_lines():
    data = te.placeholder((1, 6, 5), "float32", "data")
    kernel = flatten_axes(te.create_prim_func([data, te.compute((1, 6, 3), lambda n, y, x: data[n, y, x], "result")]))
    assert shapes(kernel) == [(1, 6, 5), (1, 6, 3)]


def test_a_parameter_may_be_kept():
    assert shapes(flatten_axes(elementwise((3, 4), (3, 4)), frozenset({0}))) == [(3, 4), (3, 4)]


@pytest.mark.parametrize(
    "element",
    [
        lambda data: lambda y, x: data[x, y],
        lambda data: lambda y, x: data[y, 3 - x],
        lambda data: lambda y, x: data[y, x] * x.astype("float32"),
        lambda data: lambda y, x: tirx.if_then_else(x > 1, data[y, x], tirx.const(0, "float32")),
    ],
    ids=["transposed", "reversed", "by position", "under a condition"],
)
def test_axes_used_in_another_way_stay(element):
    data = te.placeholder((4, 4), "float32", "data")
    kernel = te.create_prim_func([data, te.compute((4, 4), element(data), "result")])
    assert flatten_axes(kernel).same_as(kernel)


@_FEW
@given(st.data())
def test_it_computes_the_same(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    kept = st.tuples(*(st.sampled_from([1, extent]) for extent in shape))
    operands = data.draw(st.lists(kept, min_size=1, max_size=3))
    kernel = elementwise(shape, *operands)
    flat = flatten_axes(kernel)
    made = with_shapes_of(kernel, flat, flat)
    assert shapes(made) == shapes(kernel)
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(each).astype("float32") for each in operands]
    np.testing.assert_array_equal(computed(made, values).reshape(shape), computed(kernel, values).reshape(shape))


def computed(kernel, values):
    arguments = [tvm.runtime.tensor(value.reshape(shape)) for value, shape in zip(values, shapes(kernel))]
    result = tvm.runtime.tensor(np.full(shapes(kernel)[-1], np.nan, "float32"))
    build_module({"f": kernel}, HOST)["f"](*arguments, result)
    return result.numpy()
