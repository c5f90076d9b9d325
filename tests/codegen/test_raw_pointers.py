"""Test kernels as plain functions of pointers: the same lowering as TVM's, no aliasing, and no calling convention."""

import ctypes

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.ir import IRModule
from tvm.tirx.compilation_pipeline import get_tir_pipeline

from passfit.codegen.elf import read_object
from passfit.codegen.llvm_pipelines import PACKED, RAW, lowering_passes
from passfit.codegen.objects import build_module
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.targets import get_target, how_to_run

from ..kernels.programs import lowered, weight

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")


def network():
    """Make kernels of several rules: convolution, depthwise convolution, pooling, softmax, product."""
    from tvm import relax

    def body(x):
        x = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(8, 3, 3, 3), padding=1))
        x = relax.op.nn.max_pool2d(
            relax.op.nn.conv2d(x, weight(8, 1, 5, 5), groups=8, padding=2), (2, 2), strides=(2, 2)
        )
        x = relax.op.matmul(relax.op.reshape(x, (1, 8 * 6 * 7)), weight(8 * 6 * 7, 10))
        return relax.op.nn.softmax(x)

    return schedule_program(lowered([(1, 3, 12, 14)], body))[0].kernels


class _Before:
    """Keep the module that reaches the pass `name`."""

    def __init__(self, name):
        @tvm.instrument.pass_instrument
        class Watch:
            def run_before_pass(watch, module, info):
                if info.name == name:
                    self.module = module

        self.instrument = Watch()


def test_kernels_are_lowered_as_by_tvms_pipeline():
    """The list of passes is a copy of TVM's: it must not fall behind a newer TVM."""
    device = tvm.target.Target(TARGET.llvm_config())
    functions = {name: kernel.with_attr("global_symbol", name) for name, kernel in network().items()}
    module = tirx.transform.BindTarget(tvm.target.Target(device, host=device))(IRModule(functions))
    watch = _Before("tirx.MakePackedAPI")
    with tvm.transform.PassContext(instruments=[watch.instrument]):
        get_tir_pipeline("default")[0](module)
    ours = tvm.transform.Sequential(lowering_passes())(module)
    for name in functions:
        assert tvm_ffi.structural_equal(ours[name], watch.module[name], map_free_vars=True), name


def test_pointers_do_not_alias_and_keep_their_alignment():
    x, y = te.placeholder((64,), name="x"), te.placeholder((64,), name="y")
    kernel = te.create_prim_func([x, y, te.compute((64,), lambda i: x[i] + y[i], name="z")])
    text = build_module({"add": kernel}, TARGET.llvm_config(), RAW).inspect_source("ll")
    (signature,) = (line for line in text.splitlines() if line.startswith("define") and "@add(" in line)
    assert "i32 @add(" in signature and signature.count("noalias") == 3
    assert 'align"(ptr' in text and "i64 64)" in text


def test_a_kernel_without_the_promise_may_be_given_the_same_memory_twice():
    x = te.placeholder((64,), name="x")
    kernel = te.create_prim_func([x, te.compute((64,), lambda i: x[i] + 1.0, name="z")]).without_attr("tirx.noalias")
    text = build_module({"add": kernel}, TARGET.llvm_config(), RAW).inspect_source("ll")
    (signature,) = (line for line in text.splitlines() if line.startswith("define") and "@add(" in line)
    assert "noalias" not in signature


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "bool", "int64", "float64"])
def test_every_dtype_has_pointers(dtype, tmp_path):
    x = te.placeholder((9,), dtype, "x")
    kernel = te.create_prim_func([x, te.compute((9,), lambda i: tirx.if_then_else(i < 4, x[i], x[8 - i]), name="z")])
    build_module({"f": kernel}, TARGET.llvm_config(), RAW).write_to_file(str(tmp_path / "f.o"), "o")
    found = read_object((tmp_path / "f.o").read_bytes())
    assert "f" in {symbol.name for symbol in found.symbols if symbol.section} and not found.undefined


@pytest.mark.skipif(not how_to_run(TARGET).native, reason="the host cannot run x86-64-v3")
@pytest.mark.slow
def test_numbers_stay_numbers_and_results_are_those_of_packed_functions(tmp_path):
    from passfit.targets import host_libc, zig_cc

    row = te.var("row", "int64")
    x = te.placeholder((6, 5), name="x")
    kernel = te.create_prim_func([row, x, te.compute((5,), lambda j: tirx.exp(x[row, j]) * 2.0, name="z")])
    build_module({"f": kernel}, TARGET.llvm_config(), RAW).write_to_file(str(tmp_path / "f.o"), "o")
    zig_cc(["-shared", "f.o", "-o", "libf.so"], TARGET, tmp_path, zig_target=host_libc(TARGET))
    data, found = np.linspace(-2, 2, 30, dtype="float32").reshape(6, 5), np.zeros(5, "float32")
    function = ctypes.CDLL(str(tmp_path / "libf.so")).f
    function.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
    assert function(4, data.ctypes.data, found.ctypes.data) == 0
    packed = tvm.runtime.tensor(np.zeros(5, "float32"))
    build_module({"f": kernel}, TARGET.llvm_config(), PACKED)["f"](4, tvm.runtime.tensor(data), packed)
    np.testing.assert_array_equal(found, packed.numpy())
