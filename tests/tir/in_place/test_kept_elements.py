"""Check elements kept at the commonest shift against sets of moves."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tvm")

from passfit.tir.in_place.kept_elements import commonest_kept

pytestmark = pytest.mark.tvm


@given(st.lists(st.tuples(st.integers(3, 9), st.integers(-4, 4)), min_size=1, max_size=12))
def test_every_element_that_moves_also_moves_by_the_commonest_shift(moves):
    counts = Counter(shift for _, shift in moves)
    shift = min(counts, key=lambda each: (-counts[each], each))
    expected = shift if {source for source, _ in moves} == {source for source, by in moves if by == shift} else None
    assert commonest_kept(*map(np.array, zip(*moves))) == expected
