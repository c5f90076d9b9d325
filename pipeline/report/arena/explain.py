"""Explain a model's arena: the buffers alive at the peak, their ONNX nodes, and the levers.

arena > bound > floor > ports        the lever lies between the first two of these that differ
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ...memory import ALIGNMENT, ArenaPlan, Bank, Lifetime, lifetimes, live_bytes
from ...memory.liveness import BufferParts, aligned
from ...program import Program
from ...support.sizes import format_bytes
from ..kernel_names import is_region, kernel_label
from ..levers import LeversFound

#: cause of the arena's size: the placement, the order of the steps, one kernel, or the model's inputs or outputs
Lever = Literal["planner", "order", "kernel", "ports"]

#: a ring holds the part of a tensor that a region, steps run as one, keeps between two of its steps
Role = Literal["input", "output", "result", "ring"]


@dataclass(frozen=True)
class Alive:
    """Buffer alive at the peak. `start` and `end` are its lifetime, half-open in steps; `offset` is in bytes.

    `producer` is the kernel that writes it first, `nodes` that kernel's ONNX nodes: None and empty for an input.
    `needed_by` is the kernel that reads it last, None where the caller does. `made_at` and `needed_at` are the steps
    of the two; -1 where there is no kernel.
    """

    name: str
    nbytes: int
    offset: int
    role: Role
    start: int
    end: int
    producer: str | None
    nodes: tuple[str, ...]
    needed_by: str | None
    made_at: int = -1
    needed_at: int = -1
    dtype: str = ""


@dataclass(frozen=True)
class Kernel:
    """Step with its working set in bytes: the distinct buffers it reads and writes.

    `rings` of these bytes are in rings.
    """

    step: int
    kernel: str
    nodes: tuple[str, ...]
    nbytes: int
    rings: int = 0

    @property
    def region(self) -> bool:
        """Return whether it is several steps run as one."""
        return is_region(self.kernel)


@dataclass(frozen=True)
class Explanation:
    """Composition of a model's arena. Sizes are bytes; `alive` holds the buffers alive at the peak, largest first.

    `peak` is the step at which the highest byte of the arena is in use, `bound_at` the first at which most bytes are
    alive, `floor_at` the step with the largest working set; each None where the program has no steps. `ports` is
    the size of the model's inputs alone, or of its outputs, whichever is more: nothing gets below. `levers` are
    those of the search, None where it is not known; `advice` says in sentences what holds the arena up.
    """

    name: str
    arena: int
    bound: int
    floor: int
    ports: int
    peak: Kernel | None
    bound_at: Kernel | None
    floor_at: Kernel | None
    alive: tuple[Alive, ...]
    live_bytes: int
    lever: Lever
    advice: tuple[str, ...]
    levers: LeversFound | None = None
    banks: tuple[Bank, ...] = ()


def explain(
    program: Program, plan: ArenaPlan, alignment: int = ALIGNMENT, levers: LeversFound | None = None
) -> Explanation:
    """Explain the arena of a plan of `program`.

    `alignment` is the plan's; `levers` are those of the search that led to it.
    """
    lives = lifetimes(program)
    parts = BufferParts(program, alignment)
    totals = parts.live_bytes()
    fullest = max(range(len(totals)), key=lambda step: (totals[step], -step))
    peak = peak_step(program, plan, lives, alignment)
    steps = range(len(program.steps))
    sets = parts.working_sets()
    held = _held(program, parts, peak)
    widest = max(steps, key=lambda step: (sets[step], -step), default=None)
    ports = max(_nbytes(program, group, alignment) for group in (program.input_buffers(), program.output_buffers()))
    held_by = None if widest is None else _kernel(program, widest, sets, alignment)
    lever, advice = _lever(plan, ports, held_by)
    alive = [_alive(program, plan, lives, buffer, nbytes) for buffer, nbytes in sorted(held.items())]
    return Explanation(
        name=program.name,
        arena=plan.arena,
        bound=plan.bound,
        floor=plan.floor,
        ports=ports,
        peak=_kernel(program, peak, sets, alignment),
        bound_at=_kernel(program, fullest, sets, alignment),
        floor_at=held_by,
        alive=tuple(sorted(alive, key=lambda buffer: (-buffer.nbytes, buffer.offset, buffer.name))),
        live_bytes=totals[peak],
        lever=lever,
        advice=(advice, *(() if lever == "ports" else _further(levers))),
        levers=levers,
        banks=plan.banks,
    )


def peak_step(program: Program, plan: ArenaPlan, lives: tuple[Lifetime, ...], alignment: int = ALIGNMENT) -> int:
    """Find the peak: of the steps that use the arena to its end, the one with most bytes alive.

    The first of equal ones.
    """
    totals = live_bytes(program, alignment)
    at_top: set[int] = set()
    for buffer, life, offset in zip(program.buffers, lives, plan.offsets, strict=True):
        if offset + aligned(buffer.nbytes, alignment) == plan.arena:
            at_top.update(range(life.start, life.end))
    return max(at_top or range(len(totals)), key=lambda step: (totals[step], -step))


def _held(program: Program, parts: BufferParts, step: int) -> dict[int, int]:
    """Count the bytes of each buffer alive at a step: of all of it, or of some parts."""
    found: dict[int, int] = {}
    for buffer, size, life in zip(parts.buffers, parts.sizes, parts.lives, strict=True):
        if life.start <= step < life.end:
            found[buffer] = min(found.get(buffer, 0) + size, program.buffers[buffer].nbytes)
    return found


def _kernel(program: Program, step: int, sets: Sequence[int], alignment: int) -> Kernel | None:
    if step >= len(program.steps):
        return None
    call = program.steps[step]
    rings = frozenset(buffer for buffer in program.buffers_of(call.writes) if _is_ring(program, buffer))
    return Kernel(step, call.kernel, call.nodes, sets[step], _nbytes(program, rings, alignment))


def role_of(program: Program, buffer: int) -> Role:
    """Classify a tensor: the model's input or output, a ring, or a value between kernels."""
    if buffer in program.output_buffers():
        return "output"
    return "input" if buffer in program.input_buffers() else "ring" if _is_ring(program, buffer) else "result"


