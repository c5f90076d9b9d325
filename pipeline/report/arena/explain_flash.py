"""Explain flash: the bytes of each initializer of the ONNX file, and those of each kernel's code.

weights 16.2 KiB: conv2.weight 13.5 KiB, conv1.weight 1.7 KiB, … alignment 64 B
code     6.6 KiB: fused_conv2d1_relu1_rows 3.5 KiB (conv2, relu2), … the rest 437 B
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from ...memory.files.plan_file import CodePart, SavedPlan
from ...memory.footprint import Footprint
from ...program.weight_readers import nodes_of_weights
from ...support.sizes import format_bytes
from ..fit import Name, Nodes, fitted, nodes_in, shorten, table

#: rows listed; the others are summed up in one
ROWS = 12
#: the bytes between weights, each at a multiple of 64
ALIGNMENT = "alignment to 64 bytes"
#: read-only data, functions of the header, padding; of an image also start-up, less what the linker leaves out
REST = "constants, other functions, alignment"


@dataclass(frozen=True)
class WeightPart:
    """Bytes stored for an initializer, or for several that one weight comes from.

    Without `initializers`, it was made on the way; `name` tells for which node. `nodes` read it, `stored` counts its weights.
    """

    name: str
    initializers: tuple[str, ...]
    nbytes: int
    dtypes: tuple[str, ...]
    nodes: tuple[str, ...]
    stored: int

    @property
    def title(self) -> str:
        """Name the first initializer, and count the others."""
        more = len(self.initializers) - 1
        return self.name + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class FlashExplained:
    """Parts of flash in bytes, largest first: `weights` and `alignment` add up to the footprint's weights.

    `code` and `rest` add up to its code; `rest` is None, and `code` empty, for a plan that does not tell its code.
    """

    weights: tuple[WeightPart, ...]
    alignment: int
    code: tuple[CodePart, ...]
    rest: int | None


def explain_flash(saved: SavedPlan, best: Footprint | None) -> FlashExplained:
    """Explain the flash of a library by its plan and its footprint `best`, None if that is not known."""
    program = saved.program
    nodes = nodes_of_weights(program)
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, weight in enumerate(program.weights):
        groups.setdefault(weight.initializers or (weight.name,), []).append(number)
    dtypes: dict[int | None, set[str]] = {}
    for tensor in program.tensors:
        dtypes.setdefault(tensor.weight, set()).add(tensor.dtype)
    parts = [
        WeightPart(
            program.weights[numbers[0]].name,
            program.weights[numbers[0]].initializers,
            sum(program.weights[number].nbytes for number in numbers),
            tuple(sorted(set().union(*(dtypes.get(number, ()) for number in numbers)))),
            tuple(dict.fromkeys(node for number in numbers for node in nodes.get(number, ()))),
            len(numbers),
        )
        for numbers in groups.values()
    ]
    return FlashExplained(
        weights=tuple(sorted(parts, key=lambda part: (-part.nbytes, part.name))),
        alignment=program.weight_bytes - sum(weight.nbytes for weight in program.weights),
        code=saved.code,
        rest=best.code - sum(part.nbytes for part in saved.code) if best is not None and saved.code else None,
    )


def flash_tables(flash: FlashExplained, wide: bool = False) -> RenderableType:
    """Show weights by initializer and code by kernel; with `wide` all rows, with whole names."""
    tables = [_weights_table(flash, wide)] if flash.weights else []
    if flash.code:
        tables.append(_code_table(flash, wide))
    unknown = "Code by kernel is not known: plan.json is of an earlier passfit. Compile the model again."
    return fitted(*tables, *(() if flash.code else (unknown,)), wide=wide)


def largest(flash: FlashExplained, count: int, room: int) -> list[str]:
    """Name the largest parts of flash, weights and code together, each in at most `room` columns beside its nodes."""
    named: list[tuple[int, str, tuple[str, ...]]] = [(part.nbytes, part.title, ()) for part in flash.weights]
    named += [(part.nbytes, f"the code of {part.name}", part.nodes) for part in flash.code]
    return [
        f"{shorten(name, room)} {format_bytes(nbytes)}" + (f" ({nodes_in(nodes, room)})" if nodes else "")
        for nbytes, name, nodes in sorted(named, key=lambda part: (-part[0], part[1]))[:count]
    ]


def _weights_table(flash: FlashExplained, wide: bool) -> Table:
    total = sum(part.nbytes for part in flash.weights) + flash.alignment
    made = table(f"Weights by initializer: {format_bytes(total)}", "<initializer", "<dtype", ">size", "<ONNX nodes")
    made.box, made.pad_edge = SIMPLE_HEAD, False
    shown = flash.weights if wide else flash.weights[:ROWS]
    for part in shown:
        title = ", ".join(part.initializers) or part.name if wide else part.title
        made.add_row(Name(title), "/".join(part.dtypes), format_bytes(part.nbytes), Nodes(part.nodes, wide))
    _add_rest(made, [part.nbytes for part in flash.weights[len(shown) :]], ALIGNMENT, flash.alignment, "")
    return made


def _code_table(flash: FlashExplained, wide: bool) -> Table:
    total = sum(part.nbytes for part in flash.code) + (flash.rest or 0)
    made = table(f"Code by kernel: {format_bytes(total)}", "<kernel", ">size", "<ONNX nodes")
    made.box, made.pad_edge = SIMPLE_HEAD, False
    shown = flash.code if wide else flash.code[:ROWS]
    for part in shown:
        made.add_row(Name(part.name), format_bytes(part.nbytes), Nodes(part.nodes, wide))
    _add_rest(made, [part.nbytes for part in flash.code[len(shown) :]], REST, flash.rest)
    return made


def _add_rest(made: Table, more: Sequence[int], name: str, rest: int | None, *cells: str) -> None:
    """Add a row for the parts that are not listed, and one for the `rest`."""
    if more:
        made.add_row(f"{len(more)} more", *cells, format_bytes(sum(more)))
    if rest:
        made.add_row(name, *cells, format_bytes(rest))
