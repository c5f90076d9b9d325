"""Run libraries of this machine under the address and undefined-behaviour sanitizers; write results/sanitizers.md.

    .venv/bin/python benchmarks/sanitizers.py [DIR]                 all models, small ones first
    .venv/bin/python benchmarks/sanitizers.py --model wake-alexa    only this one; its row is printed
    .venv/bin/python benchmarks/sanitizers.py --table               the page of the rows at hand

DIR holds the models of MLPerf Tiny; default: ../shared/mlperf_tiny, if it is there.

Each model is searched once by `passfit optimize`. The library's C is compiled by gcc with both sanitizers, its kernels by
the toolchain's clang, which adds checks of addresses to LLVM's code of them:

    library.c ─► run_steps ─► kernel ─► wrapper: of arena and weights, only the operands of this call may be touched ─► kernel

So an access outside of an operand by one byte is found, also inside the arena. Sanitizers for undefined behaviour know C,
and no LLVM code: kernels have the checks of addresses alone. gcc has to be installed, with its sanitizers.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path

import numpy as np
import onnx
from head import begin, publish
from main_tables import LIMIT, NARROW, measure_missing, rows_of, run_passfit
from mlperf_tiny import FOLDER, INPUTS
from models import Model, models

from passfit import api
from passfit.codegen import c_identifier, symbol
from passfit.codegen.bare.float_functions import FLOAT_FUNCTIONS, SOURCE
from passfit.codegen.checks.guard_kernels import guard_kernels
from passfit.codegen.elf import read_object
from passfit.codegen.functions.merge_kernels import merge_identical_kernels
from passfit.codegen.library import library_values
from passfit.codegen.llvm_pipelines import RAW
from passfit.codegen.objects import build_module
from passfit.codegen.source.files import write_sources
from passfit.codegen.tensor_addresses import tensor_addresses
from passfit.errors import NumericError, PassfitError
from passfit.kernels.lower.lower import Lowered
from passfit.kernels.schedule.tuned import Tuning
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.sequence.replay import lower_by_sequence, schedule_sequence
from passfit.passes.sequence.sequence import Sequence, read_sequence
from passfit.targets import Target, get_target, host_libc, zig_cc
from passfit.tir.row_window import tensors_of
from passfit.verify.cases import add_plain_sums
from passfit.verify.compare import Case, compare
from passfit.verify.runner import numpy_dtype
from passfit.verify.settings import VerifySettings
from passfit.verify.stored_cases import stored_cases

SANITIZERS = "address,undefined,float-cast-overflow"
_GCC = (
    "gcc",
    "-std=c11",
    "-O1",
    "-g",
    f"-fsanitize={SANITIZERS}",
    "-fno-sanitize-recover=all",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-pedantic",
    "-Werror",
)
_CLANG = ("-g0", "-fsanitize=address", "-Wno-override-module", "-c")
#: attributes of the module's own functions, not those of LLVM's
_FUNCTIONS = re.compile(r'^(attributes #\d+ = \{)(?= .*"target-cpu")', re.MULTILINE)
#: seconds until a program is given up: checks make it several times slower
_SECONDS = 600
#: the program: runs all cases of inputs.bin, and prints the calls of kernels
_MAIN = """
#include "{m}.h"
#include <stdio.h>
extern long calls;
static const size_t in[] = {{{inputs}}}, out[] = {{{outputs}}};
int main(void) {{
  FILE *from = fopen("inputs.bin", "rb"), *to = fopen("outputs.bin", "wb");
  if (!from || !to) return 2;
  for (int number = 0; number < {cases}; ++number) {{
    for (int i = 0; i < {M}_INPUTS; ++i) if (fread({m}_input(i), 1, in[i], from) != in[i]) return 2;
    if ({m}_run()) return fputs({m}_error(), stderr), 3;
    for (int i = 0; i < {M}_OUTPUTS; ++i) if (fwrite({m}_output(i), 1, out[i], to) != out[i]) return 2;
  }}
  printf("%ld", calls);
  return fclose(from) || fclose(to);
}}
"""
#: what all wrappers share
_WRAPPERS = """
#include "{m}.h"
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
extern long calls;
long calls;
{weights}
static void close_all(void) {{
  ++calls;
  ASAN_POISON_MEMORY_REGION({m}_static_instance.arena, {arena});
  ASAN_POISON_MEMORY_REGION(WEIGHTS, {weight_bytes});
}}
static void open_all(void) {{
  ASAN_UNPOISON_MEMORY_REGION({m}_static_instance.arena, {arena});
  ASAN_UNPOISON_MEMORY_REGION(WEIGHTS, {weight_bytes});
}}
static int within(uintptr_t at, uintptr_t bytes, const void *block, uintptr_t all) {{
  return at >= (uintptr_t)block && at - (uintptr_t)block + bytes <= all;
}}
static void open_operand(const void *at, uintptr_t bytes) {{
  if (!within((uintptr_t)at, bytes, {m}_static_instance.arena, {arena}) && !within((uintptr_t)at, bytes, WEIGHTS, {weight_bytes})) {{
    fputs("an operand leaves the arena and the weights", stderr);
    exit(4);
  }}
  ASAN_UNPOISON_MEMORY_REGION(at, bytes);
}}
"""


class RefusedSource(Exception):
    """A C source does not compile without a warning; the message is the compiler's."""


