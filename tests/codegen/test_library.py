import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from passfit.codegen import Library, write_library
from passfit.codegen.check_loads import why_not_loadable
from passfit.codegen.elf import archive_members, read_object
from passfit.codegen.shared import link_shared
from passfit.errors import ModelError, OutputError, ToolchainError
from passfit.kernels.lower.lower import Lowered
from passfit.targets import get_target, how_to_run, program_libc, zig_cc

from . import models

pytestmark = pytest.mark.slow
HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")


def write(model, folder: Path, target=HOST, name: str | None = None, workspace: int | None = None):
    folder.mkdir(parents=True, exist_ok=True)
    name = name or model.program.name
    built = models.build_object(model.kernels, name, target, folder / "kernels.o")
    scratch = model.workspace if workspace is None else workspace
    return write_library(name, model.program, model.plan, scratch, model.weights, [built], target, folder)


def run_program(folder: Path, source: str, *libraries, flags=()) -> subprocess.CompletedProcess:
    """Link a C program with libraries of the host and run it."""
    (folder / "main.c").write_text(source, encoding="utf-8")
    for library in libraries:
        for file in (library.archive, library.header):
            (folder / file.name).write_bytes(file.read_bytes())
    archives = [library.archive.name for library in libraries]
    libc, options = program_libc(HOST)
    options = ["-O1", "-fno-sanitize=all", *options, *flags, "main.c", *archives, "-lm", "-o", "main"]
    zig_cc(options, HOST, folder, zig_target=libc)
    return subprocess.run([str(folder / "main")], capture_output=True, text=True, timeout=60)


def test_the_same_input_gives_the_same_bytes_anywhere(tmp_path):
    model = models.matmul_exp()
    one, two = write(model, tmp_path / "one"), write(model, tmp_path / "a" / "longer" / "two")
    assert one.archive.read_bytes() == two.archive.read_bytes()
    assert one.header.read_bytes() == two.header.read_bytes()
    assert one.code_bytes == two.code_bytes
    if one.shared:
        assert one.shared.read_bytes() == two.shared.read_bytes()
    assert str(tmp_path).encode() not in one.archive.read_bytes()


@pytest.mark.parametrize("make", [models.matmul_exp, models.comparison, models.whole_numbers])
@pytest.mark.parametrize("target", ["x86-64", "rpi4", "beaglebone", "visionfive2"])
def test_kernels_are_plain_functions_without_a_trace_of_tvms_calling_convention(tmp_path, make, target):
    library = write(make(), tmp_path, get_target(target))
    objects = [read_object(body) for _, body in archive_members(library.archive.read_bytes())]
    assert not [s.name for each in objects for s in each.symbols if "ffi" in s.name.lower()]
    defined = {s.name for each in objects for s in each.symbols if s.section}
    assert {f"{library.name}_{step.kernel}" for step in make().program.steps} <= defined


def test_weights_have_a_read_only_section_of_their_own(tmp_path):
    model = models.matmul_exp()
    library = write(model, tmp_path)
    objects = [read_object(body) for _, body in archive_members(library.archive.read_bytes())]
    found = [s for o in objects for s in o.sections if s.name == ".rodata.matmul_exp_weights"]
    assert [(s.size, s.flags & 3) for s in found] == [(library.weight_bytes, 2)]
    assert library.weight_bytes == model.program.weight_bytes
    assert 0 < library.code_bytes < library.archive.stat().st_size


@pytest.mark.parametrize("target", ["x86-64", "mps2-an500"])
def test_the_code_of_each_kernel_is_a_part_of_the_library(tmp_path, target):
    model = models.matmul_exp()
    library = write(model, tmp_path, get_target(target))
    parts = {part.name: part for part in library.code}
    assert {step.kernel for step in model.program.steps} | {"run"} <= parts.keys()
    assert all(parts[step.kernel].nodes == step.nodes for step in model.program.steps)
    assert all(part.nbytes > 0 for part in library.code)
    assert sum(part.nbytes for part in library.code) < library.code_bytes
    assert [part.nbytes for part in library.code] == sorted((part.nbytes for part in library.code), reverse=True)


