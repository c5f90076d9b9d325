"""Divide kernels of several sums: the same results as apart, no sum in plain loops, and rows like those of any other steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.kernels.lower.divide_kernels import divide_kernels
from passfit.kernels.lower.lower import Lowered, lower
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rules.rule import Speed
from passfit.kernels.schedule.candidates import RULE_WORKSPACE, schedules
from passfit.kernels.schedule.divide_stages import divided
from passfit.kernels.schedule.row_schedules import row_schedule
from passfit.kernels.weights.repack import repackable_parameters
from passfit.passes.graph.mapping.kernel_calls import read_calls, write_groups
from passfit.passes.program.split import SplitRows
from passfit.program import Buffer, Loop, Port, Program, Window
from passfit.targets import Machine

from ...profiles import examples
from ..programs import lowered, module_of, random_inputs, run, weight

pytestmark = pytest.mark.tvm
_op = relax.op


def _one_kernel(shape: tuple[int, ...], body: Callable, before: int = 0) -> Lowered:
    """Lower a graph with all its operators in one kernel, but for those `before`: no plan of fusions takes it."""
    from passfit.passes.sequence.catalogue import parse_spec

    module = parse_spec("legalize").apply(module_of([shape], body))
    called = read_calls(module)
    assert called is not None
    numbers = sorted(called.bindings)
    exist = frozenset((*numbers[:before], numbers[-1])) | called.values.exist
    return lower(relax.transform.FuseTIR()(write_groups(module, called, exist)), "small", ["x0"], ["y"])


def _speeds(program: Lowered) -> list[Speed]:
    private = repackable_parameters(program.program)
    found = (schedules(kernel, private[name], Machine()) for name, kernel in program.kernels.items())
    return [each.within(RULE_WORKSPACE, RULE_WORKSPACE).speed for each in found]


def _check(
    shape: tuple[int, ...], body: Callable, steps: int | None = None, splits: tuple[SplitRows, ...] = ()
) -> Lowered:
    """Compare a graph fused into one kernel, and divided, with its kernels apart; return the divided program."""
    apart = lowered([shape], body, ("legalize",))
    inputs = random_inputs(apart)
    (expected,) = run(apart, inputs)
    together = _one_kernel(shape, body)
    assert len(together.program.steps) == 1
    program = divide_kernels(together)
    assert steps is None or len(program.program.steps) == steps, [step.kernel for step in program.program.steps]
    if len(program.program.steps) > 1:
        assert Speed.LOOPS not in _speeds(program)
    split = program
    for each in splits:
        split = each.apply(split)
    (found,) = run(schedule_program(split)[0], inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(expected).max())))
    return program


def _bias(x, channels: int, seed: int):
    return _op.add(x, weight(1, channels, 1, 1, seed=seed))


def _separable(channels: int, filters: int, strides: int = 1, taps: int = 3, residual: bool = False) -> Callable:
    def body(x):
        x = _op.nn.conv2d(
            x, weight(channels, 1, taps, taps, seed=1), strides=strides, padding=taps // 2, groups=channels
        )
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
    st.sampled_from([1, 3, 5]), st.sampled_from([8, 13, 32]), st.booleans(),
)  # fmt: skip
def test_separable_convolutions(batch, plane, strides, taps, filters, residual):
    _check((batch, 16, *plane), _separable(16, filters, strides, taps, residual))


@settings(max_examples=examples(4))
@given(st.sampled_from([1, 2]), st.sampled_from([(16, 16), (7, 5), (14, 14)]), st.sampled_from([32, 48, 21]))
def test_convolutions_before_one_of_planes(batch, plane, filters):
    _check((batch, 16, *plane), _expand(16, filters))


@pytest.mark.parametrize("shape, inner", [((1, 16, 14, 14), 4), ((2, 24, 5, 9), 7), ((1, 33, 2, 1), 3)])
def test_a_gate_is_three_steps(shape, inner):
    _check(shape, _gate(shape[1], inner), steps=3)


@pytest.mark.parametrize("rows", [1, 5])
def test_layers_of_products(rows):
    _check((rows, 24), _perceptron, steps=3)


@pytest.mark.parametrize("rows, axis", [(1, 2), (3, 2), (4, 3)])
def test_rows_of_a_fusion_are_calls_of_its_stages(rows, axis):
    program = _check((1, 16, 32, 32), _separable(16, 24), steps=2)
    _check((1, 16, 32, 32), _separable(16, 24), splits=(SplitRows("0-1", axis=axis, rows=rows),))
    split, _ = schedule_program(SplitRows("0-1", axis=axis, rows=rows).apply(program))
    (loop,) = split.program.steps
    assert isinstance(loop, Loop) and len(loop.body.steps) == 2
    held = sum(split.program.tensors[each].nbytes for each in loop.writes[len(loop.results) :])
    assert held <= 16 * 32 * 4 * rows + RULE_WORKSPACE


def test_convolutions_with_halo_share_a_ring():
    def body(x):
        x = _op.nn.relu(_op.nn.conv2d(x, weight(8, 8, 3, 3, seed=1), padding=1))
        return _op.nn.conv2d(x, weight(8, 8, 3, 3, seed=2), padding=1)

    _check((1, 8, 16, 16), body, steps=2, splits=(SplitRows("0-1"),))


def test_concatenated_parts_stay_with_their_reader():
    def body(x):
        y = _op.nn.relu(_op.nn.conv2d(x, weight(8, 8, 3, 3, seed=1), padding=1))
        return _op.nn.relu(_op.nn.conv2d(_op.concat([y, x], 1), weight(16, 16, 1, 1, seed=2)))

    _check((1, 8, 20, 20), body)


@pytest.mark.parametrize("padding", [0, 1])
def test_a_product_behind_a_convolution(padding):
    """Plain loops computed each element of the first sum alone, in rows of a region too."""

    def body(x):
        wide = _op.nn.relu(_op.nn.conv2d(x, weight(24, 16, 3, 3, seed=1), padding=padding))
        return _op.matmul(_op.permute_dims(wide, [0, 2, 3, 1]), weight(24, 10, seed=2))

    _check((1, 16, 9, 14), body, steps=2, splits=(SplitRows("0-1"),))


def test_a_mean_behind_a_convolution():
    """As plain loops, MobileNet's last convolution took 5 times as long as all before it."""

    def body(x):
        return _op.mean(_op.nn.relu(_op.nn.conv2d(x, weight(256, 64, 1, 1))), [2, 3])

    _check((1, 64, 7, 7), body, steps=2)


