"""Queries by keys: rows of keys are turned into columns, a block at a time; the products are the same."""

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.codegen.objects import build_module
from passfit.kernels.rules.nt_matmul import nt_matmul
from passfit.targets import Machine
from passfit.tir.in_place.analysis import analyse_sharing
from passfit.tir.workspace import held_bytes

from ...profiles import examples
from ..programs import HOST, lowered, weight
from ..windows import Single

pytestmark = pytest.mark.tvm


def products(rows, columns, depth, equation, body=lambda made: made):
    """Return the kernel of two heads of queries by keys, in the order of axes of `equation`."""
    sizes = dict(zip("bhqkd", (1, 2, rows, columns, depth)))
    shapes = [tuple(sizes[axis] for axis in operand) for operand in equation.split("->")[0].split(",")]
    return Single(lowered(shapes, lambda *operands: body(relax.op.einsum(operands, equation))))


def scheduled(single, machine, repackable=frozenset()):
    return [each.kernel for each in nt_matmul(single.kernel, repackable, machine)]


@settings(max_examples=examples(8))
@given(
    st.sampled_from([8, 13, 33]), st.sampled_from([8, 16, 29, 40]), st.sampled_from([3, 16, 33]),
    st.sampled_from(["bhqd,bhkd->bhqk", "bqhd,bkhd->bhqk", "bhkd,bhqd->bhqk", "bhqd,bkd->bhqk"]),
    st.booleans(), st.sampled_from([4, 8, 16]),
)  # fmt: skip
def test_rows_by_rows(rows, columns, depth, equation, clipped, lanes):
    single = products(rows, columns, depth, equation, relax.op.nn.relu if clipped else lambda made: made)
    found = scheduled(single, Machine(lanes=lanes))
    assert len(found) == sum(each >= 4 and each <= columns for each in (lanes, lanes // 2))
    for made in found:
        assert analyse_sharing(made) == analyse_sharing(single.kernel)
        built = build_module({"f": made}, HOST)
        np.testing.assert_allclose(single.run(built["f"], single.operands), single.result, rtol=1e-5)


def test_shorter_vectors_take_less_workspace():
    wide, narrow = scheduled(products(32, 32, 32, "bhqd,bhkd->bhqk"), Machine(lanes=16))
    assert held_bytes(narrow) < held_bytes(wide)


def test_columns_along_memory_are_left_alone():
    assert scheduled(products(32, 32, 32, "bhqd,bhdk->bhqk"), Machine()) == []


def test_few_rows_and_weights_are_left_alone():
    assert scheduled(products(4, 32, 32, "bhqd,bhkd->bhqk"), Machine()) == []
    dense = Single(lowered([(32, 16)], lambda x: relax.op.einsum([x, weight(24, 16)], "qd,kd->qk")))
    assert scheduled(dense, Machine(), frozenset({1})) == []


def test_a_result_of_one_element_is_left_alone():
    assert scheduled(Single(lowered([(9,), (9,)], relax.op.matmul)), Machine()) == []
    assert (
        scheduled(Single(lowered([(9,), ()], lambda x, factor: relax.op.sum(relax.op.multiply(x, factor)))), Machine())
        == []
    )