def measure(model: Model, limit: float = LIMIT) -> dict:
    """Build and run a model's library with checks. Returns its row; one with `failed` gives the reason, `finding` a finding."""
    target = get_target(NARROW)
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        out = Path(scratch) / "found"
        try:
            failed, _ = run_passfit(
                ["optimize", *model.arguments(), f"--target={NARROW}", f"--out={out}"], Path(scratch), limit
            )
            if failed:
                return {"failed": failed}
            imported = api.load(str(model.file()), model.name, shapes=model.shapes, fix=model.fix)
            settings = VerifySettings()
            cases = stored_cases(imported.onnx, settings.seed, settings.cases, settings.tolerance, imported.given)
            lowered = _lowered(imported, read_sequence(out / "sequence.json"), target)
            row, outputs = sanitized(lowered, target, cases, Path(scratch))
            if outputs is not None:
                _compare(outputs, cases, imported, settings.tolerance)
        except RefusedSource as refused:
            return {"finding": str(refused)}
        except (PassfitError, subprocess.TimeoutExpired) as error:
            return {"failed": str(error)}
        return row


def _compare(
    outputs: list[dict[str, np.ndarray]], cases: list[Case], imported: api.ImportedModel, tolerance: float
) -> None:
    """Compare outputs as verification does. Raises NumericError."""
    try:
        compare(outputs, cases, tolerance)
    except NumericError:  # raised again unless the order of sums explains the difference
        compare(outputs, add_plain_sums(imported.onnx, cases, given=imported.given), tolerance)


def _lowered(imported: api.ImportedModel, sequence: Sequence, target: Target) -> Lowered:
    before = lower_by_sequence(sequence, imported.graph, imported.onnx, imported.name, target.machine, Tuning())
    return schedule_sequence(before, sequence)[0]


