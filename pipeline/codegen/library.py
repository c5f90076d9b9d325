"""Write a static C library and its header from program, plan, weights and compiled kernels."""

from __future__ import annotations

import importlib.metadata
import mmap
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OutputError, ToolchainError
from ..program import Guard, Loop, Program, Step
from ..support.temporary_folder import temporary_folder
from ..targets import Target, how_to_run, strip_debug, zig_ar, zig_cc
from .arithmetic import arithmetic_helpers
from .bare.float_functions import calls_float_functions
from .check_loads import why_not_loadable
from .elf import ElfObject, archive_members, read_object, together
from .names import c_identifier, symbol
from .shared import link_shared
from .source.files import keep_sources, write_sources
from .symbols import check_symbols, code_parts, unused_sections, uses_threads, uses_workspace
from .tensor_addresses import TensorAddresses, addresses_in_loop, addresses_on, lost_inputs, lost_outputs, stop_of

if TYPE_CHECKING:
    from ..memory import ArenaPlan
    from ..memory.files.plan_file import CodePart

#: no debug information, no sanitizers (zig's default without -O), no dependence on the folder; position-independent,
#: since many distributions link programs that way
COMPILE_FLAGS = (
    "-std=c11", "-O2", "-g0", "-fno-sanitize=all", "-fPIC", "-fvisibility=hidden", "-ffunction-sections",
    "-fdata-sections", "-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-ffile-prefix-map=.=.",
    "-fno-unwind-tables", "-Wall", "-Wextra", "-Werror",
)  # fmt: skip

#: on a target without an operating system: plain addresses, small code, no call of a C library but memcpy and memset; enums of
#: the size that GCC has there, since its linker compares
_BARE_FLAGS = ("-ffreestanding", "-Os", "-fshort-enums")
#: and no note on the stack, which is not a segment there: GNU's linker misses it in the objects of others
_STACK_NOTE = ".note.GNU-stack"
#: C types of elements that are not integers of whole bytes; compilers differ in those of 16-bit floats
_C_TYPES = {
    "float32": "float", "float64": "double", "float16": "uint16_t", "bfloat16": "uint16_t", "bool": "uint8_t", "int4": "int8_t",
    "uint4": "uint8_t",
}  # fmt: skip


def compile_flags(target: Target) -> tuple[str, ...]:
    """Return the flags of the C compiler for a library's sources."""
    if not target.bare:
        return COMPILE_FLAGS
    return (*(flag for flag in COMPILE_FLAGS if flag not in ("-fPIC", "-O2")), *_BARE_FLAGS)


@dataclass(frozen=True)
class Library:
    """Compiled model: `archive` lib<name>.a, `header` <name>.h, and `shared` lib<name>.so if the host runs it.

    `name` is the C prefix of all its symbols; with more than one of `threads` it needs -lpthread. `code_bytes` is the
    text and read-only data of the archive without the weights, `weight_bytes` the sections of the weights. `regions` are the
    memories, other than the first of their kind, that hold a part of the arena or of the weights, in sections of their names.
    `code` are the kernels with their bytes.
    """

    name: str
    archive: Path
    header: Path
    code_bytes: int
    weight_bytes: int
    shared: Path | None = None
    threads: int = 1
    regions: tuple[str, ...] = ()
    code: tuple[CodePart, ...] = ()


def write_library(
    name: str,
    program: Program,
    plan: ArenaPlan,
    workspace: int,
    weights: Sequence[np.ndarray],
    kernel_objects: Sequence[Path],
    target: Target,
    out: Path,
    timed: bool = False,
    reasons: Mapping[str, tuple[str, ...]] | None = None,
    model_sha256: str = "",
    ports: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    assembly: str = "",
) -> Library:
    """Write lib<identifier>.a and <identifier>.h into the folder `out`, replacing old ones at the end.

    `plan` gives each buffer's offset in the arena. `workspace` is the kernels' scratch in bytes, each allocation rounded
    up to 64, including `Machine.thread_bytes` if kernels have parallel loops. `weights` are the contents of
    program.weights; `kernel_objects` hold each kernel under names.symbol(c_identifier(name), kernel). If the host runs
    the target, lib<identifier>.so is written too. `timed` adds `<identifier>_spent`, the nanoseconds of each step.
    `reasons` are those for which kernels refuse their data, by kernel: see `codegen/checks/`. The header states `model_sha256`,
    the digest of the model's file, and `ports`: `scale`, `zero_point`, `form` in words and `length`, of inputs and outputs by name. With
    `assembly`, that of the kernels, the files of SOURCES that the library has are kept as <identifier>_<file>.

    Raises ModelError if a kernel needs TVM's runtime, ToolchainError if compiling fails or this host cannot load the
    shared library, OutputError if `out` cannot be written.
    """
    kernels = together([read_object(path.read_bytes()) for path in kernel_objects])
    check_symbols(kernels, target)
    addresses = addresses_on(program, plan, target, kernels.read_only_bytes())
    values = library_values(name, program, plan, workspace, addresses, kernels, target, reasons)
    values |= {"timed": timed, "model_sha256": model_sha256, "facts": ports, "lengths": _lengths(program, ports)}
    identifier = values["m"]
    try:
        out.mkdir(parents=True, exist_ok=True)
        with temporary_folder(out, ".passfit-") as built:
            members = _build(built, identifier, values, weights, addresses, kernel_objects, target)
            objects = _objects(built / f"lib{identifier}.a")
            sections = [block.section(identifier) for block in addresses.weight_blocks]
            code_bytes = sum(each.read_only_bytes(sections) for each in objects.values())
            code = code_parts(objects, program, identifier)
            made = [f"lib{identifier}.a", f"{identifier}.h"]
            if how_to_run(target).native:
                made.append(_link_shared(identifier, members, values, built, target))
            if assembly:
                made += keep_sources(built, values, assembly)
            for file in made:
                os.replace(built / file, out / file)
    except OSError as error:
        raise OutputError(f"The library cannot be written to {out}: {error.strerror}.", "Check the folder.") from error
    shared = out / f"lib{identifier}.so" if f"lib{identifier}.so" in made else None
    regions = tuple(block.region for block in (*addresses.arenas, *addresses.weight_blocks) if block.region)
    return Library(
        identifier,
        out / made[0],
        out / made[1],
        code_bytes,
        addresses.weight_bytes,
        shared,
        values["threads"],
        regions,
        code,
    )


