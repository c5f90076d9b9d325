"""Look at the body of a loop as a program of its own, and put it back changed.

    step 3: loop of    step 3.0: conv    step 3.1: relu    step 3.2: loop of    step 3.2.0: …

Steps of bodies are named by paths: the number of the loop, that of the step in its body, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from .free_name import free_name
from .program import Loop, Port, Program, Step

#: step numbers from a program's loop down to one in a body
Path = tuple[int, ...]


def loops_of(program: Program, above: Path = ()) -> Iterator[tuple[Path, Loop]]:
    """Yield the loops of a program with their paths, inner ones first."""
    for number, step in enumerate(program.steps):
        if isinstance(step, Loop):
            yield from loops_of(step.body, (*above, number))
            yield (*above, number), step


def body_of(program: Program, number: int) -> Program | None:
    """Return the body of a loop as a program with the weights of the one around; None for another step.

    It must leave what others use as it is: each of its tensors in the loop's operands and results is both an input and an
    output, and so is a weight that is read outside of it too.
    """
    loop = program.steps[number] if number < len(program.steps) else None
    if not isinstance(loop, Loop):
        return None
    body, others = loop.body, (*program.steps[:number], *program.steps[number + 1 :])
    elsewhere = {
        *_weights_read(program, others),
        *(program.tensors[port.tensor].weight for port in program.outputs),
    } - {None}
    outside = tuple(Port("", window.tensor) for window in loop.windows)
    common = tuple(Port("", tensor) for tensor, each in enumerate(body.tensors) if each.weight in elsewhere)
    return replace(
        body, weights=program.weights, inputs=(*body.inputs, *outside), outputs=(*body.outputs, *outside, *common)
    )


def replace_body(program: Program, number: int, body: Program) -> Program:
    """Replace the body of a loop by one made from `body_of`; tensors have the numbers they had.

    The loop gets a name of its own: workspaces are recognised by names.
    """
    loop = program.steps[number]
    assert isinstance(loop, Loop)
    inputs, outputs = body.inputs[: len(loop.body.inputs)], body.outputs[: len(loop.body.outputs)]
    before, after = program.steps[:number], program.steps[number + 1 :]
    name = free_name(loop.kernel, {step.kernel for step in (*before, *after)})
    changed = replace(loop, kernel=name, body=replace(body, weights=loop.body.weights, inputs=inputs, outputs=outputs))
    return replace(program, weights=body.weights, steps=(*before, changed, *after))


def _weights_read(program: Program, steps: Iterable[Step]) -> Iterator[int | None]:
    """Yield the weights that steps read, in loops too."""
    for step in steps:
        yield from (program.tensors[tensor].weight for tensor in step.reads)
        if isinstance(step, Loop):
            yield from _weights_read(step.body, step.body.steps)