@pytest.mark.parametrize("make", [models.matmul_exp, models.empty_program, models.comparison])
def test_the_header_is_strict_c99_and_cpp(tmp_path, make):
    library = write(make(), tmp_path)
    macro = library.name.upper()
    source = f'#include "{library.header.name}"\nint f(void);\nint f(void) {{ return {macro}_ARENA_BYTES; }}\n'
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-c"]
    for file, flags in (("x.c", ["-std=c99"]), ("x.cpp", ["-std=c++11"])):
        for define in ([], [f"-D{macro}_NO_STATIC_ARENA"]):
            (tmp_path / file).write_text(source, encoding="utf-8")
            zig_cc([*flags, *strict, *define, file, "-o", "x.o"], HOST, tmp_path)


def test_the_header_states_sizes_shapes_and_dtypes(tmp_path):
    text = write(models.comparison(), tmp_path).header.read_text()
    for line in ("INPUTS 2", "INPUT1_BYTES 56", 'INPUT1_DTYPE "int64"', "INPUT0_SHAPE {7}", "OUTPUT0_RANK 1"):
        assert f"#define COMPARISON_{line}\n" in text


TWO = """
#include "first.h"
#include "second.h"
#include <stdio.h>
#include <string.h>
static void fill(float *at, size_t n, float x) { for (size_t i = 0; i < n; ++i) at[i] = x; }
int main(void) {
  for (int round = 0; round < 2; ++round) {
    fill(first_input(0), FIRST_INPUT0_BYTES / 4, 0.25f);
    fill(second_input(0), SECOND_INPUT0_BYTES / 4, -0.5f);
    if (first_run() || second_run()) { printf("%s %s", first_error(), second_error()); return 1; }
    for (int i = 0; i < 20; ++i) printf("%.6f ", ((const float *)first_output(0))[i]);
    for (int i = 0; i < 30 * 20; ++i) printf("%.6f ", ((const float *)second_output(0))[i]);
  }
  return 0;
}
"""


@native
def test_two_libraries_live_in_one_program(tmp_path):
    small, large = models.matmul_exp(), models.matmul_exp(30, 40, 20)
    first, second = write(small, tmp_path / "1", name="first"), write(large, tmp_path / "2", name="second")
    for order in ((first, second), (second, first)):
        done = run_program(tmp_path, TWO, *order)
        assert done.returncode == 0, done.stdout
        expected = []
        for model, value in ((small, 0.25), (large, -0.5)):
            shape = model.program.tensors[0].shape
            product = (np.full(shape, value) @ model.weights[0])[::-1] * 0.5
            expected.extend(np.exp(-np.abs(product)).ravel())
        assert np.allclose(np.array(done.stdout.split(), float), np.array(expected * 2), atol=2e-5)


BIND = """
#define MATMUL_EXP_NO_STATIC_ARENA
#include "matmul_exp.h"
#include <stdio.h>
#include <string.h>
static _Alignas(64) unsigned char own[MATMUL_EXP_ARENA_BYTES + 64];
int main(void) {
  printf("%d %s|", matmul_exp_run(), matmul_exp_error());
  printf("%d %d|", matmul_exp_input(0) == 0, matmul_exp_output(9) == 0);
  printf("%d %s|", matmul_exp_bind(own + 8), matmul_exp_error());
  printf("%d %s|", matmul_exp_bind(own), matmul_exp_error());
  memset(matmul_exp_input(0), 0, MATMUL_EXP_INPUT0_BYTES);
  printf("%d|", matmul_exp_run());
  printf("%g %d", ((const float *)matmul_exp_output(0))[7], (unsigned char *)matmul_exp_input(0) == own);
  return 0;
}
"""


@native
def test_a_program_may_bind_its_own_arena_and_leave_the_static_one_out(tmp_path):
    done = run_program(tmp_path, BIND, write(models.matmul_exp(), tmp_path / "l"))
    unbound, ports, crooked, bound, ran, result = done.stdout.split("|")
    assert unbound.startswith("2 no arena") and ports == "1 1"
    assert crooked.startswith("2 the arena is NULL or not aligned")
    assert (bound, ran, result) == ("0 ", "0", "1 1")
    assert b"matmul_exp_arena_block" not in (tmp_path / "main").read_bytes()