def state_stack(library: Library, nbytes: int) -> None:
    """Write the measured bytes of stack into the header of a bare library."""
    macro = f"#define {library.name.upper()}_STACK_BYTES "
    text = library.header.read_text(encoding="utf-8").replace(f"{macro}0 /* not measured: ", f"{macro}{nbytes} /* ")
    library.header.write_text(text, encoding="utf-8")


def library_values(
    name: str,
    program: Program,
    plan: ArenaPlan,
    workspace: int,
    addresses: TensorAddresses,
    kernels: ElfObject,
    target: Target,
    reasons: Mapping[str, tuple[str, ...]] | None = None,
) -> dict:
    """Return the values of the templates' variables."""
    identifier = c_identifier(name)
    refusing = reasons if reasons and target.index_checks == "fail" else {}
    messages = list(dict.fromkeys(filter(None, (_refusal(step, refusing) for _, step, _ in program.calls()))))
    codes = {message: code for code, message in enumerate(messages, 2)}

    def call(step: Step, addresses: TensorAddresses, trip: str) -> dict:
        return {
            **_call(symbol(identifier, step.kernel), step, addresses, trip),
            "steps": [],
            "code": codes.get(_refusal(step, refusing)),
        }

    steps = _steps(program, addresses, call)
    ports = {
        kind: [
            _port(program, port.name, port.tensor, addresses) | {"lost": lost}
            for port, lost in zip(group, losses, strict=True)
        ]
        for kind, group, losses in (
            ("inputs", program.inputs, lost_inputs(program, plan)),
            ("outputs", program.outputs, lost_outputs(program, plan)),
        )
    }
    threads = target.threads if uses_threads(kernels) else 1
    scratch = workspace - (target.machine.thread_bytes if threads > 1 else 0)
    return {
        "model": name, "m": identifier, "M": identifier.upper(), "arena": plan.arena, "alignment": target.alignment,
        "arenas": addresses.arenas, "weight_blocks": [(block, block.section(identifier)) for block in addresses.weight_blocks],
        "workspace": scratch, "uses_workspace": uses_workspace(kernels), "weight_bytes": addresses.weight_bytes,
        "version": importlib.metadata.version("passfit"), "bare": target.bare, "threads": threads,
        "may_fail": uses_workspace(kernels) or threads > 1,
        "index_checks": target.index_checks if reasons else None, "messages": messages,
        "steps": steps, "stops": _any_stops(steps), "kernels": list({step["symbol"]: step for step in _calls_in(steps)}.values()),
        "helpers": arithmetic_helpers(kernels, target), **ports,
        "float_functions": target.bare and calls_float_functions(kernels.undefined),
        "timed": False, "model_sha256": "", "facts": {}, "lengths": [],
    }  # fmt: skip


def _steps(
    program: Program,
    addresses: TensorAddresses,
    call: Callable[[Step, TensorAddresses, str], dict],
    depth: int = 0,
    trips: int = 1,
) -> list[dict]:
    """Return the calls of a program that runs in so many `trips`, and its loops around theirs."""
    found, trip, around = [], f"t{depth}", f"t{depth - 1}"
    for step in program.steps:
        if isinstance(step, Loop):
            inside = _steps(step.body, addresses_in_loop(step, addresses, trip), call, depth + 1, step.trips)
            made = {
                "trip": trip,
                "trips": step.trips,
                "name": step.kernel,
                "steps": inside,
                "stop": stop_of(step, addresses, trip),
            }
        else:
            made = call(step, addresses, around)
        found.append(made | {"guard": guard_condition(step.guard, around, trips)})
    return found


