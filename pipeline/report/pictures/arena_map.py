"""Draw the arena over time as SVG: steps to the right, offsets upwards, a rectangle per buffer or part of it.

Buffers alive at the peak are solid, the rest pale. Kernels are called by their step, `k07 conv2d+relu`; tooltips of
steps and buffers tell their whole names. The picture is the same bytes for the same plan.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...memory import ALIGNMENT, ArenaPlan, Lifetime, Parts, lifetimes
from ...memory.liveness import aligned, timeline
from ...program import Program
from ...support.sizes import format_bytes
from ..arena.explain import peak_step
from ..fit import shorten
from ..kernel_names import kernel_label
from .svg import CHARACTER, INK, heading, label, line, picture, swatch, xml

WIDTH, HEIGHT = 1040, 520
LEFT, RIGHT, TOP, BOTTOM = 78, 270, 64, 46
#: entries of the list of the largest buffers, and their distance in pixels
LISTED, ROW = 11, 33
#: left end of that list
LIST = WIDTH - RIGHT + 24
#: width of one bold character of the small text, in pixels
BOLD = 1.12 * CHARACTER
INPUT, OUTPUT = "#4a86c8", "#4f9d69"


@dataclass(frozen=True)
class Scale:
    """Map steps and bytes to pixels."""

    steps: int
    arena: int

    def x(self, step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.steps

    def y(self, offset: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * offset / max(self.arena, 1)


@dataclass(frozen=True)
class Block:
    """Rectangle: a buffer, or a part of it with a lifetime of its own.

    `made_by` is the step that writes the buffer first, None where the caller does.
    """

    number: int
    name: str
    nbytes: int
    offset: int
    life: Lifetime
    colour: str
    dtype: str
    at_peak: bool
    made_by: int | None


def common_scale(*drawn: tuple[Program, ArenaPlan]) -> Scale:
    """Return one scale for all of these, so that they can be compared."""
    return Scale(max(timeline(program) for program, _ in drawn), max(plan.arena for _, plan in drawn))


def arena_svg(
    program: Program, plan: ArenaPlan, title: str, alignment: int = ALIGNMENT, scale: Scale | None = None
) -> str:
    """Draw a plan as SVG text; `alignment` is the plan's, and without `scale` it fills the picture."""
    lives = lifetimes(program)
    peak = peak_step(program, plan, lives, alignment)
    scale = scale or common_scale((program, plan))
    blocks = _blocks(program, plan, peak, alignment)
    largest = sorted((b for b in blocks if b.at_peak), key=lambda b: (-b.nbytes, b.offset, b.number))
    proof = "equal to its bound" if plan.proved else f"bound {format_bytes(plan.bound)}"
    counts = f"{len({b.number for b in blocks})} buffers, {len(program.steps)} kernels"
    said = f"arena {format_bytes(plan.arena)}, {proof}; {counts}"
    shapes = [
        heading(LEFT, 20, title, LIST - LEFT - 12),
        label(LEFT, 36, said),
        *_axes(program, scale),
        *(_rectangle(program, block, scale, alignment) for block in blocks if not block.at_peak),
        *(_rectangle(program, block, scale, alignment) for block in blocks if block.at_peak),
        *_banks(plan, scale),
        *_peak(program, peak, sum(block.nbytes for block in largest), scale),
        *_names(blocks, scale),
        *_list(program, largest),
    ]
    return picture(WIDTH, HEIGHT, f"{title}: {said}", shapes)


def _blocks(program: Program, plan: ArenaPlan, peak: int, alignment: int) -> list[Block]:
    inputs, outputs = program.input_buffers(), program.output_buffers()
    parts = Parts(program, alignment)
    makers = _makers(program)
    blocks: list[Block] = []
    for number, low, size, life in zip(parts.buffers, parts.lowers, parts.sizes, parts.lives, strict=True):
        buffer, offset = program.buffers[number], plan.offsets[number] + low
        nbytes = min(size, buffer.nbytes - low)
        if nbytes <= 0 or life.end <= life.start:
            continue
        before = blocks[-1] if blocks else None
        if before and (before.number, before.offset + before.nbytes, before.life) == (number, offset, life):
            blocks[-1] = replace(before, nbytes=before.nbytes + nbytes)
            continue
        colour = OUTPUT if number in outputs else INPUT if number in inputs else _colour(number)
        at_peak = life.start <= peak < life.end
        blocks.append(Block(number, buffer.name, nbytes, offset, life, colour, program.dtypes[number], at_peak, makers.get(number)))
    return blocks


def _makers(program: Program) -> dict[int, int]:
    """Map each buffer to the step that writes it first; inputs have none."""
    made: dict[int, int] = {}
    for number, step in enumerate(program.steps):
        for buffer in program.buffers_of(step.writes):
            made.setdefault(buffer, number)
    return {buffer: step for buffer, step in made.items() if buffer not in program.input_buffers()}


def _call(program: Program, step: int) -> str:
    return kernel_label(step, program.steps[step].kernel)


def _whole_call(program: Program, step: int) -> str:
    return f"{_call(program, step)} ({program.steps[step].kernel})"


