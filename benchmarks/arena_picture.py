"""Draw docs/arena.svg: the memory of a run of the demo's library, below that of TVM's default.

    .venv/bin/python benchmarks/arena_picture.py                 of this repo's results: `make demo` makes them
    .venv/bin/python benchmarks/arena_picture.py --model ocr-cls --target x86-64 --out FILE

A byte is as high in one panel as in the other. Places along a run are shares of the width, so that the picture fits a page
of any width with letters of one size; it has its own paper, light or dark as the reader likes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, pairwise
from pathlib import Path

from passfit.artifacts.places import canonical_model
from passfit.artifacts.read_results import read_pair
from passfit.frontend.imported_model import load, port_names
from passfit.memory import lifetimes
from passfit.memory.liveness import aligned
from passfit.params.params import load_params
from passfit.program import Loop, Program
from passfit.report.arena.blocks import blocks_of
from passfit.report.results import Result
from passfit.search.evaluate.tvm_default import default_plan
from passfit.support.sizes import format_bytes
from passfit.targets import Target, load_catalogue
from passfit.tir.workspace import workspace_bytes

ROOT = Path(__file__).parents[1]
#: pixels of the higher panel, of a line of text, and of the lowest band that its size is written into
HIGH, LINE, WRITTEN = 240, 19, 22
#: a limit further away than so many times the larger sum is said in words alone
FAR = 2
#: share of the width that is left free on each side
MARGIN = 3
#: kinds of areas with their words in the legend, and where these begin
LEGEND = (("tensor", "tensors", 0), ("workspace", "workspace", 84), ("held", "reserved, unused", 184))
_STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink) }
.head { font-weight: 600; font-size: 14px }
.small { fill: var(--faint); font-size: 12px }
.inside { paint-order: stroke; stroke: var(--held); stroke-width: 3px; stroke-linejoin: round }
.over { fill: var(--limit) }
.inside.over { stroke: var(--paper) }
.fits { fill: var(--fits) }
.paper { fill: var(--paper); stroke: var(--line) }
.held { fill: var(--held) }
.tensor { fill: var(--tensor) }
.workspace { fill: var(--workspace) }
.plot rect { stroke: var(--paper); stroke-width: .7 }
.budget { stroke: var(--limit); stroke-width: 1.5; stroke-dasharray: 6 4 }
svg { --paper: #ffffff; --ink: #1f2328; --faint: #59636e; --line: #d1d9e0; --held: #e6eaef }
svg { --tensor: #4a90d0; --workspace: #e0963c; --limit: #c8321f; --fits: #157f3b }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1; --line: #3d444d; --held: #272d36 }
  svg { --tensor: #3f87c9; --workspace: #c98231; --limit: #ff7b6b; --fits: #4ac26b }
}"""


@dataclass(frozen=True)
class Area:
    """Rectangle over columns [start, end) and bytes [low, high) of a kind, which is its class in the style."""

    start: int
    end: int
    low: int
    high: int
    kind: str


@dataclass(frozen=True)
class Panel:
    """Memory of a run: `areas` over `columns`; what is reserved all the time, in blocks with their bytes and names."""

    title: str
    ram: int
    columns: int
    areas: Sequence[Area]
    blocks: Sequence[tuple[int, str]]
    caption: str


def main() -> None:
    """Read the results and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="wake-word")
    parser.add_argument("--target", default="rpi4")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "arena.svg")
    args = parser.parse_args()
    repo, device = Path(), load_catalogue(Path())[args.target]
    result = read_pair(repo, load_params(repo / "params.yaml"), device, args.model)
    if result is None:
        raise SystemExit(f"There is no result of {args.model} on {args.target}: run `make demo`.")
    args.out.write_text(picture(result, repo / canonical_model(args.model), device), encoding="utf-8")


def picture(result: Result, model: Path, device: Target) -> str:
    """Return the picture of a result; `model` is its canonical file."""
    return draw(default_panel(result, model, device), library_panel(result, device), result, device)


def default_panel(result: Result, model: Path, device: Target) -> Panel:
    """Stack inputs and storages of TVM's plan in the order they are allocated, and the workspace above them."""
    imported = load(model, result.footprint.model)
    lowered, storages = default_plan(imported.graph, *port_names(imported.onnx))
    program, lives = lowered.program, lifetimes(lowered.program)
    blocks, areas, low = [], [], 0
    stored = [(program.buffers[each].nbytes, [each]) for each in program.input_buffers()]
    for size, buffers in stored + [(each.nbytes, [*_written(program, each.steps)]) for each in storages]:
        areas += [Area(lives[b].start, lives[b].end, low, low + program.buffers[b].nbytes, "tensor") for b in buffers]
        blocks.append((aligned(size, device.alignment), "storage"))
        low += blocks[-1][0]
    needs = [workspace_bytes(lowered.kernels[step.kernel]) for step in program.steps]
    areas += [Area(n, n + 1, low, low + need, "workspace") for n, need in enumerate(needs) if need]
    blocks += [(max(needs), "workspace"), *_weights(program.weight_bytes, device)]
    steps = len(program.steps)
    return Panel(
        "TVM's default", sum(size for size, _ in blocks), steps, areas, blocks, f"{steps} kernels, one after another"
    )


