"""Write and read plan.json: a compiled program and its arena plan, to explain and draw without compiling again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ...errors import ConfigError, PlanError
from ...program.program import Program
from ...program.serial import program_from_json, program_to_json
from ...support.text_files import decode, json_lines, read_text, write_text
from ..placement.plan_arena import ArenaPlan
from ..validation.validate_plan import validate_plan

#: format version; raise it when older readers would misread a newer file
VERSION = 8
#: versions that read as this one; the sixth has no banks, the seventh neither code nor initializers
READABLE = (6, 7, VERSION)
_HINT = "Compile the model again."


@dataclass(frozen=True)
class CodePart:
    """Function of a library with its bytes: a kernel with the ONNX nodes it computes, or one that kernels call."""

    name: str
    nbytes: int
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SavedPlan:
    """Content of plan.json; `alignment` is in bytes.

    `code` are the kernels of the library, largest first; none where nothing was built. `macs` are the multiply-adds of one
    call of each kernel, as far as they were counted.
    """

    program: Program
    plan: ArenaPlan
    alignment: int
    code: tuple[CodePart, ...] = ()
    macs: Mapping[str, int] = field(default_factory=dict)


def write_plan(saved: SavedPlan, path: Path) -> None:
    """Write plan.json, the same bytes for the same plan. Raises OutputError."""
    head = {"version": VERSION, "alignment": saved.alignment, "plan": asdict(saved.plan)}
    code = [asdict(part) for part in saved.code]
    write_text(
        path, json_lines(head | {"code": code, "macs": dict(saved.macs), "program": program_to_json(saved.program)})
    )


def read_plan(path: Path) -> SavedPlan:
    """Read and validate plan.json. Raises ConfigError naming the file and its problem."""
    return parse_plan(read_text(path, _HINT), str(path))


def parse_plan(text: str, path: str) -> SavedPlan:
    """Read and validate the content of plan.json; messages call the file `path`. Raises ConfigError."""
    data = decode(dict, text, path, _HINT)
    if data.get("version") not in READABLE:
        raise ConfigError(f"'{path}' is of version {data.get('version')}, not {VERSION}.", _HINT)
    alignment = data.get("alignment")
    if type(alignment) is not int or alignment < 1:
        raise ConfigError(f"'{path}': alignment is {alignment!r}.", _HINT)
    program = program_from_json(data.get("program"), path, _HINT)
    plan = decode(ArenaPlan, json.dumps(data.get("plan")), path, _HINT)
    try:
        validate_plan(program, plan, alignment)
    except PlanError as error:
        raise ConfigError(f"'{path}' was changed: {error}", _HINT) from error
    code = decode(tuple[CodePart, ...], json.dumps(data.get("code", [])), path, _HINT)
    macs = decode(dict[str, int], json.dumps(data.get("macs", {})), path, _HINT)
    return SavedPlan(program, plan, alignment, code, macs)