def guard_condition(guard: Guard | None, trip: str, trips: int) -> str:
    """Return the condition under which a trip runs a step; empty if all do."""
    if guard is None:
        return ""
    found = [f"{trip} >= {guard.offset}"] * (guard.offset > 0) + [f"{trip} < {guard.end}"] * (guard.end < trips)
    return " && ".join(found + [f"{_since(guard, trip)} % {guard.period} == 0"] * (guard.period > 1))


def guard_number(guard: Guard, trip: str) -> str:
    """Return the number of the call in a trip that runs it."""
    return f"{_since(guard, trip)} / {guard.period}" if guard.period > 1 else _since(guard, trip).strip("()")


def _since(guard: Guard, trip: str) -> str:
    """Return the trips since the first one that runs a step."""
    return f"({trip} - {guard.offset})" if guard.offset else trip


def _calls_in(steps: Sequence[dict]) -> Iterator[dict]:
    for step in steps:
        yield from _calls_in(step["steps"]) if step["steps"] else (step,)


def _any_stops(steps: Sequence[dict]) -> bool:
    return any(each["stop"] or _any_stops(each["steps"]) for each in steps if each["steps"])


def _call(function: str, step: Step, addresses: TensorAddresses, trip: str) -> dict:
    arguments = [addresses.tensors[tensor] for tensor in (*step.reads, *step.writes)]
    parameters = ["const void *"] * len(step.reads) + ["void *"] * len(step.writes)
    if step.guard is not None and step.guard.numbered:
        arguments.insert(0, guard_number(step.guard, trip))
        parameters.insert(0, "int32_t")
    return {"symbol": function, "arguments": ", ".join(arguments), "parameters": ", ".join(parameters) or "void"}


def _refusal(step: Step, reasons: Mapping[str, tuple[str, ...]]) -> str:
    """Return the message of a step that refuses its data; empty for others."""
    nodes = ", ".join(step.nodes)
    what = " or ".join(reasons.get(step.kernel, ()))
    return f"{what} in {nodes or step.kernel}" if what else ""


def _port(program: Program, name: str, tensor: int, addresses: TensorAddresses) -> dict:
    what, address = program.tensors[tensor], addresses.tensors[tensor]
    c_type = _C_TYPES.get(what.dtype, f"{what.dtype}_t")
    return {
        "name": name, "address": address, "shape": what.shape, "dtype": what.dtype, "nbytes": what.nbytes, "c_type": c_type,
    }  # fmt: skip


def _lengths(program: Program, facts: Mapping[str, Mapping[str, Any]]) -> list[dict]:
    """Return for each output the number of the one that holds its length, or its fixed extent; nothing if all are fixed."""
    numbers = {port.name: number for number, port in enumerate(program.outputs)}
    found = []
    for port in program.outputs:
        length, shape = facts.get(port.name, {}).get("length"), program.tensors[port.tensor].shape or (1,)
        found.append(
            {"axis": 0, "extent": shape[0]}
            if length is None
            else {"axis": length["axis"], "of": numbers[length["output"]]}
        )
    return found if any("of" in each for each in found) else []


def _build(
    folder: Path,
    identifier: str,
    values: dict,
    weights: Sequence[np.ndarray],
    addresses: TensorAddresses,
    kernel_objects: Sequence[Path],
    target: Target,
) -> list[str]:
    """Compile the archive in `folder`; return the names of its members, relative to `folder`."""
    sources = write_sources(folder, values, weights, addresses)
    members = [f"{identifier}_kernels.o"]
    notes = [f"*({_STACK_NOTE})"] if target.bare else []
    parts = [f"kernel{number}.o" for number in range(len(kernel_objects))]
    for path, part in zip(kernel_objects, parts):
        shutil.copyfile(path, folder / part)
    dropped = unused_sections([read_object(path.read_bytes()) for path in kernel_objects])
    unused = (f"{part}({section})" for part, sections in zip(parts, dropped) for section in sections)
    strip_debug(parts, members[0], folder, (*unused, *notes))
    for file in sources:
        member = f"{identifier}_{file.split('.')[0]}.o"
        flags = compile_flags(target) if file.endswith(".c") else ("-g0",)
        tables = (
            target.bare or target.architecture == "arm"
        )  # of clang's, no option leaves out the tables, which call an unwinder
        compiled = f"tables_{member}" if tables else member
        zig_cc([*flags, "-c", file, "-o", compiled], target, folder)
        if tables:
            strip_debug([compiled], member, folder, notes)
        members.append(member)
    zig_ar(f"lib{identifier}.a", members, folder)
    return members


def _link_shared(identifier: str, members: Sequence[str], values: dict, folder: Path, target: Target) -> str:
    """Link the shared library and load it once. Raises ToolchainError if this host cannot load it."""
    shared = link_shared(identifier, members, values["threads"], folder, target, values["timed"])
    reason = why_not_loadable(folder / shared, identifier)
    if reason is not None:
        raise ToolchainError(
            f"{shared} does not load on this machine: {reason}.",
            "Choose an --out on a file system that allows execution; else report this model.",
        )
    return shared


def _objects(archive: Path) -> dict[str, ElfObject]:
    """Read the objects of an archive, by the names of its members."""
    with archive.open("rb") as file:
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))  # weights are not read
    return {name: read_object(body) for name, body in archive_members(content)}