TURNS = """
#include "NAME.h"
#include <stdio.h>
static unsigned char own[2][MACRO_ARENA_BYTES] __attribute__((aligned(MACRO_ARENA_ALIGNMENT)));
static NAME_instance_t instances[2];
int main(void) {
  const size_t count = MACRO_INPUT0_BYTES / sizeof(NAME_input0_t);
  for (int k = 0; k < 2; ++k) if (NAME_instance_bind(&instances[k], own[k])) return 1;
  for (int k = 0; k < 2; ++k) for (size_t i = 0; i < count; ++i) NAME_instance_input0(&instances[k])[i] = (float)(k + 1);
  for (int k = 0; k < 2; ++k) if (NAME_instance_run(&instances[k])) return 2;
  for (int k = 0; k < 2; ++k) printf("%.6f ", NAME_instance_output0(&instances[k])[0]);
  return 0;
}
"""


@native
@pytest.mark.parametrize("threads", [1, 3])
def test_instances_with_workspace_or_threads_of_their_own_run_in_turns(tmp_path, threads):
    """`reversed_rows` doubles its input twice, through a workspace."""
    from .test_threads import library

    made = library(tmp_path / "l", threads)[0]
    text = made.header.read_text()
    assert "of all passfit libraries in the program" in text and "side by side" not in text
    source = TURNS.replace("NAME", "rows").replace("MACRO", "ROWS")
    done = run_program(tmp_path, source, made, flags=["-lpthread"])
    assert (done.returncode, done.stdout) == (0, "4.000000 8.000000 ")


FAILING = """
#include "matmul_exp.h"
#include <stdio.h>
int main(void) { int code = matmul_exp_run(); printf("%d|%s", code, matmul_exp_error()); return 0; }
"""


@native
def test_a_workspace_too_small_is_an_error_code(tmp_path):
    done = run_program(tmp_path, FAILING, write(models.matmul_exp(30, 40, 20), tmp_path / "l", workspace=1024))
    assert done.stdout == "3|the workspace is too small"


def test_a_step_with_other_tensors_than_its_kernels_is_a_bug_found_before_it_is_built():
    from passfit.codegen.build_library import check_arguments

    model = models.matmul_exp()
    lowered = Lowered(model.program, model.kernels, model.weights)
    check_arguments(lowered)
    for change in ({"shape": (4, 7)}, {"dtype": "int32"}):
        tensors = (replace(model.program.tensors[0], **change), *model.program.tensors[1:])
        with pytest.raises(ValueError, match="step 0 gives .* to kernel 'matmul'"):
            check_arguments(replace(lowered, program=replace(model.program, tensors=tensors)))


@native
def test_a_program_links_with_the_shared_library_by_its_header(tmp_path):
    library = write(models.matmul_exp(), tmp_path)
    source = '#include "matmul_exp.h"\nint main(void) { return matmul_exp_run() || *matmul_exp_instance_error(&matmul_exp_static_instance) || !matmul_exp_passfit[0]; }\n'
    (tmp_path / "main.c").write_text(source, encoding="utf-8")
    libc, options = program_libc(HOST)
    options = [option for option in options if option != "-static"]
    zig_cc(
        [*options, "-O1", "main.c", library.shared.name, "-Wl,-rpath,$ORIGIN", "-o", "main"],
        HOST,
        tmp_path,
        zig_target=libc,
    )
    assert subprocess.run([str(tmp_path / "main")], timeout=60).returncode == 0


@native
def test_the_shared_library_computes_the_same_and_exports_only_its_header(tmp_path):
    model = models.matmul_exp()
    library = write(model, tmp_path)
    loaded = ctypes.CDLL(str(library.shared))
    for name in ("input", "output", "error"):
        getattr(loaded, f"matmul_exp_{name}").restype = ctypes.c_void_p
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    ctypes.memmove(loaded.matmul_exp_input(0), x.ctypes.data, x.nbytes)
    assert loaded.matmul_exp_run() == 0
    result = np.frombuffer(ctypes.string_at(loaded.matmul_exp_output(0), 80), np.float32).reshape(4, 5)
    assert np.allclose(result, np.exp(-np.abs((x @ model.weights[0])[::-1] * 0.5)), atol=1e-6)
    for hidden in ("matmul_exp_bell", "matmul_exp_matmul", "matmul_exp_weights"):
        assert not hasattr(loaded, hidden)


