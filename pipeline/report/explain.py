"""Why a model needs the ram it needs: what is alive at the peak, where it comes from, and what would lower it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..graph import Program, Step
from ..memory import ALIGNMENT, ArenaPlan, Lifetime, alive_bytes, lifetimes
from ..memory.liveness import aligned, working_set

#: what holds the arena up: the placement, the order of the steps, or one kernel
Lever = Literal["planner", "order", "kernel"]

Role = Literal["input", "output", "result"]


@dataclass(frozen=True)
class Alive:
    """One buffer at the peak. `start` and `end` are its lifetime, half-open in steps; `offset` is in bytes.

    `producer` is the kernel that writes it first and `nodes` that kernel's ONNX nodes: None and empty for an input.
    `needed_by` is the kernel that reads it last, None where the caller does.
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


@dataclass(frozen=True)
class Kernel:
    """One step and the bytes of its working set: the distinct buffers it reads and writes."""

    step: int
    kernel: str
    nodes: tuple[str, ...]
    nbytes: int


@dataclass(frozen=True)
class Explanation:
    """What the arena of one model is made of. Sizes are bytes; `alive` is what is alive at the peak, largest first.

    `peak` is the step at which the highest byte of the arena is in use, `bound_at` the first at which most bytes are
    alive, `floor_at` the step with the largest working set; each None where the program has no steps.
    """

    name: str
    arena: int
    bound: int
    floor: int
    peak: Kernel | None
    bound_at: Kernel | None
    floor_at: Kernel | None
    alive: tuple[Alive, ...]
    alive_bytes: int
    lever: Lever
    advice: str


def explain(program: Program, plan: ArenaPlan, alignment: int = ALIGNMENT) -> Explanation:
    """Explains the arena that `plan` gives `program`; `alignment` is the one it was planned with."""
    lives = lifetimes(program)
    totals = alive_bytes(program, lives, alignment)
    fullest = max(range(len(totals)), key=lambda step: (totals[step], -step))
    peak = peak_step(program, plan, lives, alignment)
    steps = range(len(program.steps))
    sets = [working_set(program, step, alignment) for step in steps]
    widest = max(steps, key=lambda step: (sets[step], -step), default=None)
    lever, advice = _lever(plan)
    alive = [_alive(program, plan, lives, b) for b, life in enumerate(lives) if life.start <= peak < life.end]
    return Explanation(
        name=program.name,
        arena=plan.arena,
        bound=plan.bound,
        floor=plan.floor,
        peak=_kernel(program, peak, alignment),
        bound_at=_kernel(program, fullest, alignment),
        floor_at=None if widest is None else _kernel(program, widest, alignment),
        alive=tuple(sorted(alive, key=lambda buffer: (-buffer.nbytes, buffer.offset, buffer.name))),
        alive_bytes=totals[peak],
        lever=lever,
        advice=advice,
    )


def peak_step(program: Program, plan: ArenaPlan, lives: tuple[Lifetime, ...], alignment: int = ALIGNMENT) -> int:
    """The step with most bytes alive among those at which the arena is used up to its end; the first of equal ones."""
    totals = alive_bytes(program, lives, alignment)
    at_top: set[int] = set()
    for buffer, life, offset in zip(program.buffers, lives, plan.offsets, strict=True):
        if offset + aligned(buffer.nbytes, alignment) == plan.arena:
            at_top.update(range(life.start, life.end))
    return max(at_top or range(len(totals)), key=lambda step: (totals[step], -step))


def _kernel(program: Program, step: int, alignment: int) -> Kernel | None:
    if step >= len(program.steps):
        return None
    call = program.steps[step]
    return Kernel(step, call.kernel, call.nodes, working_set(program, step, alignment))


def _alive(program: Program, plan: ArenaPlan, lives: tuple[Lifetime, ...], number: int) -> Alive:
    buffer, life = program.buffers[number], lives[number]
    is_input, is_output = number in program.input_buffers(), number in program.output_buffers()
    producer: Step | None = None
    if not is_input:
        producer = next((s for s in program.steps if number in program.buffers_of(s.writes)), None)
    readers = [step.kernel for step in program.steps if number in program.buffers_of(step.reads)]
    return Alive(
        name=buffer.name,
        nbytes=buffer.nbytes,
        offset=plan.offsets[number],
        role="output" if is_output else "input" if is_input else "result",
        start=life.start,
        end=life.end,
        producer=producer.kernel if producer else None,
        nodes=producer.nodes if producer else (),
        needed_by=None if is_output or not readers else readers[-1],
    )


def _lever(plan: ArenaPlan) -> tuple[Lever, str]:
    if plan.arena > plan.bound:
        return "planner", (
            "The arena is above its bound: buffers do not fit together without gaps. "
            "A better placement, or any change of sizes or lifetimes, can lower it."
        )
    if plan.bound > plan.floor:
        return "order", (
            "More is alive at once than any kernel works on: running the steps in another order, "
            "or recomputing what waits for long, can lower it."
        )
    return "kernel", (
        "One kernel works on all that is alive: no order and no placement can lower it. "
        "Fusing the kernel with its neighbours, computing in place, or splitting it can."
    )
