"""Kernels share a key if they are equal but for names."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

from hypothesis import given
from hypothesis import strategies as st
from tvm import te, tirx

from passfit.tir.structural_key import structural_key

pytestmark = pytest.mark.tvm


def line(terms: list[float], extent: int = 8, function: str = "exp", name: str = "x") -> tirx.PrimFunc:
    """Return the kernel that adds a function of each term times x."""
    x = te.placeholder((extent,), name=name)
    call = getattr(tirx, function)
    y = te.compute((extent,), lambda i: sum(call(x[i] * tirx.const(each, "float32")) for each in terms), name="y")
    return te.create_prim_func([x, y])


numbers = st.lists(st.floats(-4, 4, width=16), min_size=1, max_size=3)


@given(numbers, numbers)
def test_numbers_and_their_order_count_and_names_do_not(one, other):
    assert structural_key(line(one)) == structural_key(line(one, name="z"))
    same = list(map(repr, map(float, one))) == list(map(repr, map(float, other)))
    assert (structural_key(line(one)) == structural_key(line(other))) == same


def test_extents_functions_and_what_else_is_given_count():
    kernels = [line([1.0]), line([1.0], extent=9), line([1.0], function="sqrt")]
    assert len({structural_key(each) for each in kernels} | {structural_key(kernels[0], 3)}) == 4


def test_operators_operands_and_their_order_count():
    """Objects of kernels are kept by their key: two kernels of one key would be one object."""
    select, two, three = tirx.Select, tirx.const(2.0, "float32"), tirx.const(3.0, "float32")
    forms = [
        lambda x, y, u, v: x - y, lambda x, y, u, v: y - x, lambda x, y, u, v: u - y, lambda x, y, u, v: x - v,
        lambda x, y, u, v: x - u, lambda x, y, u, v: u - x, lambda x, y, u, v: tirx.max(x, y), lambda x, y, u, v: tirx.min(x, y),
        lambda x, y, u, v: select(x < y, x, y), lambda x, y, u, v: select(x < y, y, x), lambda x, y, u, v: select(y < x, x, y),
        lambda x, y, u, v: select(x <= y, x, y), lambda x, y, u, v: x * two + y * three, lambda x, y, u, v: x * three + y * two,
        lambda x, y, u, v: y * two + x * three, lambda x, y, u, v: tirx.exp(x) + tirx.sqrt(y),
        lambda x, y, u, v: tirx.sqrt(x) + tirx.exp(y), lambda x, y, u, v: x + (y + u), lambda x, y, u, v: (x + y) + u,
    ]  # fmt: skip

    def kernel(form) -> tirx.PrimFunc:
        x, y = te.placeholder((8, 8), name="x"), te.placeholder((8, 8), name="y")
        result = te.compute((8, 8), lambda i, j: form(x[i, j], y[i, j], x[j, i], y[j, i]), name="z")
        return te.create_prim_func([x, y, result])

    assert len({structural_key(kernel(form)) for form in forms}) == len(forms)
