"""Test stages of streaming regions as functions: they compute the same, equal ones are one, and failures are told."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

pytest.importorskip("tvm")

import tvm_ffi
from tvm import tirx
from tvm.ir import Var
from tvm.tirx import BufferStore, For, IfThenElse

from passfit.codegen.build_library import build_library
from passfit.codegen.elf import read_object, together
from passfit.codegen.functions.outline_stages import outline_stages
from passfit.codegen.objects import build_objects
from passfit.kernels.lower.lower import Lowered
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.lower.specialise import specialise_kernels
from passfit.kernels.rewrite.splittable import splits_of
from passfit.kernels.rewrite.stream_region import stream_region
from passfit.memory import plan_arena
from passfit.memory.streaming.region import region
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.program import Buffer, Port, Program, Step, Tensor
from passfit.targets import get_target, how_to_run
from passfit.tir.arena_workspace import with_workspace_parameter
from passfit.tir.expressions import replaced
from passfit.tir.loop_nests import buffer_of, int64, kernel_of, sequence
from passfit.verify.runner import link

from ..kernels.programs import lowered, random_inputs, run
from ..kernels.rewrite.test_stream_region import MODELS, PASSES
from . import models

pytestmark = [pytest.mark.tvm, pytest.mark.slow]
HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
ROWS = 19


def streamed(name, axis=2):
    """Lower a model of the tests of streaming regions, its longest region in one kernel."""
    shape, body = MODELS[name]
    program = lowered([shape], body, PASSES.get(name, TVM_DEFAULT))
    last = len(program.program.steps) - 1
    found = (region(program.program, splits_of(program), first, end, axis) for end in range(last, 0, -1) for first in (0, 1) if first < end)
    return program, stream_region(program, next(each for each in found if each is not None))


@native
@pytest.mark.parametrize("name", ["residual", "squeeze", "pools", "one kernel twice", "odd edges", "enlarged", "convolved pools"])
def test_a_library_of_outlined_stages_computes_the_same(tmp_path, name):
    before, after = streamed(name)
    inputs = random_inputs(before)
    after, workspace = schedule_program(after)
    after = specialise_kernels(after)
    assert outline_stages(after.kernels).callers
    made = build_library("net", after, plan_arena(after.program), workspace, HOST, tmp_path)
    _, (found,) = link(made, after.program, HOST, tmp_path).run([{"x0": inputs[0]}], 20, 1.0)
    (wanted,) = run(before, inputs)
    np.testing.assert_allclose(found["y"], wanted, rtol=1e-5, atol=1e-5 * float(np.abs(wanted).max()))


def reversed_rows(columns: int, lags=(0, 3), factors=(2.0, 2.0), period: int = 1):
    """Make a kernel like that of a streaming region: y = reversed rows of x, z = those of y; each times a factor."""
    x, y, z = (buffer_of(name, (ROWS, columns), "float32") for name in "xyz")
    tick = Var("tick", "int64")

    def stage(lag, read, written, factor):
        since = tick + -lag if lag else tick
        row = tirx.floordiv(since, period) if period > 1 else since
        when = [tirx.floormod(since, period) == 0] * (period > 1) + [since >= 0, row < ROWS]
        held, j, k = buffer_of("held", (columns,), "float32"), Var("j", "int64"), Var("k", "int64")
        fill = BufferStore(held, tirx.BufferLoad(read, [row, j]) * tirx.const(factor, "float32"), [j])
        drain = BufferStore(written, tirx.BufferLoad(held, [int64(columns - 1) - k]), [row, k])
        loops = [For(j, int64(0), int64(columns), 0, fill), For(k, int64(0), int64(columns), 0, drain)]
        return IfThenElse(tirx.all(*when), kernel_of([], loops, [held], None).body, None)

    stages = [stage(lag, *places, factor) for lag, places, factor in zip(lags, ((x, y), (y, z)), factors)]
    loop = For(tick, int64(0), int64((ROWS - 1) * period + 1 + max(lags)), 0, sequence(stages))
    return kernel_of([x, y, z], [loop], [], None).with_attr("tirx.noalias", True)


@pytest.mark.parametrize("period", [1, 4])
def test_stages_that_differ_in_their_ticks_are_one_function(period):
    found = outline_stages({"rows": reversed_rows(8, period=period)})
    assert list(found.callers) == ["rows"] and list(found.others) == ["rows_stage0"]
    assert found.callers["rows"].script().count('"rows_stage0"') == 2


def test_stages_that_differ_in_a_number_are_two():
    found = outline_stages({"rows": reversed_rows(8, factors=(2.0, 3.0))})
    assert list(found.callers) == ["rows"] and list(found.others) == ["rows_stage0", "rows_stage1"]


def test_kernels_share_functions_whose_names_no_kernel_has():
    rows, other = reversed_rows(8), reversed_rows(8, lags=(1, 5))
    taken = next(iter(models.matmul_exp().kernels.values()))
    found = outline_stages({"a": rows, "b": other, "a_stage0": taken})
    assert (sorted(found.callers), sorted(found.others)) == (["a", "b"], ["a_stage0", "a_stage0_"])
    assert all(each.script().count('"a_stage0_"') == 2 for each in found.callers.values())


def taken_rows(computed: bool):
    """Make a kernel like that of a streaming region: y = rows, z = those rows of x, by an input or by y."""
    rows, y = (buffer_of(name, (ROWS,), "int64") for name in ("rows", "y"))
    x, z = (buffer_of(name, (ROWS, 8), "float32") for name in "xz")
    tick, j = Var("tick", "int64"), Var("j", "int64")
    row = tirx.BufferLoad(y if computed else rows, [tick])
    take = For(j, int64(0), int64(8), 0, BufferStore(z, tirx.BufferLoad(x, [row, j]), [tick, j]))
    stages = (BufferStore(y, tirx.BufferLoad(rows, [tick]), [tick]), take)
    when = tirx.all(tick >= 0, tick < ROWS)
    return kernel_of([rows, x, y, z], [For(tick, int64(0), int64(ROWS), 0, sequence([IfThenElse(when, each, None) for each in stages]))], [], None)


@native
@pytest.mark.parametrize("computed", [False, True], ids=["in front of the ticks", "in a stage"])
def test_an_index_out_of_range_fails_the_library(tmp_path, computed):
    kernel = taken_rows(computed)
    library, program = build(kernel, 0, tmp_path)
    random = np.random.default_rng(0)
    rows, x = random.integers(0, ROWS, ROWS), random.random((ROWS, 8), np.float32)
    _, (found,) = link(library, program, HOST, tmp_path).run([{"rows": rows, "x": x}], 20, 1.0)
    np.testing.assert_array_equal(found["z"], x[rows])
    loaded = ctypes.CDLL(str(library.shared))
    loaded.rows_input.restype = ctypes.c_void_p
    rows[7] = ROWS
    ctypes.memmove(loaded.rows_input(0), rows.ctypes.data, rows.nbytes)
    assert loaded.rows_run() == 4


def test_other_kernels_stay_as_they_are():
    rows, own = reversed_rows(8), buffer_of("own", (8,), "float32")
    kernels = models.matmul_exp().kernels | {"rows": kernel_of(rows.params, [rows.body.block.body], [own], None)}
    assert outline_stages(kernels).others == kernels and not outline_stages(kernels).callers


def test_stages_of_other_alignments_are_two():
    """Vectors are loaded from aligned addresses."""
    rows = reversed_rows(16)
    params = [tirx.decl_buffer(each.ty.shape, each.ty.dtype, each.name, data_alignment=n) for each, n in zip(rows.params, (4, 64, 64))]
    kernel = kernel_of(params, [replaced(rows.body.block.body, dict(zip(rows.params, params)))], [], None)
    assert list(outline_stages({"rows": kernel}).others) == ["rows_stage0", "rows_stage1"]


def test_callers_are_in_an_object_without_their_functions(tmp_path):
    """LLVM would inline a function into each call of the same object."""
    objects = [read_object(path.read_bytes()) for path in build_objects({"rows": reversed_rows(8)}, HOST, tmp_path)]
    defined = [{each.name for each in found.symbols if each.section} & {"rows", "rows_stage0"} for found in objects]
    assert defined == [{"rows"}, {"rows_stage0"}]
    assert "rows_stage0" in objects[0].undefined and "rows_stage0" not in together(objects).undefined


def test_workspace_is_that_of_the_kernel_or_a_stage_stays():
    columns = 500
    needed = -(-columns * 4 // 64) * 64
    for room, outlined in ((needed, True), (needed - 64, False)):
        kernel = with_workspace_parameter(reversed_rows(columns), room, 512)
        found = outline_stages({"rows": kernel})
        assert bool(found.callers) == outlined
        if outlined:
            assert "throw_last_error" not in found.callers["rows"].script()
            assert [str(each.ty.dtype) for each in found.others["rows_stage0"].params] == ["int32", "float32", "float32", "uint8"]


def program_of(kernel) -> Program:
    """Make a program of one step, whose last parameter is its output, the one before a result too."""
    tensors = tuple(Tensor(tuple(map(int, each.ty.shape)), str(each.ty.dtype), buffer=n) for n, each in enumerate(kernel.params))
    buffers = tuple(Buffer(each.name, tensor.nbytes) for each, tensor in zip(kernel.params, tensors))
    reads = tuple(range(len(tensors) - 2))
    inputs = tuple(Port(kernel.params[n].name, n) for n in reads)
    return Program("rows", (Step("rows", reads, (reads[-1] + 1, reads[-1] + 2)),), tensors, buffers, (), inputs, (Port("z", reads[-1] + 2),))


def build(kernel, workspace, folder):
    program = program_of(kernel)
    assert outline_stages({"rows": kernel}).callers
    return build_library("rows", Lowered(program, {"rows": kernel}, ()), plan_arena(program), workspace, HOST, folder), program


@native
def test_a_stage_with_its_own_workspace_runs_or_fails_the_library(tmp_path):
    """Stages take a row of 2,000 bytes from the workspace."""
    kernel = reversed_rows(500)
    small, _ = build(kernel, 1024, tmp_path / "small")
    assert ctypes.CDLL(str(small.shared)).rows_run() == 3
    library, program = build(kernel, 2048, tmp_path / "enough")
    x = np.random.default_rng(0).standard_normal((ROWS, 500)).astype(np.float32)
    _, (found,) = link(library, program, HOST, tmp_path).run([{"x": x}], 20, 1.0)
    np.testing.assert_array_equal(found["z"], 4 * x)


@native
def test_a_scalar_is_an_argument_like_any_other(tmp_path):
    rows, scale = reversed_rows(8), buffer_of("scale", (), "float32")

    def times(each):
        return each if each.buffer.name == "held" else BufferStore(each.buffer, each.value * tirx.BufferLoad(scale, []), each.indices)

    body = tvm_ffi.structural_map(rows.body.block.body, (BufferStore, times))
    library, program = build(kernel_of([scale, *rows.params], [body], [], rows.attrs), 0, tmp_path)
    x = np.random.default_rng(0).standard_normal((ROWS, 8)).astype(np.float32)
    _, (found,) = link(library, program, HOST, tmp_path).run([{"scale": np.float32(0.5), "x": x}], 20, 1.0)
    np.testing.assert_array_equal(found["z"], x)
