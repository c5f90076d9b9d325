"""Measure other tools' code for MLPerf Tiny on a Cortex-M4; write results/rivals.md.

    .venv/bin/python benchmarks/rivals.py RIVALS [DIR]      default DIR: ../shared/mlperf_tiny

RIVALS holds what the tools made, in a folder each, by the name of the ONNX file in DIR:

    RIVALS/TOOL/MODEL.c    C with `entry(input, output)`, as onnx2c writes it: compiled here, at -Os and -O2
    RIVALS/TOOL/MODEL.a    a complete library with `void *rival_input(int)`, `const void *rival_output(int)`,
                           `int32_t rival_run(void)` and `const char *rival_error(void)`, which may be one over an interpreter
    RIVALS/TOOL/about.md   its version and how it was built, for the page

Each is linked with the start-up and the main of our images, run by the same emulator on one case, and measured by the same
rules: ram is .data, .bss and the painted stack, with inputs and outputs; flash is .text, .rodata and .data. Our own figures
are those of results/boards.md.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
from head import HERE, begin
from mlperf_tiny import FOLDER, INPUTS

from passfit import api
from passfit.codegen.bare.float_functions import SOURCE
from passfit.codegen.library import Library
from passfit.errors import PassfitError
from passfit.program import Buffer, Port, Program, Tensor
from passfit.targets import Target, get_target, zig_ar, zig_cc
from passfit.verify.inputs import make_input
from passfit.verify.runner import link

BOARD = "mps2-an386"
#: as C that others write is compiled: for size, and for speed
LEVELS = ("-Os", "-O2")
#: hosted: a copy of four bytes is a load, as the authors measured it; freestanding it would be a call
_FLAGS = (
    "-std=c11",
    "-fhosted",
    "-g0",
    "-fno-sanitize=all",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-unwind-tables",
    "-fno-asynchronous-unwind-tables",
    "-w",
)
_HEADER = """
#include <stdint.h>
#define RIVAL_INPUTS 1
#define RIVAL_OUTPUTS 1
void *rival_input(int i);
const void *rival_output(int i);
int32_t rival_run(void);
const char *rival_error(void);
"""
#: tensors around a function of C; its parameters are arrays, passed as addresses
_ENTRY = """
#include "rival.h"
void entry(const void *input, void *output);
static unsigned char input[{input}] __attribute__((aligned(8))), output[{output}] __attribute__((aligned(8)));
void *rival_input(int i) {{ return i ? 0 : input; }}
const void *rival_output(int i) {{ return i ? 0 : output; }}
int32_t rival_run(void) {{ return entry(input, output), 0; }}
const char *rival_error(void) {{ return ""; }}
"""


def measure(file: Path, level: str, model: Path) -> dict:
    """Link a tool's C, or its library, and run it once. Returns its row; one with `failed` gives the reason."""
    board = get_target(BOARD)
    shapes = {onnx.load(model).graph.input[0].name: [1, *INPUTS[model.stem.partition("-")[0]]]}
    imported = api.load(str(model), shapes=shapes)
    (case,), (expected,) = _case(imported.onnx, model)
    program = _program(imported.onnx)
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        folder = Path(scratch)
        try:
            library = _library(file, level, program, board, folder)
            (folder / "linked").mkdir()
            linked = link(library, program, board, folder / "linked")
            report, (found,) = linked.run([case])
        except PassfitError as error:
            return {"failed": str(error)}
    sizes = linked.image.sizes
    (name, wanted), result = next(iter(expected.items())), found[next(iter(found))]
    difference = np.abs(result.astype(np.float64) - wanted.astype(np.float64)).max()
    return {
        "ram": sizes.ram + report["stack"], "stack": report["stack"], "flash": sizes.flash, "text": sizes.text,
        "instructions": report["instructions"], "difference": float(difference), "integer": wanted.dtype.kind == "i", "output": name,
    }  # fmt: skip


def _case(model: onnx.ModelProto, file: Path) -> tuple[list[dict], list[dict]]:
    """Draw one case of a model; return its inputs, and the outputs of ONNX Runtime on the file as it is."""
    import onnxruntime as ort

    inputs = make_input(model, 0, 0)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return [inputs], [dict(zip((each.name for each in session.get_outputs()), session.run(None, inputs)))]


