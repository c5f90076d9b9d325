"""What `passfit explain` shows, as Rich renderables."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..support.sizes import format_bytes
from .explain import Alive, Explanation, Kernel
from .levers import levers_table

#: buffers listed; the rest is summed up in one row
ROWS = 12


def explanation_table(explanation: Explanation) -> RenderableType:
    """The sizes, the kernels behind them, the buffers alive at the peak, what lowered it and what would."""
    sizes = Table(box=None, show_header=False, pad_edge=False)
    sizes.add_row("arena", format_bytes(explanation.arena), _where("in use to its end at", explanation.peak))
    sizes.add_row("bound", format_bytes(explanation.bound), _where("most alive at", explanation.bound_at))
    sizes.add_row("floor", format_bytes(explanation.floor), _where("largest working set:", explanation.floor_at))
    sizes.add_row("ports", format_bytes(explanation.ports), "inputs or outputs of the model alone: nothing gets below")
    sizes.columns[1].justify = "right"
    return Group(
        Text(explanation.name, style="bold"),
        sizes,
        Text(""),
        _alive_table(explanation),
        Text(""),
        *([levers_table(explanation.levers.levers)] if explanation.levers else []),
        *map(Text, explanation.advice),
    )


def _alive_table(explanation: Explanation) -> Table:
    step = explanation.peak.step if explanation.peak else 0
    table = Table(title=f"Alive at step {step}: {format_bytes(explanation.alive_bytes)}", title_justify="left")
    table.add_column("buffer")
    table.add_column("size", justify="right")
    table.add_column("steps", justify="right")
    table.add_column("from")
    table.add_column("until")
    table.add_column("ONNX nodes")
    for buffer in explanation.alive[:ROWS]:
        table.add_row(*map(escape, _row(buffer)))
    rest = explanation.alive[ROWS:]
    if rest:
        table.add_row(f"{len(rest)} more", format_bytes(sum(buffer.nbytes for buffer in rest)), "", "", "", "")
    return table


def _row(buffer: Alive) -> tuple[str, ...]:
    return (
        buffer.name,
        format_bytes(buffer.nbytes),
        f"{buffer.start}–{buffer.end - 1}",
        f"ring of {buffer.producer}" if buffer.role == "ring" else buffer.producer or "the caller",
        buffer.needed_by or ("the caller" if buffer.role == "output" else "nobody"),
        ", ".join(buffer.nodes),
    )


def _where(words: str, kernel: Kernel | None) -> str:
    if kernel is None:
        return ""
    return escape(f"{words} step {kernel.step}, {kernel.kernel}{_ends(kernel.nodes)}")


def _ends(nodes: tuple[str, ...]) -> str:
    """The nodes, or the first and the last of more than two."""
    if len(nodes) > 2:
        return f" ({nodes[0]} … {nodes[-1]}, {len(nodes)} nodes)"
    return f" ({', '.join(nodes)})" if nodes else ""
