"""Check the planned bodies of a program's loops: each plan by itself, and all arrays in the workspace of their kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ...errors import PlanError
from ...program import Program
from ..placement.kept_body import BodyArray, KeptBody
from ..placement.plan_body import dtypes_of, only_dtype
from .validate_plan import validate_plan


def validate_bodies(program: Program, bodies: Sequence[KeptBody]) -> None:
    """Check the bodies of the loops of `program`. Raises PlanError naming the kernel and its array.

    The rules: the program runs the kernel; a body runs at least once; values of each dtype have one array, with a valid
    plan; an array of a loop inside is the buffer of the body around it; all others lie apart in the workspace.
    """
    for kernel, group in groupby(sorted(bodies, key=lambda body: body.kernel), key=lambda body: body.kernel):
        rooms = [_room(program, step.writes[-1] if step.workspace else None) for step in program.steps if step.kernel == kernel]
        if not rooms:
            raise PlanError(f"The program of '{program.name}' runs no kernel '{kernel}', which has a planned body.")
        _check_kernel(list(group), min(rooms))


def _room(program: Program, workspace: int | None) -> int:
    return 0 if workspace is None else program.tensors[workspace].nbytes


def _check_kernel(bodies: Sequence[KeptBody], room: int) -> None:
    for body in bodies:
        _check_body(body)
    arrays = [(body, array) for body in bodies for array in body.arrays]
    names = [array.name for _, array in arrays]
    if len(set(names)) < len(names):
        raise PlanError(f"Two arrays of kernel '{bodies[0].kernel}' have one name: {', '.join(names)}.")
    outer = []
    for body, array in arrays:
        around = [(other, number) for other in bodies for number, buffer in enumerate(other.program.buffers) if buffer.name == array.name]
        if around:
            _check_inside(body, array, *around[0])
        elif array.offset is not None:
            outer.append(array)
    _check_apart(bodies[0].kernel, outer, room)


def _check_body(body: KeptBody) -> None:
    if body.trips < 1 or body.alignment < 1:
        raise PlanError(f"The body of '{body.kernel}' has {body.trips} iterations, and an alignment of {body.alignment}.")
    dtypes = [array.dtype for array in body.arrays]
    if sorted(dtypes) != dtypes_of(body.program):
        raise PlanError(f"The body of '{body.kernel}' has arrays of {dtypes} for values of {dtypes_of(body.program)}.")
    for array in body.arrays:
        validate_plan(only_dtype(body.program, array.dtype), array.plan, body.alignment)


def _check_inside(body: KeptBody, array: BodyArray, around: KeptBody, number: int) -> None:
    outer = next(each for each in around.arrays if each.dtype == array.dtype)
    place = None if outer.offset is None else outer.offset + outer.plan.offsets[number]
    if around is body or place != array.offset or around.program.buffers[number].nbytes != array.plan.arena:
        raise PlanError(
            f"'{array.name}' of {array.plan.arena} bytes at {array.offset} is not the buffer of "
            f"{around.program.buffers[number].nbytes} bytes at {place} of the body around it, in kernel '{body.kernel}'."
        )


def _check_apart(kernel: str, arrays: Iterable[BodyArray], room: int) -> None:
    end, last = 0, "the start of the workspace"
    for array in sorted(arrays, key=lambda each: (each.offset or 0, each.name)):
        start = array.offset or 0
        if start < end:
            raise PlanError(f"'{array.name}' of kernel '{kernel}' at {start} shares memory with {last}, which ends at {end}.")
        end, last = start + array.plan.arena, f"'{array.name}'"
    if end > room:
        raise PlanError(f"{last} of kernel '{kernel}' ends at {end}, outside its workspace of {room} bytes.")
