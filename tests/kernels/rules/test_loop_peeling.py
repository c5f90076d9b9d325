"""Check loop peeling: padding is tested in the end tiles alone, and a remainder is a tile of its own."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.tirx.analysis import undefined_vars

from passfit.kernels.rules.tiles.tile_reduction import tile_reduction
from passfit.tir.index_grid import chunks
from passfit.tir.stores import stores

from ...profiles import examples
from ..programs import lowered, weight

pytestmark = pytest.mark.tvm


def _convolution(filters: int, width: int, padding: int = 1):
    program = lowered([(1, 4, 5, width)], lambda x: relax.op.nn.conv2d(x, weight(filters, 4, 3, 3), padding=padding))
    (kernel,) = program.kernels.values()
    return tile_reduction(kernel, frozenset({1})).kernel


def test_between_the_ends_nothing_is_asked_about_columns():
    """Peel 37 columns: 5, 6 times 5, and a remainder of 2; of 5 rows, above and below there is padding."""
    found = [store for store in stores(_convolution(16, 37).body) if store.masks]
    between = [store for store in found if any(loop.extent == 6 for loop in store.loops)]
    assert len(between) == 1 and len(found) > 1
    (store,) = between
    asked = {var for condition, _ in store.masks for var in undefined_vars(condition)}
    row, column, _, window_row, *_ = (loop.var for loop in store.loops)
    assert asked == {row, window_row} and column not in asked


@settings(max_examples=examples(20))
@given(st.sampled_from([8, 24, 40, 56, 104]), st.integers(1, 30), st.integers(1, 3))
def test_every_element_is_stored_once(filters, width, padding):
    kernel = _convolution(filters, width, padding)
    result = kernel.params[-1]
    times = np.zeros([int(extent) for extent in result.ty.shape], int)
    for store in stores(kernel.body):
        if store.buffer.same_as(result):
            for grid in chunks(store.loops, store.bindings):
                places, where = np.broadcast_arrays(grid.flat(store.indices, result), grid.mask(store.masks))
                np.add.at(times.reshape(-1), places[where], 1)
    assert (times == 1).all()
