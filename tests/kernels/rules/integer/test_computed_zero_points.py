"""Products whose data has a zero point computed at run time equal the exact arithmetic, by the rules for constant ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te
from tvm.tirx import PrimFunc

from passfit.codegen.objects import build_module
from passfit.frontend.relax.integer.quantity import Quantity
from passfit.frontend.relax.integer.sums import Sum, Window, convolution, product
from passfit.kernels.rewrite.channels_last import with_channels_last
from passfit.kernels.rules.integer.rows import DOT_RULES, nchw_pmaddwd, nhwc_pmaddwd, nhwc_pmaddwd_blocked
from passfit.kernels.rules.rule import RuleResult
from passfit.targets import get_target
from passfit.tir.row_window import row_window
from passfit.tir.workspace import workspace_bytes

from ....profiles import examples
from .channels import MACHINES, PROCESSORS

pytestmark = pytest.mark.tvm
VNNI = DOT_RULES[0]
WEIGHT, FORM = 1, Sum((Quantity(place=2), Quantity(0)))


def matrices(rows: int, depth: int, columns: int, dtype: str = "uint8", zeros: tuple[int, ...] = ()) -> PrimFunc:
    a, b = te.placeholder((rows, depth), dtype, "x"), te.placeholder((depth, columns), "int8", "w")
    z = te.placeholder(zeros, dtype, "z")
    return te.create_prim_func([a, b, z, product(a, b, z, form=FORM)], index_dtype_override="int64")


def batched(rows: int, depth: int, columns: int) -> PrimFunc:
    a, b = te.placeholder((1, rows, depth), "uint8", "x"), te.placeholder((depth, columns), "int8", "w")
    z = te.placeholder((), "uint8", "z")
    return te.create_prim_func([a, b, z, product(a, b, z, form=FORM)], index_dtype_override="int64")


def windows(channels: int, size: int, taps: int, pad: int, dtype: str, last: tuple[int, ...]) -> PrimFunc:
    x, w = (
        te.placeholder((1, channels, size, size + 3), dtype, "x"),
        te.placeholder((16, channels, taps, taps), "int8", "w"),
    )
    z = te.placeholder((), dtype, "z")
    y = convolution(x, w, z, form=FORM, window=Window((1, 1), (1, 1), (pad, pad), (pad, pad)))
    kernel = te.create_prim_func([x, w, z, y], index_dtype_override="int64")
    return with_channels_last(kernel, frozenset(last), frozenset({WEIGHT}))[0]


def assert_exact(
    kernel: PrimFunc,
    found: Sequence[RuleResult],
    seed: int,
    processors: Sequence[dict] = PROCESSORS,
    first: int | None = None,
) -> None:
    """Compare the only schedule with the kernel as TVM makes it."""
    (only,) = found
    random = np.random.default_rng(seed)
    operands = []
    window = first is not None
    for param in kernel.params[window:-1]:
        shape, limits = [int(each) for each in param.ty.shape], np.iinfo(str(param.ty.dtype))
        values = random.integers(limits.min, limits.max, shape, endpoint=True)
        operands.append(np.where(random.random(shape) < 0.3, limits.min, values).astype(limits.dtype))
    packed = list(operands)
    for each in only.repacks:
        packed[each.parameter - window] = each.apply(operands[each.parameter - window])

    def run(made: PrimFunc, given: list[np.ndarray], processor: dict) -> np.ndarray:
        result = tvm.runtime.tensor(np.full([int(each) for each in kernel.params[-1].ty.shape], 77, "int32"))
        build_module({"f": made}, processor)["f"](*([first] if window else []), *map(tvm.runtime.tensor, given), result)
        return result.numpy()

    expected = run(kernel, operands, PROCESSORS[0])
    for processor in processors:
        np.testing.assert_array_equal(run(only.kernel, packed, processor), expected)


@settings(max_examples=examples(6))
@given(
    st.integers(2, 20), st.integers(1, 40).map(lambda n: 2 * n), st.sampled_from([8, 16, 24, 48]), st.sampled_from(["uint8", "int8"]),
    st.sampled_from([nhwc_pmaddwd, nchw_pmaddwd]), st.sampled_from(MACHINES), st.integers(0, 9),
)  # fmt: skip
def test_products_of_matrices_are_exact(rows, depth, columns, dtype, rule, machine, seed):
    kernel = matrices(rows, depth, columns, dtype)
    assert_exact(kernel, list(rule(kernel, frozenset({WEIGHT}), machine)), seed)


@settings(max_examples=examples(4))
@given(
    st.sampled_from([2, 3, 8]),
    st.integers(4, 9),
    st.integers(1, 3),
    st.sampled_from(["uint8", "int8"]),
    st.sampled_from([(0, 3), ()]),
    st.integers(0, 9),
)
def test_windows_with_padding_are_exact(channels, size, taps, dtype, last, seed):
    kernel = windows(channels, size, taps, taps // 2, dtype, last)
    for rule in (nhwc_pmaddwd, nchw_pmaddwd):
        found = list(rule(kernel, frozenset({WEIGHT}), MACHINES[0]))
        if found:
            assert_exact(kernel, found, seed)


@pytest.mark.parametrize("rule", [nhwc_pmaddwd, VNNI, nhwc_pmaddwd_blocked])
@pytest.mark.parametrize("rows", [1, 4])
def test_rows_of_a_matrix_at_a_time_are_exact(rule, rows):
    kernel = row_window(batched(8, 1024 if rule is nhwc_pmaddwd_blocked else 64, 16), 1, rows)
    for first in (0, 4, 8 - rows):
        assert_exact(
            kernel, list(rule(kernel, frozenset({WEIGHT + 1}), get_target("x86-64-vnni").machine)), first, first=first
        )


def test_a_single_place_needs_little_workspace():
    for depth in (96, 640, 4000):
        found = [
            each
            for rule in (nhwc_pmaddwd, nhwc_pmaddwd_blocked)
            for each in rule(matrices(1, depth, 32), frozenset({WEIGHT}), MACHINES[0])
        ]
        assert len(found) == 1 and workspace_bytes(found[0].kernel) <= 192 + 128, depth


def test_a_zero_point_for_each_row_is_left_to_other_rules():
    kernel = matrices(6, 16, 16, zeros=(6, 1))
    for rule in (nhwc_pmaddwd, nchw_pmaddwd):
        assert list(rule(kernel, frozenset({WEIGHT}), MACHINES[0])) == []
