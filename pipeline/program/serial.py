"""Write and read a program as JSON: small, deterministic, one item per line for diffs."""

from __future__ import annotations

import json
from dataclasses import asdict

from ..errors import ConfigError
from ..support.text_files import decode
from .check import first_problem
from .program import Loop, Program

_HINT = "Compile the model again."
#: defaults that are left out of the file: the offset of a tensor, a step without workspaces, a loop that runs all its trips
_DEFAULTS = (("offset", 0), ("stops", False), ("workspaces", 0))


def program_to_json(program: Program) -> dict:
    """Return the program as plain lists, dicts, strings and numbers; empty values are left out."""
    data = asdict(program)
    for key, items in data.items():
        if isinstance(items, tuple):
            data[key] = [
                {
                    name: value
                    for name, value in item.items()
                    if value not in (None, ()) and (name, value) not in _DEFAULTS
                }
                for item in items
            ]
    for step, written in zip(program.steps, data["steps"], strict=True):
        written.setdefault("reads", ())
        written.setdefault("writes", ())
        if isinstance(step, Loop):
            written["body"] = program_to_json(step.body)
            written.setdefault("windows", ())
    for tensor in data["tensors"]:
        tensor.setdefault("shape", ())
    return data


def program_from_json(data: object, where: str = "the program", hint: str = _HINT) -> Program:
    """Read back `program_to_json`. Raises ConfigError, naming `where`, if `data` is not a well-formed program."""
    program = decode(Program, json.dumps(data), where, hint)
    problem = first_problem(program)
    if problem is not None:
        raise ConfigError(f"'{where}': {problem}.", hint)
    return program