def sanitized(
    lowered: Lowered, target: Target, cases: Iterable[Case], folder: Path
) -> tuple[dict, list[dict[str, np.ndarray]] | None]:
    """Run a program with checks, in `folder`. Returns its row and its outputs by case; None with a finding."""
    cases = list(cases)
    name = c_identifier(lowered.program.name)
    plan = checked_plan(lowered.program, target)
    lowered = merge_identical_kernels(lowered)
    lowered, reasons = guard_kernels(lowered, target.index_checks)
    kernels = {symbol(name, kernel): function for kernel, function in lowered.kernels.items()}
    code = build_module(kernels, target.llvm_config() | {"opt-level": 0}, RAW).inspect_source("ll")
    (folder / "kernels.ll").write_text(_FUNCTIONS.sub(r"\1 sanitize_address", code), encoding="utf-8")
    zig_cc(
        [*_CLANG, f"-mcpu={target.zig_cpu}", f"-O{target.llvm_config()['opt-level']}", "kernels.ll", "-o", "kernels.o"],
        target,
        folder,
        zig_target=host_libc(target),
    )
    addresses = tensor_addresses(lowered.program, plan)
    workspace = sum(each.nbytes for each in lowered.program.buffers)  # more than any kernel needs
    values = library_values(
        lowered.program.name,
        lowered.program,
        plan,
        workspace,
        addresses,
        read_object((folder / "kernels.o").read_bytes()),
        target,
        reasons,
    )
    sources = write_sources(folder, values, lowered.weights, addresses)
    (folder / "wrappers.c").write_text(_wrappers(values, kernels), encoding="utf-8")
    program = lowered.program
    sizes = {
        kind: ", ".join(str(program.tensors[port.tensor].nbytes) for port in ports) or "0"
        for kind, ports in (("inputs", program.inputs), ("outputs", program.outputs))
    }
    (folder / "main.c").write_text(_MAIN.format(m=name, M=name.upper(), cases=len(cases), **sizes), encoding="utf-8")
    wrapped = [f"-Wl,--wrap={each}" for each in kernels]
    for file in sources:
        _run(
            [*_GCC, "-c", file, "-o", f"{file}.o"] if file.endswith(".c") else ["gcc", "-c", file, "-o", f"{file}.o"],
            folder,
        )
    _run(
        [
            *_GCC[:6],
            "wrappers.c",
            "main.c",
            *(f"{each}.o" for each in sources),
            "kernels.o",
            *wrapped,
            "-lm",
            "-o",
            "program",
        ],
        folder,
    )
    with (folder / "inputs.bin").open("wb") as file:
        for case in cases:
            for port in program.inputs:
                file.write(np.ascontiguousarray(case.inputs[port.name]).tobytes())
    done = subprocess.run(
        ["./program"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_SECONDS,
        env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"},
        check=False,
    )
    row = {"kernels": len(kernels), "cases": len(cases)}
    if done.returncode:
        return row | {"finding": _finding(done.stderr) or f"exit code {done.returncode}"}, None
    return row | {"calls": int(done.stdout)}, _outputs(program, folder / "outputs.bin", len(cases))


def _wrappers(values: Mapping, kernels: Mapping) -> str:
    """Return the C of the wrappers: each closes arena and weights, opens the operands, and calls the kernel."""
    m = values["m"]
    weights = (
        f'extern const unsigned char {m}_weights[] __attribute__((visibility("hidden")));\n#define WEIGHTS {m}_weights'
    )
    if not values["weight_blocks"]:
        weights = "static const unsigned char none[1];\n#define WEIGHTS none"
    lines = [_WRAPPERS.format(m=m, arena=values["arena"], weights=weights, weight_bytes=values["weight_bytes"])]
    for kernel in values["kernels"]:
        types = [each for each in kernel["parameters"].split(", ") if each != "void"]
        arguments = [f"a{number}" for number in range(len(types))]
        parameters = ", ".join(f"{each} {argument}" for each, argument in zip(types, arguments)) or "void"
        tensors = [argument for each, argument in zip(types, arguments) if each.endswith("*")]
        opened = [
            f"open_operand({argument}, {_bytes(tensor)});"
            for argument, tensor in zip(tensors, tensors_of(kernels[kernel["symbol"]]), strict=True)
        ]
        real = f"__real_{kernel['symbol']}"
        lines.append(f"int32_t {real}({parameters});\nint32_t __wrap_{kernel['symbol']}({parameters}) {{")
        lines.append(
            f"  close_all(); {' '.join(opened)}\n  int32_t code = {real}({', '.join(arguments)});\n  open_all();\n  return code;\n}}"
        )
    return "\n".join(lines)


def _bytes(tensor: object) -> int:
    """Return the bytes of a kernel's tensor, which has no gaps."""
    return prod(map(int, tensor.ty.shape)) * numpy_dtype(str(tensor.ty.dtype)).itemsize


def _run(command: list[str], folder: Path) -> None:
    """Run a compiler. Raises RefusedSource."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RefusedSource(done.stderr)


def _finding(text: str) -> str:
    """Return the lines of a sanitizer that name a fault and its place."""
    lines = [line.strip() for line in text.splitlines()]
    return (
        "; ".join(
            [
                line
                for line in lines
                if "ERROR:" in line
                or "runtime error:" in line
                or line.startswith(("READ of", "WRITE of", "#0 ", "an operand"))
            ][:3]
        )
        or text.strip()[:200]
    )


def _outputs(program: api.Program, file: Path, cases: int) -> list[dict[str, np.ndarray]]:
    content, at, found = file.read_bytes(), 0, []
    for _ in range(cases):
        found.append({})
        for port in program.outputs:
            tensor = program.tensors[port.tensor]
            found[-1][port.name] = np.frombuffer(content[at : at + tensor.nbytes], numpy_dtype(tensor.dtype)).reshape(
                tensor.shape
            )
            at += tensor.nbytes
    return found


def float_functions(folder: Path) -> str:
    """Call the functions of libraries without libm on special and random numbers, with checks. Returns the finding, if any."""
    names = sorted(FLOAT_FUNCTIONS)
    random = np.random.default_rng(0)
    special = [
        0.0,
        -0.0,
        1,
        -1,
        0.5,
        2.5,
        1e-310,
        1e-45,
        1e30,
        -1e30,
        3.4e38,
        -1.7e308,
        8388607.5,
        4503599627370495.5,
        709,
        -745,
        88.9,
        9.3e18,
        -9.3e18,
    ]
    drawn = random.normal(size=200) * np.exp(random.uniform(-700, 700, 200))
    numbers = ", ".join([*(repr(float(each)) for each in [*special, *drawn]), "1.0 / 0.0", "-1.0 / 0.0", "0.0 / 0.0"])
    lines = [
        SOURCE.read_text(encoding="utf-8"),
        f"static const double numbers[] = {{{numbers}}};",
        "int main(void) {",
        "  volatile double kept;",
    ]
    lines += [
        "  const int count = sizeof numbers / sizeof numbers[0];",
        "  for (int i = 0; i < count; ++i) {",
        "    const double x = numbers[i];",
    ]
    for name in names:
        real = "float" if name.endswith("f") and name != "erf" else "double"
        each = f"({real})x"  # a number too large for a float is infinite there
        lines.append(
            f"    for (int j = 0; j < count; ++j) kept = (double){name}({each}, ({real})numbers[j]);"
            if name.removesuffix("f") in ("pow", "fmod") or name == "fmod"
            else f"    kept = (double){name}({each});"
        )
    (folder / "functions.c").write_text(
        "\n".join([*lines, "  }", "  (void)kept;", "  return 0;", "}"]), encoding="utf-8"
    )
    checks = SANITIZERS.replace(",float-cast-overflow", "")
    _run(
        [
            "gcc",
            "-std=c99",
            "-O1",
            "-g",
            "-ffreestanding",
            "-fno-builtin",
            f"-fsanitize={checks}",
            "-fno-sanitize-recover=all",
            "functions.c",
            "-o",
            "functions",
        ],
        folder,
    )
    done = subprocess.run(
        ["./functions"], cwd=folder, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
    )
    return "" if done.returncode == 0 else _finding(done.stderr)


def listed(tiny: Path) -> list[Model]:
    """Return the models of the benchmarks, and of MLPerf Tiny in the folder `tiny`."""
    more = [
        Model(
            file.stem,
            str(file),
            shapes={onnx.load(file).graph.input[0].name: [1, *INPUTS[file.stem.partition("-")[0]]]},
        )
        for file in sorted(tiny.glob("*.onnx"))
    ]
    return models() + more


def said(row: dict) -> str:
    """Sum a row up in a line."""
    return (
        f"failed: {row['failed']}" if "failed" in row else row.get("finding") or f"no finding in {row['calls']} calls"
    )


def table(rows: Mapping[Model, dict], count: int, functions: str, head: Iterable[str]) -> str:
    """Return sanitizers.md."""
    findings = sum("finding" in row for row in rows.values())
    lines = [
        "# Sanitizers", "", *head, "",
        f"Libraries of {NARROW} as `passfit optimize` finds them, run on the cases of verification: {len(rows)} of {count} models",
        f"measured, {findings} with a finding.",
        "The C of a library is compiled by gcc with its address and undefined-behaviour sanitizers, and without a warning under",
        "-Wall -Wextra -Wconversion -pedantic; kernels by clang with the address sanitizer's checks. In each call of a kernel only its",
        "operands may be touched, of arena and weights. Undefined behaviour is not checked inside kernels: they are no C.",
        f"The functions of libraries without libm, on special and random numbers: {functions or 'no finding'}.", "",
        "| model | kernels | calls, all cases | finding |", "| --- | ---: | ---: | --- |",
    ]  # fmt: skip
    for model, row in rows.items():
        what = f"failed: {' '.join(row['failed'].split())}" if "failed" in row else row.get("finding", "none")
        lines.append(f"| {model.name} | {row.get('kernels', '')} | {row.get('calls', '')} | {what} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "tiny", nargs="?", type=Path, default=FOLDER, metavar="DIR", help="folder of MLPerf Tiny's ONNX models"
    )
    parser.add_argument("--model", action="append", help="only this one, and print its row; repeatable")
    parser.add_argument("--again", action="store_true", help="run again what is known at this commit")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds until a search is given up (default: 900)")
    parser.add_argument("--table", action="store_true", help="run nothing; write the page of the rows at hand")
    arguments = parser.parse_args()
    if shutil.which("gcc") is None:
        parser.error("gcc is not installed.")
    everything = listed(arguments.tiny)
    if unknown := set(arguments.model or ()) - {model.name for model in everything}:
        parser.error(f"no model '{min(unknown)}': choose from {', '.join(model.name for model in everything)}.")
    chosen = [model for model in everything if not arguments.model or model.name in arguments.model]
    origin, folder = begin("sanitizers")
    if not arguments.table:
        measure_missing(chosen, folder, lambda model: measure(model, arguments.limit), said, arguments.again)
    with tempfile.TemporaryDirectory(prefix="passfit-bench-") as scratch:
        functions = float_functions(Path(scratch))
    text = table(
        rows_of(chosen, folder), len(everything), functions, origin.lines(".venv/bin/python benchmarks/sanitizers.py")
    )
    publish("sanitizers", text, whole=not arguments.model)


if __name__ == "__main__":
    main()
