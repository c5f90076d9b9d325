"""Check the bytes of inputs alone, or outputs alone: a bound on every plan and sharing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.memory import orders, plan_arena, ports_floor, share

from ..strategies import chain
from .shared_programs import sharing_programs


@given(sharing_programs(), st.booleans(), st.booleans(), st.sampled_from([1, 16, 64]))
def test_no_plan_is_below_it(program, in_place, copies, alignment):
    least = ports_floor(program, alignment)
    for sharing in (program, share(program, in_place=in_place, copies=copies, alignment=alignment)):
        for _, order in orders(sharing):
            assert least <= plan_arena(sharing.reordered(order), alignment).arena


@pytest.mark.parametrize(("sizes", "expected"), [((100, 10), 128), ((10, 500, 100), 128), ((64, 64), 64)])
def test_the_larger_port_of_a_chain_is_rounded_up(sizes, expected):
    assert ports_floor(chain(*sizes)) == expected