def write_in_objects(model, folder: Path, groups) -> Library:
    """Write a library with one object per group of kernel names."""
    folder.mkdir(parents=True, exist_ok=True)
    name = model.program.name
    objects = [
        models.build_object({kernel: model.kernels[kernel] for kernel in group}, name, HOST, folder / f"kernels{i}.o")
        for i, group in enumerate(groups)
    ]
    return write_library(name, model.program, model.plan, model.workspace, model.weights, objects, HOST, folder)


@native
@pytest.mark.parametrize("groups", [[["matmul", "bell"]], [["matmul"], ["bell"]], [["bell"], ["matmul"]]])
def test_the_shared_library_holds_the_kernels_of_every_object(tmp_path, groups):
    library = write_in_objects(models.matmul_exp(), tmp_path, groups)
    assert why_not_loadable(library.shared, library.name) is None


def test_an_undefined_symbol_is_an_error_of_the_linker(tmp_path):
    model = models.matmul_exp()
    library = write(model, tmp_path)
    bodies = {f"{i}.o": body for i, (_, body) in enumerate(archive_members(library.archive.read_bytes()))}
    for name, body in bodies.items():
        (tmp_path / name).write_bytes(body)
    assert link_shared(library.name, list(bodies), 1, tmp_path, HOST) == library.archive.with_suffix(".so").name
    with pytest.raises(ToolchainError, match="undefined symbol: matmul_exp_"):
        link_shared(library.name, list(bodies)[1:], 1, tmp_path, HOST)


@native
def test_a_shared_library_that_does_not_load_is_not_written(tmp_path, monkeypatch):
    def lazy(identifier, members, threads, folder, target, timed):
        (folder / f"lib{identifier}.so").write_bytes(b"no library")
        return f"lib{identifier}.so"

    monkeypatch.setattr("passfit.codegen.library.link_shared", lazy)
    with pytest.raises(ToolchainError, match=r"libcomparison.so does not load on this machine: .+\."):
        write(models.comparison(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kernels.o"]


def test_a_kernel_that_needs_tvms_runtime_is_refused_by_name(tmp_path):
    import tvm
    from tvm import te

    x = te.placeholder((8,), name="x")
    call = lambda i, o: tvm.tirx.call_packed("tvm.contrib.sort.argsort", i[0], o[0])  # noqa: E731
    kernel = te.create_prim_func([x, te.extern((8,), [x], call, dtype="float32")])
    with pytest.raises(ModelError, match="'tvm.contrib.sort.argsort'"):
        write(replace(models.comparison(), kernels={"above": kernel}), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kernels.o"]


@pytest.mark.fault("the toolchain", "it fails at the archive", "no file of the library is left")
def test_a_failing_toolchain_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*args, **options):
        raise ToolchainError("zig cc failed: no space left.")

    monkeypatch.setattr("passfit.codegen.library.zig_ar", fail)
    with pytest.raises(ToolchainError):
        write(models.comparison(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kernels.o"]


def test_an_output_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    model = models.comparison()
    built = models.build_object(model.kernels, "comparison", HOST, tmp_path / "k.o")
    with pytest.raises(OutputError, match="file"):
        write_library("comparison", model.program, model.plan, 0, [], [built], HOST, tmp_path / "file" / "x")


@pytest.mark.parametrize("target", ["x86-64", "rpi4", "beaglebone", "visionfive2"])
def test_no_member_holds_debug_information(tmp_path, target):
    library = write(models.matmul_exp(), tmp_path, get_target(target))
    names = {
        section.name
        for _, body in archive_members(library.archive.read_bytes())
        for section in read_object(body).sections
    }
    assert ".symtab" in names and not [name for name in names if "debug" in name]
