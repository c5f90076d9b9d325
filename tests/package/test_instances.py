"""Run several instances of a model in one program, by sanitizers here, and under emulators; link with another header in vain."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from passfit.package import write_package
from passfit.targets import get_target, how_to_run

from .test_builds import BIN, cmake, run

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
HOST = "x86-64"
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
needs_host = pytest.mark.skipif(not how_to_run(get_target(HOST)).native, reason="the host cannot run x86-64-v3")
#: runs one instance on two inputs, then two instances on one of them each: in turns, or side by side where THREADS is defined
MAIN = """
#include "{m}.h"
#ifdef THREADS
#include <pthread.h>
#endif
enum {{ BYTES = {M}_OUTPUT0_BYTES, ROUNDS = 20 }};
static unsigned char arenas[2][{M}_ARENA_BYTES] __attribute__((aligned({M}_ARENA_ALIGNMENT)));
static {m}_instance_t instances[2];
static unsigned char expected[2][BYTES];
static int wrong[2];

static void fill({m}_input0_t *at, int seed) {{
  for (unsigned i = 0; i < {M}_INPUT0_BYTES / sizeof *at; ++i) at[i] = (float)((i * 7 + 3 * (unsigned)seed) % 11) / 11.0f;
}}
static void check(int k) {{
  const unsigned char *found = (const unsigned char *){m}_instance_output0(&instances[k]);
  for (int i = 0; i < BYTES; ++i) wrong[k] += found[i] != expected[k][i];
}}
#ifdef THREADS
static void *use(void *number) {{
  const int k = *(const int *)number;
  for (int round = 0; round < ROUNDS; ++round) {{
    fill({m}_instance_input0(&instances[k]), k);
    wrong[k] += {m}_instance_run(&instances[k]) != 0;
    check(k);
  }}
  return 0;
}}
#endif
int main(void);
int main(void) {{
  for (int k = 0; k < 2; ++k) {{
    fill({m}_input0(), k);
    if ({m}_run()) return 2;
    for (int i = 0; i < BYTES; ++i) expected[k][i] = ((const unsigned char *){m}_output0())[i];
  }}
  if ({m}_instance_input(&instances[0], 0) || !{m}_instance_run(&instances[0]) || !*{m}_instance_error(&instances[0])) return 3;
  if (*{m}_instance_error(&instances[1]) || !{m}_instance_bind(&instances[0], arenas[0] + 1)) return 4;
  for (int k = 0; k < 2; ++k) if ({m}_instance_bind(&instances[k], arenas[k])) return 5;
#ifdef THREADS
  static const int numbers[2] = {{0, 1}};
  pthread_t threads[2];
  for (int k = 0; k < 2; ++k) if (pthread_create(&threads[k], 0, use, (void *)&numbers[k])) return 6;
  for (int k = 0; k < 2; ++k) pthread_join(threads[k], 0);
#endif
  for (int round = 0; round < 2; ++round) {{
    for (int k = 0; k < 2; ++k) fill({m}_instance_input0(&instances[k]), k);
    for (int k = 0; k < 2; ++k) if ({m}_instance_run(&instances[k])) return 7;
    for (int k = 0; k < 2; ++k) check(k);
  }}
  return wrong[0] || wrong[1];
}}
"""
MODELS = ("small-net", "lstm")


def program(model: str) -> str:
    """Return the program that runs two instances of a model."""
    m = model.replace("-", "_")
    return MAIN.format(m=m, M=m.upper())


@needs_gcc
@needs_host
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
@pytest.mark.parametrize("model", MODELS)
def test_threads_run_instances_side_by_side_under_sanitizers(tmp_path, result, model, sanitizer):
    write_package(result(HOST, model), "cmake", tmp_path, source=True)
    (tmp_path / "main.c").write_text(program(model))
    checks = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-DTHREADS", "-O1", "-Wall", "-Wextra", "-Werror"]
    sources = [str(file) for file in sorted((tmp_path / "src").glob("*.[cS]"))]
    run("gcc", *checks, "-Iinclude", "main.c", *sources, "-lpthread", "-lm", "-o", "program", cwd=tmp_path)
    run("./program", cwd=tmp_path)


@pytest.mark.parametrize("name", ["mps2-an386", "rv32-virt"])
@pytest.mark.parametrize("model", MODELS)
def test_two_instances_share_a_board(tmp_path, result, model, name):
    write_package(result(name, model), "cmake", tmp_path)
    (tmp_path / "example" / "main.c").write_text(program(model))
    cmake(tmp_path, f"-DPASSFIT_PYTHON={sys.executable}")
    if how_to_run(get_target(name)).command is None:
        pytest.skip(how_to_run(get_target(name)).how)
    assert "100% tests passed" in run(str(BIN / "ctest"), "--test-dir", "build", cwd=tmp_path)


@needs_gcc
@needs_host
@pytest.mark.parametrize("options", [["-fno-common"], ["-flto", "-O2"], ["-x", "c++"], ["-O0", "-Wl,--gc-sections"]])
@pytest.mark.parametrize("function", ["small_net_run()", "small_net_instance_run(&small_net_static_instance)"])
def test_an_archive_of_another_header_does_not_link_and_the_linker_says_so(tmp_path, result, options, function):
    shutil.copy(result(HOST) / "libsmall_net.a", tmp_path)
    header = (result(HOST) / "small_net.h").read_text()
    (tmp_path / "main.c").write_text(f'#include "small_net.h"\nint main(void) {{ return {function}; }}\n')
    command = ["gcc", *options, "main.c", "-x", "none", "libsmall_net.a", "-lm", "-o", "program"]
    for digest, linked in (("", True), ("0123456789ab", False)):
        text = re.sub(r"(_of_this_header_)\w{12}", rf"\g<1>{digest}", header) if digest else header
        (tmp_path / "small_net.h").write_text(text)
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode == 0) == linked, done.stderr
        assert linked or f"run_needs_the_archive_of_this_header_{digest}" in done.stderr


def test_a_header_of_other_facts_has_another_digest(result):
    def digest(folder: Path) -> str:
        return re.search(
            r"small_net_run_needs_the_archive_of_this_header_(\w{12})", (folder / "small_net.h").read_text()
        )[1]

    assert digest(result(HOST)) != digest(result("mps2-an386"))


@needs_gcc
@needs_host
def test_inputs_and_outputs_have_types_of_c(tmp_path, result):
    """`best` is int64, and `half` float16, as bits."""
    shutil.copy(result(HOST) / "small_net.h", tmp_path)
    types = {
        "small_net_input0()": "float *",
        "small_net_output0()": "const float *",
        "small_net_output1()": "const int64_t *",
    }
    types |= {"small_net_output2()": "const uint16_t *", "small_net_instance_output1(0)": "const int64_t *"}
    checks = "".join(f'_Static_assert(_Generic({call}, {kind}: 1, default: 0), "");\n' for call, kind in types.items())
    (tmp_path / "main.c").write_text(f'#include "small_net.h"\n{checks}')
    run("gcc", "-c", "main.c", cwd=tmp_path)


@needs_gcc
@needs_host
def test_the_program_of_the_page_runs(tmp_path, result):
    page = Path(__file__).parents[2] / "docs" / "packages.md"
    text = page.read_text(encoding="utf-8").split("```c\n")[1].split("```")[0]
    (tmp_path / "main.c").write_text(text.replace("kws", "small_net").replace("KWS", "SMALL_NET"))
    for name in ("small_net.h", "libsmall_net.a"):
        shutil.copy(result(HOST) / name, tmp_path)
    run("gcc", "-Wall", "-Wextra", "-Werror", "main.c", "libsmall_net.a", "-lm", "-o", "program", cwd=tmp_path)
    run("./program", cwd=tmp_path)