def _is_ring(program: Program, buffer: int) -> bool:
    """Return whether only a region writes it, and nobody reads it."""
    if buffer in program.output_buffers() or any(buffer in program.buffers_of(step.reads) for step in program.steps):
        return False
    writers = [step for step in program.steps if buffer in program.buffers_of(step.writes)]
    return bool(writers) and all(is_region(step.kernel) for step in writers)


def _nbytes(program: Program, buffers: frozenset[int], alignment: int) -> int:
    return sum(aligned(program.buffers[buffer].nbytes, alignment) for buffer in buffers)


def _alive(program: Program, plan: ArenaPlan, lives: tuple[Lifetime, ...], number: int, nbytes: int) -> Alive:
    buffer, life = program.buffers[number], lives[number]
    is_input, is_output = number in program.input_buffers(), number in program.output_buffers()
    steps = list(enumerate(program.steps))
    writers = () if is_input else (each for each in steps if number in program.buffers_of(each[1].writes))
    made_at, producer = next(iter(writers), (-1, None))
    readers = () if is_output else [each for each in steps if number in program.buffers_of(each[1].reads)]
    needed_at, reader = readers[-1] if readers else (-1, None)
    return Alive(
        name=buffer.name,
        nbytes=nbytes,
        offset=plan.offsets[number],
        role=role_of(program, number),
        start=life.start,
        end=life.end,
        producer=producer.kernel if producer else None,
        nodes=producer.nodes if producer else (),
        needed_by=reader.kernel if reader else None,
        made_at=made_at,
        needed_at=needed_at,
        dtype=program.dtypes[number],
    )


def _lever(plan: ArenaPlan, ports: int, held_by: Kernel | None) -> tuple[Lever, str]:
    if plan.arena > plan.bound:
        across = ", nor across memories" * (len(plan.banks) > 1)
        return "planner", (
            f"The arena is {format_bytes(plan.arena - plan.bound)} above its bound: buffers do not fit together without gaps{across}."
        )
    if plan.arena <= ports:
        return "ports", (
            f"The inputs or the outputs of the model alone take {format_bytes(ports)}: nothing can lower it."
        )
    if plan.bound > plan.floor:
        return "order", (
            f"{format_bytes(plan.bound - plan.floor)} more are alive at once than any kernel works on: they wait for later ones, "
            "in the best order that was found."
        )
    if held_by is not None and held_by.region:
        called = kernel_label(held_by.step, held_by.kernel)
        return "kernel", (
            f"The peak is in {called}, layers that run together row by row: {format_bytes(held_by.rings)} are rows kept "
            f"from one to the next, {format_bytes(held_by.nbytes - held_by.rings)} are what goes in and comes out. "
            "No order and no placement lowers it."
        )
    return "kernel", "One kernel works on all that is alive: no order and no placement lowers it."


def _further(levers: LeversFound | None) -> Iterator[str]:
    """Yield why the search tried no more, if it did not."""
    if levers is None:
        yield "What splits would give is not known: there is no search.json of the search that led here."
    elif levers.next:
        yield f"More extra compute was not tried: {levers.next}."
