"""What a library says of values that operators forbid."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest
from onnx import helper

from passfit.targets import get_target, how_to_run, program_libc, zig_cc

from ...models import model_of, save

pytestmark = [pytest.mark.slow, pytest.mark.tvm]
HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")


def built(folder, mode: str):
    """A library of two Gathers by one input, the second of which has fewer rows."""
    from passfit.codegen.build_library import build_library
    from passfit.frontend.imported_model import load
    from passfit.memory.validation.checked_plan import checked_plan
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import Sequence

    nodes = [
        helper.make_node("Gather", ["w", "i"], ["a"], name="words"),
        helper.make_node("Gather", ["v", "i"], ["b"], name='types "é"??/'),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    rows = {"w": np.arange(80, dtype=np.float32).reshape(20, 4), "v": np.ones((10, 4), np.float32)}
    model = model_of(nodes, {"i": (3,)}, {"y": (3, 4)}, rows, dtypes={"i": 7})
    imported = load(save(model, folder), "two-tables")
    target = HOST.with_index_checks(mode)
    passes = Sequence.parse(["legalize", "fold-constant", "fuse-operators"])
    lowered, workspace = replay(passes, imported.graph, imported.onnx, "two-tables", target.machine)
    return build_library("two-tables", lowered, checked_plan(lowered.program, target), workspace, target, folder)


def run(library, *indices: int) -> tuple[int, str, np.ndarray]:
    loaded = ctypes.CDLL(str(library.shared))
    loaded.two_tables_input.restype = loaded.two_tables_output.restype = ctypes.c_void_p
    loaded.two_tables_error.restype = ctypes.c_char_p
    given = np.array(indices, np.int64)
    ctypes.memmove(loaded.two_tables_input(0), given.ctypes.data, given.nbytes)
    code = loaded.two_tables_run()
    result = np.empty((3, 4), np.float32)
    ctypes.memmove(result.ctypes.data, loaded.two_tables_output(0), result.nbytes)
    return code, loaded.two_tables_error().decode(), result


@native
def test_a_run_fails_at_a_forbidden_index_and_names_the_node(tmp_path):
    library = built(tmp_path, "fail")
    header = library.header.read_text()
    assert "#define TWO_TABLES_ERROR_VALUE 4" in header and "two_tables_error names the operator" in header
    expected = 1 + np.array([[0, 1, 2, 3], [36, 37, 38, 39], [4, 5, 6, 7]], np.float32)
    code, message, result = run(library, 0, 9, 1)
    assert (code, message) == (0, "") and (result == expected).all()
    code, message, _ = run(library, 0, 20, 1)
    assert code == 4 and message.startswith("an index is out of range in ") and "words" in message
    code, message, _ = run(library, 0, 10, 1)
    assert code == 4 and 'types "é"??/' in message
    code, message, result = run(library, 0, 9, 1)  # the next run is not affected
    assert (code, message) == (0, "") and (result == expected).all()


@native
def test_a_run_clamps_or_trusts_if_asked_to(tmp_path):
    (tmp_path / "clamp").mkdir()
    (tmp_path / "off").mkdir()
    clamped, trusting = built(tmp_path / "clamp", "clamp"), built(tmp_path / "off", "off")
    assert "the nearest value that is allowed" in clamped.header.read_text()
    assert "not checked" in trusting.header.read_text()
    assert "ERROR_VALUE" not in clamped.header.read_text() + trusting.header.read_text()
    code, _, result = run(clamped, 2**62, -(2**62), 2**32 + 1)
    assert code == 0 and (result[:, 0] == [77, 1, 77]).all()
    assert run(trusting, 0, 9, 1)[0] == 0


#: undefined behaviour ends the program with a signal; this needs no runtime of the sanitizer
SANITIZE = ("-fsanitize=undefined", "-fsanitize-trap=undefined")
SANITISED = """
#include "two_tables.h"
#include <limits.h>
#include <stdint.h>
#include <string.h>
int main(int count, char **arguments) {
  (void)arguments;
  if (count > 1) return INT_MAX + count > 0; /* undefined */
  static const int64_t wild[] = {0, 9, 10, 19, 20, -1, -20, -21, INT64_MAX, INT64_MIN, 4294967297};
  int failed = 0;
  for (unsigned i = 0; i < sizeof wild / sizeof *wild; ++i) {
    const int64_t indices[3] = {0, wild[i], 1};
    memcpy(two_tables_input(0), indices, sizeof indices);
    failed += two_tables_run() != 0;
    if (two_tables_input(1) || two_tables_output(-1)) return 100;
  }
  char unaligned[8];
  if (!two_tables_bind(unaligned + 1) || !two_tables_bind(0)) return 101;
  return failed;
}
"""


@native
def test_the_c_of_a_library_has_no_undefined_behaviour(tmp_path, monkeypatch):
    from passfit.codegen import library as codegen

    flags = [each for each in codegen.COMPILE_FLAGS if each != "-fno-sanitize=all"]
    monkeypatch.setattr(codegen, "COMPILE_FLAGS", (*flags, *SANITIZE))
    library = built(tmp_path, "fail")
    (tmp_path / "main.c").write_text(SANITISED, encoding="utf-8")
    libc, options = program_libc(HOST)
    zig_cc(
        ["-O1", *SANITIZE, *options, "main.c", library.archive.name, "-lm", "-o", "main"],
        HOST,
        tmp_path,
        zig_target=libc,
    )
    program = str(tmp_path / "main")
    forbidden = 8  # of the eleven indices, all but 0, 9 and -1 lie outside of one of the tables
    assert subprocess.run([program], timeout=60).returncode == forbidden
    assert subprocess.run([program, "broken"], timeout=60).returncode < 0
