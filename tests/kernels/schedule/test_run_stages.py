"""Run stages of fused kernels: the same results as apart, at most the held bytes, and nothing where one stage is all."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.codegen.objects import build_module
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rules.rule import Speed
from passfit.kernels.schedule.candidates import RULE_WORKSPACE, schedules
from passfit.kernels.schedule.divide_stages import HELD, divide_stages
from passfit.kernels.weights.repack import repackable_parameters
from passfit.program.workspaces import largest_workspace
from passfit.targets import Machine
from passfit.tir.row_window import row_window

from ...profiles import examples
from ..programs import HOST, lowered, random_inputs, run, weight
from ..windows import Single

pytestmark = pytest.mark.tvm
_op = relax.op


@pytest.fixture(autouse=True)
def slow_stages_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fuse groups that are slower than their kernels as well: their stages are to be right, too."""
    from passfit.passes.graph.mapping import scheduled_plan

    monkeypatch.setattr(scheduled_plan, "_is_slower", lambda *_: False)


def _fused(held: int) -> str:
    return f"fuse-by-mapping{{objective=latency,held={held}}}"


def _check(shape: tuple[int, ...], body: Callable, held: int, kernels: int | None = None) -> int:
    """Compare a graph fused in stages with its kernels apart; return the workspace."""
    apart = lowered([shape], body, ("legalize",))
    inputs = random_inputs(apart)
    (expected,) = run(apart, inputs)
    together = lowered([shape], body, ("legalize", _fused(held)))
    if kernels is not None:
        assert len(together.program.steps) == kernels, [step.kernel for step in together.program.steps]
    scheduled, _ = schedule_program(together)
    (found,) = run(scheduled, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(expected).max())))
    return largest_workspace(scheduled.program)


def _bias(x, channels: int, seed: int):
    return _op.add(x, weight(1, channels, 1, 1, seed=seed))


