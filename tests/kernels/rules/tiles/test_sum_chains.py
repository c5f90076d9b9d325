"""Check that sums with several accumulators compute the same, where a tile has few."""

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import topi
from tvm.tirx import For

from passfit.kernels.schedule.candidates import schedules
from passfit.targets import get_target
from tests.kernels.te_kernels import kernel_of, run

pytestmark = pytest.mark.tvm
MACHINE = get_target("x86-64").machine


def product(rows, terms, columns):
    """Build a product with a bias and an activation."""
    shapes = [(rows, terms), (terms, columns), (1, columns)]
    return kernel_of(shapes, lambda a, b, c: topi.nn.relu(topi.add(topi.nn.matmul(a, b), c)))


def chains(kernel):
    """Count the accumulators of each sum."""
    found = []
    tvm_ffi.structural_walk(kernel.body, [(For, lambda loop: found.append((loop.loop_var.name, int(loop.extent))))])
    return next((extent for name, extent in found if name == "chain"), 1)


def fastest(kernel, machine=MACHINE):
    return schedules(kernel, frozenset(), machine).within(4096).kernel


@settings(max_examples=10)
@given(rows=st.integers(1, 3), terms=st.sampled_from([16, 18, 24, 50, 64]), columns=st.sampled_from([8, 16, 24, 40]))
def test_products_stay(rows, terms, columns):
    kernel = product(rows, terms, columns)
    assert np.allclose(run(fastest(kernel)), run(kernel), rtol=1e-5, atol=1e-5)


@settings(max_examples=6)
@given(channels=st.sampled_from([4, 6, 8]), taps=st.integers(1, 3), filters=st.sampled_from([8, 16]))
def test_windows_of_one_position_stay(channels, taps, filters):
    kernel = kernel_of([(1, channels, taps), (filters, channels, taps)], lambda a, b: topi.nn.conv1d(a, b, 1, 0, 1))
    assert np.allclose(run(fastest(kernel)), run(kernel), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "expected"),
    [
        (1, 64, 8, 8),
        (1, 64, 16, 4),
        (2, 64, 16, 2),
        (1, 60, 16, 4),
        (1, 62, 16, 2),  # 4 accumulators do not divide 62 terms
        (1, 61, 16, 1),
        (1, 12, 16, 1),  # too few terms
        (8, 64, 16, 1),  # a tile of sums enough
    ],
)
def test_few_sums_have_several_accumulators(rows, terms, columns, expected):
    assert chains(fastest(product(rows, terms, columns))) == expected


def test_short_code_has_one():
    assert chains(fastest(product(1, 64, 16), get_target("x86-64").with_opt("size").machine)) == 1