def _swish_between(x):
    wide = _op.nn.silu(_op.nn.conv2d(x, weight(24, 16, 3, 3, seed=1), padding=1))
    return _op.nn.silu(_op.nn.conv2d(wide, weight(10, 24, 1, 1, seed=2)))


def test_the_first_stage_ends_with_what_the_next_sum_reads_again():
    """The second sum reads each element once per filter: its swish is computed once, before it is stored."""
    (kernel,) = _one_kernel((1, 16, 5, 60), _swish_between).kernels.values()
    first, second = divided(kernel)
    assert "sigmoid" in str(first.kernel) and str(second.kernel).count("sigmoid") == str(first.kernel).count("sigmoid")
    _check((1, 16, 5, 60), _swish_between, steps=2)


def _additive(units: int) -> Callable:
    def body(x):
        query, key = (_op.matmul(x, weight(12, units, seed=seed)) for seed in (1, 2))
        both = _op.tanh(_op.add(_op.expand_dims(query, 2), _op.expand_dims(key, 1)))
        return _op.matmul(both, weight(units, 1, seed=3))

    return body


def test_stages_exchange_queries_and_keys_not_their_pairs():
    (kernel,) = _one_kernel((1, 20, 12), _additive(16)).kernels.values()
    assert [math.prod(map(int, each.kernel.params[-1].ty.shape)) for each in divided(kernel)] == [
        20 * 16,
        20 * 16,
        20 * 20,
    ]
    _check((1, 20, 12), _additive(16), steps=3)


def test_a_kernel_of_one_sum_is_not_divided():
    program = lowered([(1, 8, 9, 9)], _separable(8, 8), ("legalize", "fuse-operators"))
    assert not any(map(divided, program.kernels.values()))
    assert divide_kernels(program) is program