def _separable(channels: int, filters: int, strides: int = 1, taps: int = 3, residual: bool = False) -> Callable:
    def body(x):
        x = _op.nn.conv2d(x, weight(channels, 1, taps, taps, seed=1), strides=strides, padding=taps // 2, groups=channels)
        x = _op.nn.relu(_bias(x, channels, 2))
        made = _op.nn.relu(_bias(_op.nn.conv2d(x, weight(filters, channels, 1, 1, seed=3)), filters, 4))
        return _op.multiply(made, _op.sigmoid(made)) if residual else made

    return body


def _expand(channels: int, filters: int) -> Callable:
    def body(x):
        x = _op.nn.relu(_bias(_op.nn.conv2d(x, weight(filters, channels, 1, 1, seed=3)), filters, 4))
        return _bias(_op.nn.conv2d(x, weight(filters, 1, 3, 3, seed=1), padding=1, groups=filters), filters, 5)

    return body


def _gate(channels: int, inner: int) -> Callable:
    def body(x):
        mean = _op.mean(x, [2, 3], True)
        hidden = _op.nn.relu(_bias(_op.nn.conv2d(mean, weight(inner, channels, 1, 1, seed=1)), inner, 2))
        return _op.multiply(x, _op.sigmoid(_op.nn.conv2d(hidden, weight(channels, inner, 1, 1, seed=3))))

    return body


def _perceptron(x):
    x = _op.nn.relu(_op.matmul(x, weight(24, 40, seed=1)))
    return _op.matmul(_op.nn.relu(_op.matmul(x, weight(40, 17, seed=2))), weight(17, 8, seed=3))


@settings(max_examples=examples(4))
@given(
    st.sampled_from([1, 2]), st.sampled_from([(16, 16), (14, 9), (7, 21), (8, 1)]), st.sampled_from([1, 2]),
    st.sampled_from([1, 3, 5]), st.sampled_from([8, 13, 32]), st.booleans(), st.sampled_from([700, 4096, 1 << 20]),
)  # fmt: skip
def test_separable_convolutions(batch, plane, strides, taps, filters, residual, held):
    body = _separable(16, filters, strides, taps, residual)
    _check((batch, 16, *plane), body, held)


@settings(max_examples=examples(4))
@given(st.sampled_from([1, 2]), st.sampled_from([(16, 16), (7, 5), (14, 14)]), st.sampled_from([32, 48, 21]), st.sampled_from([4096, 8192, 65536]))
def test_windows_of_channels(batch, plane, filters, held):
    _check((batch, 16, *plane), _expand(16, filters), held)


@pytest.mark.parametrize("shape, inner", [((1, 16, 14, 14), 4), ((2, 24, 5, 9), 7), ((1, 33, 1, 1), 3)])
def test_a_gate_is_one_kernel(shape, inner):
    _check(shape, _gate(shape[1], inner), 4096, kernels=1)


@pytest.mark.parametrize("rows", [1, 5])
def test_layers_of_products(rows):
    _check((rows, 24), _perceptron, 4096, kernels=1)


def test_rows_are_held_within_the_bytes():
    workspace = _check((1, 16, 32, 32), _separable(16, 24), 8192, kernels=1)
    assert 16 * 32 * 4 <= workspace < 16 * 32 * 32 * 4  # at least one row, never the plane


def test_convolutions_with_halo_keep_their_kernels():
    def body(x):
        x = _op.nn.relu(_op.nn.conv2d(x, weight(8, 8, 3, 3, seed=1), padding=1))
        return _op.nn.conv2d(x, weight(8, 8, 3, 3, seed=2), padding=1)

    _check((1, 8, 16, 16), body, 2048, kernels=2)


def test_concatenated_parts_come_from_what_is_held():
    def body(x):
        y = _op.nn.relu(_op.nn.conv2d(x, weight(8, 8, 3, 3, seed=1), padding=1))
        return _op.nn.relu(_op.nn.conv2d(_op.concat([y, x], 1), weight(16, 16, 1, 1, seed=2)))

    _check((1, 8, 20, 20), body, 4096)


def test_repacked_weights_of_windows_are_read_at_their_blocks():
    """Narrow filters of a window are repacked as the whole weight is: both sizes of window meet here."""
    for held in (4096, 6272, 12544):
        _check((1, 64, 14, 14), _expand(64, 64), held)


@pytest.mark.parametrize("padding", [0, 1])
def test_a_row_of_two_sums_runs_in_stages(padding):
    """Plain loops computed each element of the first sum alone."""

    def body(x):
        wide = _op.nn.relu(_op.nn.conv2d(x, weight(24, 16, 3, 3, seed=1), padding=padding))
        return _op.matmul(_op.permute_dims(wide, [0, 2, 3, 1]), weight(24, 10, seed=2))

    single = Single(lowered([(1, 16, 9, 14)], body, ("legalize", "fuse-by-mapping")))
    made = schedules(row_window(single.kernel, 1, 1), frozenset(), Machine(), True).within(RULE_WORKSPACE, RULE_WORKSPACE)
    assert made.staged and made.speed < Speed.LOOPS and made.workspace <= RULE_WORKSPACE
    built = build_module({"f": made.kernel}, HOST)
    for row in range(single.shape[1]):
        ours = single.run(built["f"], single.operands, (1, 1), row)
        np.testing.assert_allclose(ours, single.result[:, row : row + 1], rtol=1e-4, atol=1e-3)


def _swish_between(x):
    wide = _op.nn.silu(_op.nn.conv2d(x, weight(24, 16, 3, 3, seed=1), padding=1))
    return _op.nn.silu(_op.nn.conv2d(wide, weight(10, 24, 1, 1, seed=2)))


def test_a_row_whose_sums_need_more_than_a_little_runs_in_stages():
    """Plain loops took 100 times as long, with as many bytes: a row between the sums is larger than RULE_WORKSPACE."""
    single = Single(lowered([(1, 16, 5, 60)], _swish_between, ("legalize", "fuse-by-mapping")))
    made = schedules(row_window(single.kernel, 2, 1), frozenset(), Machine(), True).within(RULE_WORKSPACE, RULE_WORKSPACE)
    assert made.staged and made.speed < Speed.LOOPS and RULE_WORKSPACE < made.workspace <= 2 * 24 * 60 * 4
    built = build_module({"f": made.kernel}, HOST)
    for row in range(single.shape[2]):
        ours = single.run(built["f"], single.operands, (2, 1), row)
        np.testing.assert_allclose(ours, single.result[:, :, row : row + 1], rtol=1e-4, atol=1e-3)


def test_a_window_of_rows_holds_what_the_next_sum_reads():
    """The second sum reads each element once per filter: its swish is computed once, before it is held."""
    single = Single(lowered([(1, 16, 5, 60)], _swish_between, ("legalize", "fuse-by-mapping")))
    first, second = divide_stages(row_window(single.kernel, 2, 1))
    assert "sigmoid" in str(first.kernel) and str(second.kernel).count("sigmoid") == str(first.kernel).count("sigmoid")


def _additive(units: int) -> Callable:
    def body(x):
        query, key = (_op.matmul(x, weight(12, units, seed=seed)) for seed in (1, 2))
        both = _op.tanh(_op.add(_op.expand_dims(query, 2), _op.expand_dims(key, 1)))
        return _op.matmul(both, weight(units, 1, seed=3))

    return body


def test_stages_hold_queries_and_keys_not_their_pairs():
    together = lowered([(1, 20, 12)], _additive(16), ("legalize", "fuse-by-mapping{objective=latency}"))
    single = next(kernel for kernel in together.kernels.values())
    assert [int(each) for each in single.params[-1].ty.shape] == [1, 20, 20, 1]
    assert [math.prod(map(int, each.result.ty.shape)) for each in divide_stages(single)] == [20 * 16, 20 * 16, 20 * 20]
    _check((1, 20, 12), _additive(16), 0)
    _check((1, 20, 12), _additive(16), 4096)


def test_one_stage_is_no_stage():
    kernel = next(iter(lowered([(1, 8, 9, 9)], _separable(8, 8), ("legalize", "fuse-operators")).kernels.values()))
    assert len(divide_stages(kernel)) == 1
    assert not any(each.staged for each in schedules(kernel.with_attr(HELD, 1 << 20), frozenset(), _machine()).candidates())


def test_nothing_is_held_unasked():
    """`held` is 0 by default: kernels and plans are those of before."""
    asked = lowered([(1, 16, 14, 14)], _separable(16, 16), ("legalize", "fuse-by-mapping{objective=latency}"))
    assert len(asked.program.steps) == 2
    private = repackable_parameters(asked.program)
    for name, kernel in asked.kernels.items():
        assert not any(each.staged for each in schedules(kernel, private[name], asked.machine).candidates())


def _machine():
    from passfit.targets import Machine

    return Machine()