def _program(model: onnx.ModelProto) -> Program:
    """Return a program without steps that has a model's input and output."""
    ports = [model.graph.input[0], model.graph.output[0]]
    tensors = []
    for number, port in enumerate(ports):
        kind = port.type.tensor_type
        dtype = str(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        tensors.append(Tensor(tuple(each.dim_value for each in kind.shape.dim), dtype, buffer=number))
    buffers = tuple(Buffer(port.name, tensor.nbytes) for port, tensor in zip(ports, tensors, strict=True))
    return Program("rival", (), tuple(tensors), buffers, (), (Port(ports[0].name, 0),), (Port(ports[1].name, 1),))


def _library(file: Path, level: str, program: Program, board: Target, folder: Path) -> Library:
    """Return a tool's library; that of C is compiled first."""
    (folder / "rival.h").write_text(_HEADER, encoding="utf-8")
    archive = folder / "librival.a"
    if file.suffix == ".a":
        shutil.copy(file, archive)
    else:
        sizes = {"input": program.tensors[0].nbytes, "output": program.tensors[1].nbytes}
        (folder / "adapter.c").write_text(_ENTRY.format(**sizes), encoding="utf-8")
        shutil.copy(file, folder / "entry.c")
        shutil.copy(SOURCE, folder / "functions.c")  # of the C library, those that it calls
        includes = [f"-isystem{_libc() / each}" for each in ("arm-linux-musl", "generic-musl", "any-linux-any")]
        for source, options in (("adapter.c", []), ("entry.c", includes), ("functions.c", [])):
            zig_cc([*_FLAGS, level, *options, "-c", source, "-o", f"{source}.o"], board, folder)
        zig_ar("librival.a", ["adapter.c.o", "entry.c.o", "functions.c.o"], folder)
    return Library("rival", archive, folder / "rival.h", 0, 0)


def _libc() -> Path:
    """Return the folder of the C library's headers in the toolchain."""
    return Path(find_spec("ziglang").origin).parent / "lib" / "libc" / "include"


def ours() -> dict[str, dict]:
    """Return the rows of results/boards.md for BOARD, by model."""
    text = (HERE / "results" / "boards.md").read_text(encoding="utf-8")
    found = {}
    for match in re.finditer(
        rf"^\| (\S+) \| {BOARD} \| ([^|]+)\| ([^|]+)\| ([^|]+)\| ([^|]+)\| ([^|]+)\|", text, re.MULTILINE
    ):
        ram, stack, flash, code, instructions = (int(each.replace(",", "")) for each in match.groups()[1:])
        found[match[1]] = {"ram": ram, "stack": stack, "flash": flash, "code": code, "instructions": instructions}
    return found


def table(rows: Sequence[tuple[str, str, dict]], about: Iterable[tuple[str, str]], head: Iterable[str]) -> str:
    """Return rivals.md; rows are model, tool and row, `about` tools and what was measured of them."""
    lines = [
        "# Other tools on a Cortex-M4", "", *head, "",
        f"The models of MLPerf Tiny on {BOARD}, under QEMU: bytes as linked, and instructions of one run. Ram is .data, .bss and the",
        "painted stack, with inputs and outputs; flash .text, .rodata and .data, without start-up and main, which are ours for all.",
        "Ratio: ours ÷ theirs. Outputs: the largest difference from ONNX Runtime on the ONNX file. Ours are those of boards.md.", "",
        "C of others is compiled by the same compiler for the same core, at the level named. Instructions are not time: no caches, no",
        "wait states.", "", *(f"* {tool}: {text}" for tool, text in about), "",
        "| model | tool | ram | ratio | of it stack | flash | ratio | instructions | ratio | outputs |",
        "| --- | --- |" + " ---: |" * 8,
    ]  # fmt: skip
    own = ours()
    for name in sorted({model for model, _, _ in rows}):
        if name in own:
            mine = own[name]
            lines.append(
                f"| {name} | passfit | {mine['ram']:,} | | {mine['stack']:,} | {mine['flash']:,} | | {mine['instructions']:,} | | |"
            )
        for _, tool, row in (each for each in rows if each[0] == name):
            if "failed" in row:
                lines.append(f"| {name} | {tool}: {' '.join(row['failed'].split())} |" + " |" * 8)
                continue
            ratio = {
                part: f"{own[name][part] / row[part]:.2f}" if name in own else ""
                for part in ("ram", "flash", "instructions")
            }
            difference = f"{row['difference']:.0f} LSB" if row["integer"] else f"{row['difference']:.0e}"
            lines.append(
                f"| {name} | {tool} | {row['ram']:,} | {ratio['ram']} | {row['stack']:,} | {row['flash']:,} | {ratio['flash']} "
                f"| {row['instructions']:,} | {ratio['instructions']} | {difference} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("rivals", type=Path, metavar="RIVALS", help="folder of what other tools made, a folder a tool")
    parser.add_argument("models", nargs="?", type=Path, default=FOLDER, metavar="DIR", help="folder of the ONNX models")
    arguments = parser.parse_args()
    origin, _ = begin("rivals")
    rows = []
    for file in sorted(file for file in arguments.rivals.glob("*/*") if file.suffix in (".a", ".c")):
        model = arguments.models / f"{file.stem}.onnx"
        for level in LEVELS if file.suffix == ".c" else ("",):
            tool = f"{file.parent.name} {level}".strip()
            rows.append((file.stem, tool, measure(file, level, model)))
            print(*rows[-1], flush=True)
    if not rows:
        sys.exit(f"There is nothing in {arguments.rivals}: results/rivals.md is left as it is.")
    about = [
        (file.parent.name, file.read_text(encoding="utf-8").strip())
        for file in sorted(arguments.rivals.glob("*/about.md"))
    ]
    text = table(rows, about, origin.lines(".venv/bin/python benchmarks/rivals.py RIVALS"))
    (HERE / "results" / "rivals.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
