"""Test libraries with parallel loops: same bytes as on one thread, for any schedule of threads, and without any."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from passfit.codegen import write_library
from passfit.codegen.elf import archive_members, read_object
from passfit.program import Buffer, Port, Program, Step, Tensor
from passfit.targets import get_target, how_to_run, load_catalogue, program_libc, zig_cc
from passfit.verify.runner import link

from . import models

pytestmark = pytest.mark.slow
HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
#: a night for emulators: their threads are musl's, which zig builds for each target in 50 s
PLACES = [
    name if how_to_run(target).native else pytest.param(name, marks=pytest.mark.nightly)
    for name, target in load_catalogue().items()
    if not target.bare
]
ROWS, COLUMNS = 37, 700


def reversed_rows(threads: int) -> models.Model:
    """Make a program that reverses every row of x, twice, through a workspace too large for a stack."""
    from tvm import tirx
    from tvm.ir import Var
    from tvm.tirx import BufferStore, For

    from passfit.tir.loop_nests import buffer_of, int64, kernel_of, sequence

    x, y = (buffer_of(name, (ROWS, COLUMNS), "float32") for name in "xy")
    row = buffer_of("row", (COLUMNS,), "float32")
    i, j, k = (Var(name, "int64") for name in "ijk")
    fill = BufferStore(row, tirx.BufferLoad(x, [i, j]) * tirx.const(2.0, "float32"), [j])
    drain = BufferStore(y, tirx.BufferLoad(row, [int64(COLUMNS - 1) - k]), [i, k])
    body = sequence([For(j, int64(0), int64(COLUMNS), 0, fill), For(k, int64(0), int64(COLUMNS), 0, drain)])
    kernel = kernel_of([x, y], [For(i, int64(0), int64(ROWS), int(threads > 1), body)], [row], None)
    nbytes = ROWS * COLUMNS * 4
    program = Program(
        name="rows",
        steps=(Step("reverse", (0,), (1,)), Step("reverse", (1,), (2,))),
        tensors=tuple(Tensor((ROWS, COLUMNS), "float32", buffer=n) for n in range(3)),
        buffers=tuple(Buffer(name, nbytes) for name in ("x", "between", "y")),
        weights=(),
        inputs=(Port("x", 0),),
        outputs=(Port("y", 2),),
    )
    one = -(-COLUMNS * 4 // 64) * 64
    plan = models.Plan(tuple(n * -(-nbytes // 64) * 64 for n in range(3)), 3 * -(-nbytes // 64) * 64)
    return models.Model(program, plan, one * threads, [], {"reverse": kernel}, None)


def library(folder: Path, threads: int, target=HOST, name="rows", workspace: int | None = None):
    folder.mkdir(parents=True, exist_ok=True)
    model, target = reversed_rows(threads), target.with_threads(threads)
    built = models.build_object(model.kernels, name, target, folder / "kernels.o")
    scratch = model.workspace if workspace is None else workspace
    scratch += target.machine.thread_bytes
    return write_library(name, model.program, model.plan, scratch, [], [built], target, folder), model, target


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("threads", [2, 5])
def test_every_target_computes_the_bytes_of_one_thread(tmp_path, name, threads):
    found = []
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    for count in (1, threads):
        made, model, target = library(tmp_path / str(count), count, get_target(name))
        linked = link(made, model.program, target, tmp_path / str(count))
        if linked.runner.command is None:
            pytest.skip(linked.runner.how)
        _, outputs = linked.run([{"x": x}, {"x": x + 1}, {"x": x}], 20, 1.0)
        found.append([each["y"] for each in outputs])
    assert all((one == other).all() for one, other in zip(*found, strict=True))
    assert (found[0][0] == 4 * x).all()


def test_one_thread_needs_no_threads(tmp_path):
    made, *_ = library(tmp_path / "1", 1)
    several, *_ = library(tmp_path / "2", 2)
    assert (made.threads, several.threads) == (1, 2)
    for each in (made, several):
        objects = [read_object(body) for _, body in archive_members(each.archive.read_bytes())]
        wanted = {name for found in objects for name in found.undefined if name.startswith("pthread")}
        assert ("pthread_create" in wanted) == (each.threads > 1)
        assert ("-lpthread" in each.header.read_text()) == (each.threads > 1)


def test_a_library_whose_loops_nobody_shares_starts_no_thread(tmp_path):
    model, target = reversed_rows(1), HOST.with_threads(2)
    built = models.build_object(model.kernels, "rows", target, tmp_path / "kernels.o")
    made = write_library("rows", model.program, model.plan, model.workspace, [], [built], target, tmp_path)
    alone, *_ = library(tmp_path / "1", 1)
    assert made.threads == 1 and made.archive.read_bytes() == alone.archive.read_bytes()


def test_the_same_input_gives_the_same_bytes(tmp_path):
    one, two = (library(tmp_path / name, 2)[0] for name in ("one", "two"))
    assert one.archive.read_bytes() == two.archive.read_bytes()


MAIN = """
#define _GNU_SOURCE
#include "rows.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static int threads(void) { /* of this process */
  char line[256]; int count = -1; FILE *file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file)) if (!strncmp(line, "Threads:", 8)) count = atoi(line + 8);
  fclose(file);
  return count;
}
static int right(int round) {
  float *x = rows_input(0);
  const int count = ROWS_INPUT0_BYTES / 4;
  for (int i = 0; i < count; ++i) x[i] = (float)(i * 7 % 1001 + round);
  if (rows_run()) { printf("%s", rows_error()); return 0; }
  const float *y = rows_output(0);
  for (int i = 0; i < count; ++i) if (y[i] != 4 * (float)(i * 7 % 1001 + round)) return 0;
  return 1;
}
int main(void) {
  alarm(100);
  BODY
}
"""


def output_of(folder: Path, made, body: str) -> subprocess.CompletedProcess:
    for file in (made.archive, made.header):
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "main.c").write_text(MAIN.replace("BODY", body), encoding="utf-8")
    libc, options = program_libc(HOST)
    options = ["-O1", "-fno-sanitize=all", *options, "main.c", made.archive.name, "-lm", "-lpthread", "-o", "main"]
    zig_cc(options, HOST, folder, zig_target=libc)
    return subprocess.run([str(folder / "main")], capture_output=True, text=True, timeout=120)


@native
def test_threads_are_started_once_and_wait_between_runs(tmp_path):
    made, *_ = library(tmp_path, 4)
    body = """
  printf("%d ", threads());
  int good = 1;
  for (int round = 0; round < 500; ++round) { good &= right(round); if (round % 100 == 0) usleep(20000); }
  printf("%d %d", good, threads());
  return 0;"""
    assert output_of(tmp_path, made, body).stdout == "1 1 4"


@native
def test_without_room_for_threads_one_does_it_all(tmp_path):
    made, *_ = library(tmp_path, 3)
    body = """
  struct rlimit none = {1, 1};
  setrlimit(RLIMIT_AS, &none);
  const int good = right(0) & right(1);
  none.rlim_cur = none.rlim_max = 1;
  static char text[64]; /* no memory for stdio's own */
  (void)!write(1, text, (size_t)snprintf(text, sizeof text, "%d", good));
  return 0;"""
    assert output_of(tmp_path, made, body).stdout == "1"


@native
def test_a_forked_child_gets_threads_of_its_own(tmp_path):
    made, *_ = library(tmp_path, 2)
    body = """
  printf("%d", right(0));
  fflush(stdout);
  const pid_t child = fork();
  const int good = right(1) & right(2), mine = threads();
  if (!child) _exit(good && mine == 2 ? 0 : 1);
  int status;
  waitpid(child, &status, 0);
  printf("%d%d", good, WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return 0;"""
    assert output_of(tmp_path, made, body).stdout == "111"


@native
def test_a_workspace_too_small_for_all_threads_is_an_error_code(tmp_path):
    enough = reversed_rows(1).workspace
    made, *_ = library(tmp_path, 2, workspace=2 * enough - 64)
    body = 'printf("%d|", rows_run()); printf("%s", rows_error()); return 0;'
    assert output_of(tmp_path, made, body).stdout == "3|the workspace is too small"


@native
def test_two_libraries_with_threads_live_in_one_program(tmp_path):
    first, *_ = library(tmp_path / "1", 2)
    second, *_ = library(tmp_path / "2", 3, name="others")
    for file in (second.archive, second.header):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    body = """
  int good = 1;
  for (int round = 0; round < 50; ++round) {
    good &= right(round);
    float *x = others_input(0);
    for (int i = 0; i < OTHERS_INPUT0_BYTES / 4; ++i) x[i] = (float)(i + round);
    good &= others_run() == 0;
    for (int i = 0; i < OTHERS_INPUT0_BYTES / 4; ++i) good &= ((const float *)others_output(0))[i] == 4 * (float)(i + round);
  }
  printf("%d %d", good, threads());
  return 0;"""
    source = MAIN.replace('#include "rows.h"', '#include "rows.h"\n#include "others.h"').replace("BODY", body)
    (tmp_path / "main.c").write_text(source, encoding="utf-8")
    (tmp_path / first.archive.name).write_bytes(first.archive.read_bytes())
    (tmp_path / first.header.name).write_bytes(first.header.read_bytes())
    archives = [first.archive.name, second.archive.name]
    libc, options = program_libc(HOST)
    options = ["-O1", "-fno-sanitize=all", *options, "main.c", *archives, "-lpthread", "-o", "main"]
    zig_cc(options, HOST, tmp_path, zig_target=libc)
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, timeout=120)
    assert done.stdout == "1 4"


@native
def test_the_shared_library_has_threads_too(tmp_path):
    import ctypes

    made, *_ = library(tmp_path, 2)
    loaded = ctypes.CDLL(str(made.shared))
    for name in ("input", "output"):
        getattr(loaded, f"rows_{name}").restype = ctypes.c_void_p
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    for _ in range(3):
        ctypes.memmove(loaded.rows_input(0), x.ctypes.data, x.nbytes)
        assert loaded.rows_run() == 0
        result = np.frombuffer(ctypes.string_at(loaded.rows_output(0), x.nbytes), np.float32).reshape(x.shape)
        assert (result == 4 * x).all()


@native
def test_the_header_tells_how_many_bytes_of_workspace_there_are(tmp_path):
    made, model, target = library(tmp_path, 3)
    assert f"ROWS_WORKSPACE_BYTES {model.workspace}\n" in made.header.read_text()
    assert replace(target, threads=1).machine.thread_bytes == 0 < target.machine.thread_bytes
