"""Apply a pass to the body of a loop: `steps=3.0-3.2` are steps 0 to 2 of what step 3 runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ...errors import SequenceError
from ...program.bodies import Path, body_of, replace_body

if TYPE_CHECKING:
    from ...kernels.lower.lower import Lowered
    from ...program import Program

_PATH = r"\d+(?:\.\d+)*"


class StepNumbers(NamedTuple):
    """Numbers of steps in one program: the main one, or the body of the loop at the path `above`."""

    above: Path
    numbers: tuple[int, ...]


def step_numbers(steps: str, separator: str) -> StepNumbers:
    """Read paths of steps joined by `separator`. Raises ValueError for another form, or steps of several programs."""
    if not re.fullmatch(f"{_PATH}({re.escape(separator)}{_PATH})*", steps):
        raise ValueError(f"steps is '{steps}', not numbers, or paths like 3.0 into a loop, joined by {separator}")
    paths = [tuple(map(int, path.split("."))) for path in steps.split(separator)]
    if len({path[:-1] for path in paths}) > 1:
        raise ValueError(f"steps is '{steps}', but a pass takes steps of one program")
    return StepNumbers(paths[0][:-1], tuple(path[-1] for path in paths))


def spell_path(above: Path, number: int) -> str:
    """Return the path of a step of the program at `above`, as a pass takes it."""
    return ".".join(map(str, (*above, number)))


def program_at(program: Program, above: Sequence[int], spec: str) -> Program:
    """Return the program at a path, as `body_of` does. Raises SequenceError, naming the pass, if no loop is there."""
    for number in above:
        body = body_of(program, number)
        if body is None:
            raise SequenceError(
                f"The pass '{spec}' does not fit: step {number} of '{program.name}' is not a loop.", "Search again."
            )
        program = body
    return program


def rearrange_at(program: Program, above: Sequence[int], change: Callable[[Program], Program]) -> Program:
    """Change the program at a path, which `program_at` finds."""
    if not above:
        return change(program)
    body = body_of(program, above[0])
    assert body is not None
    return replace_body(program, above[0], rearrange_at(body, above[1:], change))


def change_at(lowered: Lowered, above: Sequence[int], change: Callable[[Lowered], Lowered]) -> Lowered:
    """Change the program at a path, which `program_at` finds, with its kernels and weights; drop kernels nothing calls."""
    if not above:
        return change(lowered)
    body = body_of(lowered.program, above[0])
    assert body is not None
    changed = change_at(replace(lowered, program=body, last=frozenset()), above[1:], change)
    program = replace_body(lowered.program, above[0], changed.program)
    called = {call.step.kernel for call in program.calls()}
    kernels = {name: kernel for name, kernel in sorted((lowered.kernels | changed.kernels).items()) if name in called}
    rows = {name: each for name, each in (*lowered.rows.items(), *changed.rows.items()) if name in called}
    return replace(lowered, program=program, kernels=kernels, weights=changed.weights, rows=rows)
