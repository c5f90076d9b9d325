"""The sources of libraries and images are strict C: no warning of two compilers, no finding of cppcheck."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from passfit.codegen.bare.float_functions import SOURCE
from passfit.codegen.elf import read_object
from passfit.codegen.library import library_values
from passfit.codegen.source.files import write_sources
from passfit.codegen.template import render
from passfit.codegen.tensor_addresses import tensor_addresses
from passfit.image import link_image
from passfit.targets import Target, get_target, host_libc

from . import models
from .test_threads import reversed_rows

pytestmark = pytest.mark.slow
HOST, BARE = get_target("x86-64"), get_target("mps2-an386")
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-c", "-o", "x.o")
IMAGE = Path(sys.modules[link_image.__module__].__file__).parent
#: no checks of whole programs, which find a library's functions unused; nor of padding, and of signatures that pthreads asks for
CPPCHECK = (
    str(Path(sys.executable).with_name("cppcheck")), "--enable=warning,style,performance,portability", "--check-level=exhaustive",
    "--quiet", "--error-exitcode=1", *(f"--suppress={each}" for each in ("staticFunction", "unusedStructMember", "constParameterCallback")),
)  # fmt: skip
#: by name: the model, its target, why its kernels may fail, and the oldest C of its sources
SOURCES = {
    "bare": (models.matmul_exp, BARE, {}, "c99"),
    "bare, bytes": (models.comparison, BARE, {}, "c99"),
    "bare, arithmetic helpers": (models.whole_numbers, BARE, {}, "c99"),
    "bare, two memories": (models.over_two_memories, BARE, {}, "c99"),
    "bare, no steps": (models.empty_program, BARE, {}, "c99"),
    "forbidden values": (models.comparison, BARE, {"above": ("a limit out of range",)}, "c99"),
    "timed": (models.matmul_exp, HOST, {}, "c99"),
    "workspace": (lambda: reversed_rows(1), HOST.with_threads(1), {}, "c99"),
    "threads": (lambda: reversed_rows(3), HOST.with_threads(3), {}, "c11"),  # <stdatomic.h>
}


def written(name: str, folder: Path) -> tuple[list[str], str]:
    """Write the sources of a library into `folder`; return the names of the C files, and of the header."""
    make, target, reasons, _ = SOURCES[name]
    model = make()
    kernels = models.build_object(model.kernels, model.program.name, target, folder / "kernels.o")
    addresses = tensor_addresses(model.program, model.plan)
    workspace = model.workspace + (target.machine.thread_bytes if target.threads > 1 else 0)
    values = library_values(
        model.program.name,
        model.program,
        model.plan,
        workspace,
        addresses,
        read_object(kernels.read_bytes()),
        target,
        reasons,
    )
    files = write_sources(folder, values | {"timed": name == "timed", "model_sha256": "ab12"}, model.weights, addresses)
    return [each for each in files if each.endswith(".c")], f"{values['m']}.h"


def clang(target: Target) -> list[str]:
    machine = (
        ["-target", target.zig_target, f"-mcpu={target.zig_cpu}", "-ffreestanding"]
        if target.bare
        else ["-target", host_libc(target)]
    )
    return [sys.executable, "-m", "ziglang", "cc", *machine]


def run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("compiler", ["clang", "gcc"])
@pytest.mark.parametrize("name", SOURCES)
def test_a_library_compiles_without_a_warning(tmp_path, name, compiler):
    _, target, _, standard = SOURCES[name]
    if compiler == "gcc" and shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    files, header = written(name, tmp_path)
    (tmp_path / "header.cpp").write_text(
        f'#include "{header}"\nint main() {{ return {header[:-2].upper()}_OUTPUTS; }}\n', encoding="utf-8"
    )
    command = clang(target) if compiler == "clang" else ["gcc"]
    for language, file in [*((standard, each) for each in files), ("c++17", "header.cpp")]:
        run([*command, *STRICT, f"-std={language}", file], tmp_path)


@pytest.mark.parametrize("name", SOURCES)
def test_cppcheck_finds_nothing_in_a_library(tmp_path, name):
    files, header = written(name, tmp_path)
    run([*CPPCHECK, f"--std={SOURCES[name][3]}", *files, header], tmp_path)


def test_cppcheck_finds_nothing_in_functions_and_images(tmp_path):
    for file in (*IMAGE.glob("*.[ch]"), SOURCE):
        shutil.copy(file, tmp_path)
    files, _ = written("bare", tmp_path)
    values = {
        "m": "matmul_exp",
        "M": "MATMUL_EXP",
        "target": "mps2-an386",
        "input_bytes": [96],
        "output_bytes": [80, 96, 120, 80],
    }
    (tmp_path / "main.c").write_text(render("main.c.j2", IMAGE, **values), encoding="utf-8")
    # it cannot read the names of registers, and takes the linker's symbols for arrays, and addresses in numbers for unused
    options = [
        "--std=c11",
        "-D__asm__(x)=",
        "-D__arm__",
        "--suppress=comparePointers",
        "--suppress=constParameterPointer",
    ]
    run([*CPPCHECK, *options, *sorted(each.name for each in tmp_path.glob("*.c"))], tmp_path)
    assert {"main.c", "startup_thumb.c", "startup_riscv.c", SOURCE.name, *files} <= {
        each.name for each in tmp_path.iterdir()
    }


def test_cppcheck_finds_a_fault(tmp_path):
    (tmp_path / "x.c").write_text("int main(void) {\n  int a[2] = {1, 2};\n  return a[2];\n}\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="arrayIndexOutOfBounds"):
        run([*CPPCHECK, "x.c"], tmp_path)