@pytest.mark.parametrize(
    "body, shape", [(_separable(16, 24), (1, 16, 14, 14)), (_gate(16, 4), (1, 16, 14, 14)), (_perceptron, (5, 24))]
)
def test_stages_are_not_divided_again(body, shape):
    program = divide_kernels(_one_kernel(shape, body))
    assert divide_kernels(program) is program


@pytest.mark.parametrize("objective", ["ram", "latency"])
@pytest.mark.parametrize(
    "body, shape",
    [(_separable(16, 24), (1, 16, 14, 14)), (_gate(16, 4), (1, 16, 14, 14)), (_additive(16), (1, 20, 12))],
)
def test_no_plan_of_fusions_is_divided(body, shape, objective):
    program = lowered([shape], body, ("legalize", f"fuse-by-mapping{{objective={objective}}}"))
    assert divide_kernels(program) is program


def _check_rows(apart: Lowered, together: Lowered, split: SplitRows, name: str) -> None:
    """Check that the rows of a kernel are computed by two calls, neither of them plain loops, to the same result."""
    inputs = random_inputs(apart)
    (expected,) = run(apart, inputs)
    divided_rows = split.apply(together)
    (loop,) = divided_rows.program.steps
    assert isinstance(loop, Loop)
    calls = [step.kernel for step in loop.body.steps if name in step.kernel]
    assert len(calls) == 2, loop.body.steps
    found = (row_schedule(divided_rows.kernels[each], frozenset(), Machine(), False) for each in calls)
    assert all(each.speed < Speed.LOOPS for each in found)
    (found,) = run(schedule_program(divided_rows)[0], inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_columns_of_a_softmax_are_divided():
    """Rules take the whole by vectors of columns, but not one column."""

    def body(x):
        x = _op.nn.conv2d(x, weight(24, 8, 1, 1, seed=1))
        x = relax.BlockBuilder.current().emit(_op.nn.softmax(x, 1))
        return _op.nn.conv2d(x, weight(8, 24, 1, 1, seed=2))

    apart = lowered([(1, 8, 12, 20)], body, ("legalize",))
    _check_rows(apart, apart, SplitRows("0-2", axis=3, in_place=1), "softmax")


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("first", [0, 1])
def test_rows_of_a_kernel_that_was_not_divided_are(first, rows):
    """The first stage reads a ring and rows just computed, or an operand of the region."""

    def body(x):
        wide = _op.nn.relu(_op.nn.conv2d(_op.nn.relu(x), weight(24, 16, 3, 3, seed=1), padding=1))
        return _op.nn.conv2d(wide, weight(10, 24, 1, 1, seed=2))

    shape = (1, 16, 8, 14)
    together = _one_kernel(shape, body, before=first)
    _check_rows(lowered([shape], body, ("legalize",)), together, SplitRows(f"0-{first}", rows=rows), "conv2d")


def test_kernels_of_a_loop_are_divided():
    shape = (1, 16, 14, 14)
    inner = _one_kernel(shape, _gate(16, 4))
    source, result = (
        replace(inner.program.tensors[ports[0].tensor], buffer=n)
        for n, ports in enumerate((inner.program.inputs, inner.program.outputs))
    )
    windows = tuple(
        Window(ports[0].tensor, place) for place, ports in enumerate((inner.program.inputs, inner.program.outputs))
    )
    loop = Loop("loop", (0,), (1,), trips=2, body=replace(inner.program, weights=()), windows=windows)
    buffers = (Buffer("x", source.nbytes), Buffer("y", result.nbytes))
    around = Program(
        "small", (loop,), (source, result), buffers, inner.program.weights, (Port("x", 0),), (Port("y", 1),)
    )
    program = divide_kernels(replace(inner, program=around))
    (found,) = program.program.steps
    assert isinstance(found, Loop) and len(found.body.steps) == 3
    inputs = random_inputs(program)
    np.testing.assert_allclose(
        run(schedule_program(program)[0], inputs)[0], run(inner, inputs)[0], rtol=1e-4, atol=1e-5
    )


def test_one_element_between_stages():
    def body(x):
        product = relax.BlockBuilder.current().emit(_op.matmul(x, weight(24, 40)))
        return _op.divide(product, _op.add(_op.mean(_op.abs(product), [0, 1], True), relax.const(1.0, "float32")))

    _check((9, 24), body)
