"""The bound of a kernel's code, against the code that LLVM makes of it."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from passfit.codegen.elf import read_object
from passfit.codegen.objects import build_object
from passfit.targets import get_target
from passfit.tir.counts.most_code import most_code

from .test_operation_counts import tile

pytestmark = pytest.mark.tvm


def added(unrolled: int) -> PrimFunc:
    @T.prim_func(private=True, s_tir=True)
    def kernel(x: T.Buffer((64, unrolled), "float32"), y: T.Buffer((64, unrolled), "float32")):
        for i in range(64):
            for j in T.unroll(unrolled):
                y[i, j] = x[i, j] * x[i, 0] + T.float32(1)

    return kernel


@T.prim_func(private=True, s_tir=True)
def short_loops(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8, 300), "float32")):
    for i in range(4):
        for j in range(8):
            for k in range(300):
                y[i, j, k] = T.sigmoid(x[i, j]) * y[i, j, k]


@T.prim_func(private=True, s_tir=True)
def chosen(x: T.Buffer((100,), "int8"), n: T.Buffer((100,), "int32"), y: T.Buffer((100,), "float32")):
    for i in range(100):
        if i < 50:
            y[i] = T.exp(T.cast(x[n[i]], "float32"))
        else:
            y[i] = T.tanh(T.cast(x[99 - i], "float32"))


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v4", "rpi4", "beaglebone", "visionfive2"])
@pytest.mark.parametrize(
    "kernel", [added(1), added(7), short_loops, chosen, tile], ids=["one", "seven", "short", "chosen", "tile"]
)
def test_code_stays_below_its_bound(kernel, target, tmp_path):
    device = get_target(target)
    build_object({"kernel": kernel}, device, tmp_path / "kernel.o")
    code = read_object((tmp_path / "kernel.o").read_bytes()).read_only_bytes()
    assert 0 < code <= most_code(kernel, device.machine)


def test_unrolled_statements_count_each_time():
    machine = get_target("x86-64").machine
    one, two, four = (most_code(added(each), machine) for each in (100, 200, 400))
    assert four - two == 2 * (two - one)
