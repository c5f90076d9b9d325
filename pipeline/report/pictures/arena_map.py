"""The arena over time as an SVG picture: steps to the right, offsets upwards, a rectangle for each buffer or part of it.

What is alive at the peak is drawn solid, the rest pale. The picture is the same bytes for the same plan.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...memory import ALIGNMENT, ArenaPlan, Lifetime, Parts, lifetimes
from ...memory.liveness import aligned, timeline
from ...program import Program
from ...support.sizes import format_bytes
from ..explain import peak_step
from .svg import CHARACTER, INK, label, line, picture, short, swatch, xml

WIDTH, HEIGHT = 1040, 520
LEFT, RIGHT, TOP, BOTTOM = 78, 270, 64, 46
#: lines of the list of the largest buffers
LISTED = 14
INPUT, OUTPUT = "#4a86c8", "#4f9d69"


@dataclass(frozen=True)
class Scale:
    """From steps and bytes to pixels."""

    steps: int
    arena: int

    def x(self, step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.steps

    def y(self, offset: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * offset / max(self.arena, 1)


@dataclass(frozen=True)
class Block:
    """One rectangle: a buffer at its offset, over its lifetime, or a part of it that has a lifetime of its own."""

    number: int
    name: str
    nbytes: int
    offset: int
    life: Lifetime
    colour: str
    at_peak: bool


def common_scale(*drawn: tuple[Program, ArenaPlan]) -> Scale:
    """A scale on which all of these can be drawn, so that they can be compared."""
    return Scale(max(timeline(program) for program, _ in drawn), max(plan.arena for _, plan in drawn))


def arena_svg(
    program: Program, plan: ArenaPlan, title: str, alignment: int = ALIGNMENT, scale: Scale | None = None
) -> str:
    """The picture as SVG text. `alignment` is the one the plan was made with; without `scale` it fills the picture."""
    lives = lifetimes(program)
    peak = peak_step(program, plan, lives, alignment)
    scale = scale or common_scale((program, plan))
    blocks = _blocks(program, plan, peak, alignment)
    largest = sorted((b for b in blocks if b.at_peak), key=lambda b: (-b.nbytes, b.offset, b.number))
    proof = "equal to its bound" if plan.proved else f"bound {format_bytes(plan.bound)}"
    heading = f"arena {format_bytes(plan.arena)}, {proof}; {len({b.number for b in blocks})} buffers, {len(program.steps)} kernels"
    shapes = [
        label(LEFT, 20, title, 'font-size="15" font-weight="bold"'),
        label(LEFT, 36, heading),
        *_axes(scale),
        *(_rectangle(block, scale, alignment) for block in blocks if not block.at_peak),
        *(_rectangle(block, scale, alignment) for block in blocks if block.at_peak),
        *_peak(program, peak, sum(block.nbytes for block in largest), scale),
        *_names(blocks, scale),
        *_list(largest),
    ]
    return picture(WIDTH, HEIGHT, f"{title}: {heading}", shapes)


def _blocks(program: Program, plan: ArenaPlan, peak: int, alignment: int) -> list[Block]:
    inputs, outputs = program.input_buffers(), program.output_buffers()
    parts = Parts(program, alignment)
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
        blocks.append(Block(number, buffer.name, nbytes, offset, life, colour, life.start <= peak < life.end))
    return blocks


def _colour(number: int) -> str:
    """Neighbouring numbers get hues far apart (golden angle), between orange and red-violet: not blue, not green."""
    hue = (0.80 + 0.38 * (number * 0.6180339887 % 1)) % 1
    red, green, blue = colorsys.hls_to_rgb(hue, 0.60 + 0.08 * (number % 3 - 1), 0.50)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def _rectangle(block: Block, scale: Scale, alignment: int) -> str:
    x, right = scale.x(block.life.start), scale.x(block.life.end)
    top, bottom = scale.y(block.offset + aligned(block.nbytes, alignment)), scale.y(block.offset)
    # Outlines of rectangles a few pixels wide would hide their colour.
    outline = 0.5 if min(right - x, bottom - top) > 4 else 0.15
    steps = f"step {block.life.start}" if block.life.end - block.life.start == 1 else (
        f"steps {block.life.start} to {block.life.end - 1}"
    )  # fmt: skip
    tip = f"{block.name}: {format_bytes(block.nbytes)} at offset {block.offset}, {steps}"
    return (
        f'<rect x="{x:.2f}" y="{top:.2f}" width="{right - x:.2f}" height="{bottom - top:.2f}" fill="{block.colour}" '
        f'fill-opacity="{0.95 if block.at_peak else 0.4}" stroke="{INK}" stroke-width="{outline}">'
        f"<title>{xml(tip)}</title></rect>"
    )


def _names(blocks: list[Block], scale: Scale) -> Iterator[str]:
    """Names inside the rectangles that have room for one."""
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
        yield label(x, middle - (2 if two else -4), short(block.name, room), shade)
        if two:
            yield label(x, middle + 11, format_bytes(block.nbytes), f'{shade} font-size="10"')


def _axes(scale: Scale) -> Iterator[str]:
    bottom, right = scale.y(0), scale.x(scale.steps)
    for offset in _ticks(scale.arena):
        y = scale.y(offset)
        yield line(LEFT, y, right, y, 'stroke-opacity="0.25"')
        yield label(LEFT - 6, y + 4, format_bytes(offset), 'text-anchor="end"')
    every = max(1, round(scale.steps / 12))
    every = next(nice for nice in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10**9) if nice >= every)
    for step in range(0, scale.steps, every):
        yield label(scale.x(step + 0.5), bottom + 16, str(step), 'text-anchor="middle"')
    yield line(LEFT, bottom, right, bottom)
    yield label((LEFT + right) / 2, bottom + 34, "step", 'text-anchor="middle"')


def _ticks(arena: int) -> list[int]:
    """Four to nine round offsets, in powers of two, from 0 to the end of the arena."""
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
        side = "end" if x > (LEFT + scale.x(scale.steps)) / 2 else "start"
        words = f"peak at step {peak}: {short(program.steps[peak].kernel, 48)}, {format_bytes(alive)} alive"
        yield label(x, TOP - 13, words, f'text-anchor="{side}" font-weight="bold"')


def _list(largest: list[Block]) -> Iterator[str]:
    """The key of colours, and the largest buffers alive at the peak with their sizes, to the right of the picture."""
    x = WIDTH - RIGHT + 24
    for shift, colour, word in ((0, INPUT, "input"), (62, OUTPUT, "output"), (132, _colour(0), "between")):
        yield swatch(x + shift, 20, colour)
        yield label(x + shift + 15, 20, word)
    yield label(x, TOP - 13, "largest at the peak", 'font-weight="bold"')
    for row, block in enumerate(largest[:LISTED]):
        y = TOP + 10 + 22 * row
        yield swatch(x, y, block.colour)
        yield label(x + 15, y, short(block.name, 23))
        yield label(WIDTH - 12, y, format_bytes(block.nbytes), 'text-anchor="end"')
    rest = largest[LISTED:]
    if rest:
        y = TOP + 10 + 22 * LISTED
        yield label(x + 15, y, f"{len(rest)} more")
        yield label(WIDTH - 12, y, format_bytes(sum(block.nbytes for block in rest)), 'text-anchor="end"')