def library_panel(result: Result, device: Target) -> Panel:
    """Show the buffers of the library's arena; a loop is as wide as the kernels in it."""
    program, plan, alignment = result.saved.program, result.saved.plan, result.saved.alignment
    loops = [step for step in program.steps if isinstance(step, Loop)]
    inner = [_kernels(step) if step in loops else 1 for step in program.steps]
    at = list(accumulate(inner, initial=0))
    areas = [
        Area(at[each.start], at[each.end], each.offset, each.top, "workspace" if each.role == "ring" else "tensor")
        for each in blocks_of(program, plan, alignment)
    ]
    best = result.footprint.best
    weights = _weights(best.weights, device)
    rest = best.ram - best.arena - sum(size for size, _ in weights)
    blocks = [(best.arena, "arena"), (rest, "workspace and stack"), *weights]
    areas.append(Area(0, at[-1], best.arena, best.arena + rest, "workspace"))
    caption = f"{at[-1]} kernels"
    if loops:
        trips = f"a loop of {loops[0].trips} trips" if len(loops) == 1 else f"{len(loops)} loops"
        caption += f", {sum(map(_kernels, loops))} of them in {trips}"
    return Panel("passfit", best.ram, at[-1], areas, blocks, caption)


def draw(above: Panel, below: Panel, result: Result, device: Target) -> str:
    """Write both panels on one scale, with the budget in each."""
    limit = result.footprint.budget.ram or device.ram
    most = max(above.ram, below.ram)
    scale, drawn = HIGH / most, limit if limit <= FAR * most else None
    title = f"Ram of {result.footprint.model} over a run on {device.name}"
    parts, top = [_text(LINE + 4, title, "head"), *_legend(2 * LINE + 4)], 3.0 * LINE
    for panel in (above, below):
        height = panel.ram * scale
        if panel is below and drawn is not None:
            height = max(height, drawn * scale) + LINE + 4  # room for its words
        parts += _panel(panel, top + LINE, height, scale, limit)
        top += height + 2 * LINE + 16
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{top:.0f}" role="img">',
        f"<title>{escape(title)}: {format_bytes(below.ram)} where TVM's default takes {format_bytes(above.ram)}</title>",
        f"<style>{_STYLE}</style>",
        '<rect class="paper" width="100%" height="100%" rx="8"/>',
        *parts,
        "</svg>\n",
    ])  # fmt: skip


def _panel(panel: Panel, top: float, height: float, scale: float, limit: int) -> Iterator[str]:
    """Draw a panel whose plot begins below `top`."""
    over = panel.ram > limit
    verdict = "does not fit" if over else f"fits, {format_bytes(limit - panel.ram)} left"
    yield _text(top, f"{panel.title}: {format_bytes(panel.ram)}", "head")
    yield _text(top, verdict, "head over" if over else "head fits", end=True)
    yield f'<svg class="plot" x="{MARGIN}%" y="{top + 8:.1f}" width="{100 - 2 * MARGIN}%" height="{height:.1f}">'
    ends = list(accumulate((nbytes for nbytes, _ in panel.blocks), initial=0))
    areas = [Area(0, panel.columns, low, high, "held") for low, high in pairwise(ends)]
    for area in [*areas, *panel.areas]:
        x, width = (100 * each / panel.columns for each in (area.start, area.end - area.start))
        y, high = height - area.high * scale, (area.high - area.low) * scale
        yield f'<rect class="{area.kind}" x="{x:.2f}%" width="{width:.2f}%" y="{y:.1f}" height="{high:.1f}"/>'
    line = height - limit * scale
    for low, (nbytes, name) in zip(ends, panel.blocks):
        y = height - (low + nbytes / 2) * scale + 4
        if nbytes * scale >= WRITTEN and abs(y - line + 5) >= LINE - 6:  # beside the words of the budget
            yield f'<text class="small inside" x="100%" dx="-6" y="{y:.1f}" text-anchor="end">{name} {format_bytes(nbytes)}</text>'
    if line >= 0:
        yield f'<line class="budget" x2="100%" y1="{line:.1f}" y2="{line:.1f}"/>'
        yield f'<text class="small inside over" x="100%" dx="-6" y="{line - 5:.1f}" text-anchor="end">budget {format_bytes(limit)}</text>'
    yield "</svg>"
    yield _text(top + height + LINE + 4, panel.caption, "small")


def _text(y: float, words: str, kind: str, end: bool = False) -> str:
    """Write a line at the left margin, or before the right one."""
    place = f'x="{100 - MARGIN}%" text-anchor="end"' if end else f'x="{MARGIN}%"'
    return f'<text class="{kind}" {place} y="{y:.1f}">{escape(words)}</text>'


def _legend(y: int) -> Iterator[str]:
    """Name the kinds of areas."""
    yield f'<svg x="{MARGIN}%" overflow="visible">'
    for kind, words, x in LEGEND:
        yield f'<rect class="{kind}" x="{x}" y="{y - 10}" width="11" height="11" rx="2"/><text class="small" x="{x + 16}" y="{y}">{words}</text>'
    yield "</svg>"


def _weights(nbytes: int, device: Target) -> list[tuple[int, str]]:
    """Build the block of weights copied to ram; None on devices that read them in place."""
    return [] if device.weights == "in-place" else [(nbytes, "weights")]


def _kernels(loop: Loop) -> int:
    """Count the kernels of a loop that compute something of the model, and do not just move rows."""
    return sum(bool(each.nodes) for each in loop.body.steps) or 1


def _written(program: Program, steps: Sequence[int]) -> Iterator[int]:
    """Yield the buffers that these steps write."""
    for step in steps:
        yield from program.buffers_of(program.steps[step].writes)


if __name__ == "__main__":
    main()
