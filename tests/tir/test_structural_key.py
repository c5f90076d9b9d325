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
