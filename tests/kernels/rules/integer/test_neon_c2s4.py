"""Integer products by four: the sums of the kernel as TVM made it, of any bytes, within a small workspace.

Whole layers on emulated targets are in tests/nodes/test_integer_nodes.py.
"""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tvm import te

from passfit.codegen.objects import build_module
from passfit.frontend.relax.integer.quantity import Quantity
from passfit.frontend.relax.integer.sums import Requantisation, Sum, Window, convolution, product
from passfit.kernels.rules.integer.rows import neon_c2s4
from passfit.kernels.schedule.candidates import RULE_WORKSPACE
from passfit.targets import get_target
from passfit.tir.row_window import row_window
from passfit.tir.workspace import workspace_bytes

from ....profiles import examples
from ...programs import HOST

pytestmark = pytest.mark.tvm
MACHINE, DOTS = get_target("rpi4").machine, get_target("rpi5").machine
#: sums as they are, and bytes of sums small enough not to be all saturated
FORMS = {"sums": None, "bytes": Requantisation(Quantity(0.0004), Quantity(-5), "int8")}


def conv(channels, filters, size, taps, stride=1, pad=0, zero=3, dtype="int8", to="bytes", dilation=1):
    x = te.placeholder((1, channels, *size), dtype, "x")
    w = te.placeholder((filters, channels, taps, taps), "int8", "w")
    window = Window((stride, stride), (dilation, dilation), (pad, pad), (pad, pad))
    form = Sum((Quantity(zero), Quantity(0)), FORMS[to])
    return te.create_prim_func([x, w, convolution(x, w, form=form, window=window)], index_dtype_override="int64")


def matmul(m, k, n, zero=3, to="bytes"):
    a, b = te.placeholder((m, k), "int8", "a"), te.placeholder((k, n), "int8", "b")
    form = Sum((Quantity(zero), Quantity(0)), FORMS[to])
    return te.create_prim_func([a, b, product(a, b, form=form)], index_dtype_override="int64")


def scheduled(kernel, machine=MACHINE):
    return list(neon_c2s4(kernel, frozenset({1}), machine))


def outputs(kernel, operands):
    shape, dtype = [int(each) for each in kernel.params[2].ty.shape], str(kernel.params[2].ty.dtype)
    result = tvm.runtime.tensor(np.zeros(shape, dtype))
    build_module({"f": kernel}, HOST)["f"](*map(tvm.runtime.tensor, operands), result)
    return result.numpy()


def assert_same(kernel, seed=0, machine=MACHINE):
    """Compare a schedule with the kernel, on bytes of which many are the least: their products are the largest."""
    (found,) = scheduled(kernel, machine)
    assert workspace_bytes(found.kernel) <= found.workspace <= RULE_WORKSPACE
    random = np.random.default_rng(seed)
    operands = []
    for param in kernel.params[:2]:
        info, shape = np.iinfo(str(param.ty.dtype)), [int(each) for each in param.ty.shape]
        values = random.integers(info.min, info.max, shape, info.dtype, endpoint=True)
        operands.append(np.where(random.random(shape) < 0.3, info.min, values).astype(info.dtype))
    packed = [operands[0], found.repacks[0].apply(operands[1])]
    np.testing.assert_array_equal(outputs(found.kernel, packed), outputs(kernel, operands))


@settings(max_examples=examples(10))
@given(
    st.sampled_from([1, 3, 4, 5, 7, 16, 17]), st.sampled_from([8, 16, 24]), st.tuples(st.integers(3, 9), st.integers(3, 40)),
    st.sampled_from([1, 3]), st.integers(1, 2), st.integers(0, 1), st.sampled_from([("int8", -128), ("int8", 0), ("int8", 3), ("uint8", 0), ("uint8", 200)]),
    st.sampled_from(sorted(FORMS)), st.integers(1, 2),
)  # fmt: skip
def test_convolutions_are_the_same(channels, filters, size, taps, stride, pad, quantity, to, dilation):
    assume(min(size) + 2 * pad > dilation * (taps - 1))
    dtype, zero = quantity
    kernel = conv(channels, filters, size, taps, stride, pad, zero, dtype, to, dilation)
    places = size[1] + 2 * pad - dilation * (taps - 1) > stride
    if scheduled(kernel) or (channels > 2 and places):
        assert_same(kernel)
    if scheduled(kernel, DOTS):
        assert_same(kernel, machine=DOTS)


@pytest.mark.parametrize(
    "kernel",
    [
        matmul(1, 32, 40),
        matmul(7, 48, 8),
        matmul(4, 16, 32, -128),
        conv(8, 8, (5, 9), 3, 1, 1, 200, "uint8"),
        conv(64, 16, (3, 60), 3, 1, 1),
    ],
    ids=["one row", "rows", "zero", "unsigned", "bands"],
)
@pytest.mark.parametrize("machine", [MACHINE, DOTS], ids=["quads", "dots"])
def test_other_operands_are_the_same(kernel, machine):
    assert_same(kernel, 1, machine)


def test_rows_of_one_channel_are_summed_by_dot_products_alone():
    kernel = conv(1, 16, (9, 9), 3, 2, 1)
    assert scheduled(kernel) == []
    assert_same(kernel, machine=DOTS)


@pytest.mark.parametrize("kernel", [conv(16, 16, (6, 6), 1), conv(256, 16, (6, 6), 5, 2, 2)], ids=["plain", "padded"])
def test_workspace_is_registers_alone(kernel):
    (found,) = scheduled(kernel)
    assert found.workspace <= MACHINE.register_bytes


@pytest.mark.parametrize("count", [1, 2])
def test_windows_of_rows_are_the_same(count):
    kernel = conv(7, 16, (8, 9), 3, 1, 1)
    window = row_window(kernel, 2, count)
    (found,) = neon_c2s4(window, frozenset({2}), MACHINE)
    random = np.random.default_rng(0)
    x, w = (random.integers(-128, 127, [int(each) for each in param.ty.shape], "int8") for param in kernel.params[:2])
    whole = outputs(kernel, [x, w])
    for first in range(0, 8, count):
        result = tvm.runtime.tensor(np.zeros((1, 16, count, 9), "int8"))
        given = map(tvm.runtime.tensor, (x, found.repacks[0].apply(w)))
        build_module({"f": found.kernel}, HOST)["f"](first, *given, result)
        np.testing.assert_array_equal(result.numpy(), whole[:, :, first : first + count])


@pytest.mark.parametrize(
    "kernel",
    [conv(2, 16, (9, 9), 1), conv(8, 5, (9, 9), 1), matmul(4, 32, 12)],
    ids=["few channels", "few filters", "odd columns"],
)
def test_other_forms_are_left_to_other_rules(kernel):
    assert scheduled(kernel) == []


def test_a_machine_without_quads_or_for_short_code_has_none():
    assert scheduled(matmul(4, 32, 16))
    assert scheduled(matmul(4, 32, 16), replace(MACHINE, smull_sadalp=False)) == []
    assert scheduled(matmul(4, 32, 16), replace(MACHINE, compact=True)) == []
    assert get_target("beaglebone").machine.smull_sadalp and not get_target("bpi-f3").machine.smull_sadalp
