"""Show `passfit explain` as Rich renderables."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...support.sizes import format_bytes
from ..fit import Name, Nodes, fitted, nodes_in, shorten, table
from ..kernel_names import kernel_label, kernel_number
from ..levers import levers_table
from .explain import Alive, Explanation, Kernel

#: buffers listed; the rest is summed up in one row
ROWS = 12
#: columns beside the sizes, and those of a kernel's name among them
_ROOM, _KERNEL = 80, 28


def explanation_table(explanation: Explanation, wide: bool = False) -> RenderableType:
    """Show sizes with their kernels, the buffers alive at the peak, and the levers.

    Fits 100 columns; with `wide` every name is whole, and every ONNX node and buffer is listed.
    """
    sizes = Table(box=None, show_header=False, pad_edge=False)
    for column in ("left", "right", "left"):
        sizes.add_column(justify=column, no_wrap=column == "right")
    for name, words, kernel in (
        ("arena", "in use to its end by", explanation.peak),
        ("bound", "most alive in", explanation.bound_at),
        ("floor", "largest working set:", explanation.floor_at),
    ):
        sizes.add_row(name, format_bytes(getattr(explanation, name)), Name(_where(words, kernel, wide)))
    sizes.add_row("ports", format_bytes(explanation.ports), "inputs or outputs of the model alone: nothing gets below")
    if explanation.banks:
        banks = (f"{bank.region} {format_bytes(bank.size)}" for bank in explanation.banks)
        sizes.add_row("memories", str(len(explanation.banks)), Name(", ".join(banks)))
    return fitted(
        Group(Name(explanation.name), sizes, Text("")),
        _alive_table(explanation, wide),
        "",
        *([levers_table(explanation.levers.levers)] if explanation.levers else []),
        *explanation.advice,
        *(() if wide else ("Whole names, every buffer and every ONNX node: --wide.",)),
        wide=wide,
    )


def _alive_table(explanation: Explanation, wide: bool) -> Table:
    step = explanation.peak.step if explanation.peak else 0
    title = f"Alive at step {step}: {format_bytes(explanation.live_bytes)}"
    made = table(title, "<buffer", "<dtype", ">size", ">steps", "<from", "<until", "<ONNX nodes")
    made.box, made.pad_edge = SIMPLE_HEAD, False
    rows = len(explanation.alive) if wide else ROWS
    for buffer in explanation.alive[:rows]:
        made.add_row(
            Name(buffer.name),
            Name(buffer.dtype),
            format_bytes(buffer.nbytes),
            f"{buffer.start}–{buffer.end - 1}",
            Name(_origin(buffer, wide)),
            Name(_end(buffer, wide)),
            Nodes(buffer.nodes, wide),
        )
    rest = explanation.alive[rows:]
    if rest:
        made.add_row(f"{len(rest)} more", "", format_bytes(sum(buffer.nbytes for buffer in rest)))
    return made


def _origin(buffer: Alive, wide: bool) -> str:
    if buffer.producer is None:
        return "the caller"
    return ("ring of " if buffer.role == "ring" else "") + _call(buffer.made_at, buffer.producer, wide)


def _end(buffer: Alive, wide: bool) -> str:
    if buffer.needed_by is None:
        return "the caller" if buffer.role == "output" else "nobody"
    return _call(buffer.needed_at, buffer.needed_by, wide) if wide else kernel_number(buffer.needed_at)


def _call(step: int, kernel: str, wide: bool) -> str:
    return f"{kernel_number(step)} {kernel}" if wide else kernel_label(step, kernel)


def _where(words: str, kernel: Kernel | None, wide: bool) -> str:
    if kernel is None:
        return ""
    call = _call(kernel.step, kernel.kernel, wide)
    if wide:
        return f"{words} {call}" + (f" ({', '.join(kernel.nodes)})" if kernel.nodes else "")
    said = f"{words} {shorten(call, _KERNEL)}"
    nodes = nodes_in(kernel.nodes, _ROOM - len(said) - 2)
    return f"{said}: {nodes}" if nodes else said