def _colour(number: int) -> str:
    """Pick a hue from orange to red-violet, far from neighbours (golden angle)."""
    hue = (0.80 + 0.38 * (number * 0.6180339887 % 1)) % 1
    red, green, blue = colorsys.hls_to_rgb(hue, 0.60 + 0.08 * (number % 3 - 1), 0.50)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def _rectangle(program: Program, block: Block, scale: Scale, alignment: int) -> str:
    x, right = scale.x(block.life.start), scale.x(block.life.end)
    top, bottom = scale.y(block.offset + aligned(block.nbytes, alignment)), scale.y(block.offset)
    # Outlines of rectangles a few pixels wide would hide their colour.
    outline = 0.5 if min(right - x, bottom - top) > 4 else 0.15
    steps = f"step {block.life.start}" if block.life.end - block.life.start == 1 else (
        f"steps {block.life.start} to {block.life.end - 1}"
    )  # fmt: skip
    tip = f"{block.name}: {f'{block.dtype}, ' if block.dtype else ''}{format_bytes(block.nbytes)} at offset {block.offset}, {steps}"
    if block.made_by is not None:
        tip += f", from {_whole_call(program, block.made_by)}"
    return (
        f'<rect x="{x:.2f}" y="{top:.2f}" width="{right - x:.2f}" height="{bottom - top:.2f}" fill="{block.colour}" '
        f'fill-opacity="{0.95 if block.at_peak else 0.4}" stroke="{INK}" stroke-width="{outline}">'
        f"<title>{xml(tip)}</title></rect>"
    )


def _names(blocks: list[Block], scale: Scale) -> Iterator[str]:
    """Write names inside the rectangles that have room for one."""
    for block in blocks:
        width = scale.x(block.life.end) - scale.x(block.life.start)
        height = scale.y(block.offset) - scale.y(block.offset + block.nbytes)
        room = int((width - 8) / CHARACTER)
        if height < 13 or room < 4:
            continue
        x = scale.x(block.life.start) + 4
        middle = scale.y(block.offset + block.nbytes / 2)
        two = height >= 28 and room >= 8
        shade = 'fill="#111111" pointer-events="none"' if block.at_peak else f'fill="{INK}" pointer-events="none"'
        yield label(x, middle - (2 if two else -4), shorten(block.name, room), shade)
        if two:
            size = format_bytes(block.nbytes)
            typed = f"{size} {block.dtype}"
            yield label(x, middle + 11, typed if len(typed) <= room else size, f'{shade} font-size="10"')


def _axes(program: Program, scale: Scale) -> Iterator[str]:
    bottom, right = scale.y(0), scale.x(scale.steps)
    for offset in _ticks(scale.arena):
        y = scale.y(offset)
        yield line(LEFT, y, right, y, 'stroke-opacity="0.25"')
        yield label(LEFT - 6, y + 4, format_bytes(offset), 'text-anchor="end"')
    every = max(1, round(scale.steps / 12))
    every = next(nice for nice in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10**9) if nice >= every)
    for step in range(0, scale.steps, every):
        tip = _whole_call(program, step) if step < len(program.steps) else ""
        yield label(scale.x(step + 0.5), bottom + 16, str(step), 'text-anchor="middle"', tip)
    yield line(LEFT, bottom, right, bottom)
    yield label((LEFT + right) / 2, bottom + 34, "step", 'text-anchor="middle"')


def _banks(plan: ArenaPlan, scale: Scale) -> Iterator[str]:
    """Draw the end of each bank, below which stands the memory that holds it."""
    end, right = 0, scale.x(scale.steps)
    for bank in plan.banks:
        end += bank.size
        yield line(LEFT, scale.y(end), right, scale.y(end), 'stroke-width="1.5" stroke-dasharray="2 3"')
        yield label(right - 4, scale.y(end) + 12, f"{bank.region}, {format_bytes(bank.size)}", 'text-anchor="end" font-size="10"')


def _ticks(arena: int) -> list[int]:
    """Return four to nine multiples of a power of two within the arena."""
    if arena <= 0:
        return [0]
    step = max(1, 1 << max(0, (arena // 5).bit_length()))
    while arena // step < 4 and step > 1:
        step //= 2
    return list(range(0, arena + 1, step))


def _peak(program: Program, peak: int, alive: int, scale: Scale) -> Iterator[str]:
    x = scale.x(peak + 0.5)
    yield line(x, TOP - 8, x, scale.y(0), 'stroke-width="1.5" stroke-dasharray="5 3"')
    if program.steps:
        left, right = x - 12, LIST - 12 - x
        side, room = ("end", left) if left > right else ("start", right)
        said = f"peak: {_call(program, peak)}, {format_bytes(alive)} alive"
        style = f'text-anchor="{side}" font-weight="bold"'
        yield label(x, TOP - 13, shorten(said, int(room / BOLD)), style, _whole_call(program, peak))


def _list(program: Program, largest: list[Block]) -> Iterator[str]:
    """List the largest buffers at the peak, with size and kernel, below the key."""
    for shift, colour, word in ((0, INPUT, "input"), (62, OUTPUT, "output"), (132, _colour(0), "between")):
        yield swatch(LIST + shift, 20, colour)
        yield label(LIST + shift + 15, 20, word)
    yield label(LIST, TOP - 13, "largest at the peak, and their kernels", 'font-weight="bold"')
    for row, block in enumerate(largest[:LISTED]):
        y = TOP + 10 + ROW * row
        yield swatch(LIST, y, block.colour)
        yield label(LIST + 15, y, shorten(block.name, 23), tip=block.name)
        yield label(WIDTH - 12, y, format_bytes(block.nbytes), 'text-anchor="end"')
        call, whole = ("", "") if block.made_by is None else (_call(program, block.made_by), _whole_call(program, block.made_by))
        said = ", ".join(each for each in (block.dtype, call) if each)
        if said:
            yield label(LIST + 15, y + 13, shorten(said, 32), 'font-size="10"', whole)
    rest = largest[LISTED:]
    if rest:
        y = TOP + 10 + ROW * LISTED
        yield label(LIST + 15, y, f"{len(rest)} more")
        yield label(WIDTH - 12, y, format_bytes(sum(block.nbytes for block in rest)), 'text-anchor="end"')
