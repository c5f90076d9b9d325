"""Compare sums of several rows side by side with TVM's kernels, and count the chains of additions."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax

from passfit.kernels.rules.vector_reduction import vector_reduction
from passfit.targets import Machine, get_target
from passfit.tir.workspace import workspace_bytes

from ....profiles import examples
from ...programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm
_AVX2 = Machine()
_MACHINES = st.sampled_from(
    [_AVX2, *(get_target(name).machine for name in ("x86-64-v4", "rpi4", "visionfive2", "bpi-f3"))]
)


def _agrees(program, machine: Machine) -> None:
    made = {name: vector_reduction(each, machine=machine) for name, each in program.kernels.items()}
    inputs = random_inputs(program)
    expected = run(program, inputs)
    jammed = replace(program, kernels={name: made[name] or each for name, each in program.kernels.items()})
    for found, wanted in zip(run(jammed, inputs), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * max(1e-3, float(np.abs(wanted).max())))
    for each in made.values():
        assert each is None or workspace_bytes(each) <= max(2 * 64, machine.register_bytes)


@settings(max_examples=examples(25), deadline=None)
@given(
    st.sampled_from([1, 1, 2]),
    st.sampled_from([1, 1, 3]),
    st.sampled_from([1, 2, 5, 6, 8]),
    st.integers(1, 13),
    st.sampled_from([4, 7, 8, 12, 16, 17, 24, 48, 64]),
    st.integers(1, 20),
    st.sampled_from(["none", "bias", "square", "transpose", "mean"]),
    _MACHINES,
)
def test_long_windows(batch, channels, filters, outputs, taps, stride, epilogue, machine):
    def body(x):
        result = relax.op.nn.conv1d(x, weight(filters, channels, taps), strides=stride)
        if epilogue == "bias":
            return relax.op.nn.relu(relax.op.add(result, weight(1, filters, 1, seed=2)))
        if epilogue == "transpose":
            return relax.op.permute_dims(relax.op.exp(relax.op.negative(relax.op.abs(result))), [0, 2, 1])
        if epilogue == "mean":
            return relax.op.mean(result, [2])
        return relax.op.multiply(result, result) if epilogue == "square" else result

    _agrees(lowered([(batch, channels, taps + stride * (outputs - 1))], body), machine)


@settings(max_examples=examples(25), deadline=None)
@given(
    st.sampled_from([(), (1,), (3,)]),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([1, 4, 16, 20, 33, 64]),
    _MACHINES,
)
def test_rows_times_rows(batch, rows, columns, depth, machine):
    def body(a, b):
        axes = [*range(len(batch)), len(batch) + 1, len(batch)]
        return relax.op.matmul(a, relax.op.permute_dims(b, axes))

    passes = ("fuse-transpose-matmul", "legalize", "fuse-operators")
    _agrees(lowered([(*batch, rows, depth), (*batch, columns, depth)], body, passes), machine)


def test_rows_that_share_a_filter_are_summed_side_by_side():
    program = lowered([(1, 1, 512 + 160 * 7)], lambda x: relax.op.nn.conv1d(x, weight(1, 1, 512), strides=160))
    (kernel,) = program.kernels.values()
    script = vector_reduction(kernel, machine=_AVX2).script()
    assert script.count("T.unroll(T.int64(4))") >= 3
    assert "T.vectorized(T.int64(16))" in script
    assert "T.unroll" not in vector_reduction(kernel).script()


@pytest.mark.parametrize("machine", [Machine(lanes=1, registers=20), Machine(compact=True)])
def test_without_room_in_registers_or_code_rows_stay_apart(machine: Machine):
    program = lowered([(1, 1, 512 + 160 * 7)], lambda x: relax.op.nn.conv1d(x, weight(1, 1, 512), strides=160))
    (kernel,) = program.kernels.values()
    assert "T.unroll" not in vector_reduction(kernel, machine=machine).script()
