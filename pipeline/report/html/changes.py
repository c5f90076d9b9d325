"""Show the changes since an earlier result."""

from __future__ import annotations

from ...support.sizes import format_bytes
from ..compare import BufferChange, compare
from ..compare.comparison import shown, shown_change
from ..compare.formats import class_rows, sentences
from ..effects_table import signed
from ..fit import nodes_in
from ..results import Result, Results
from .parts import Part, Section, Table, Text

_ROWS = 20


def changes_section(result: Result, results: Results) -> Section:
    """Compare a result with the earlier one."""
    if result.pair not in results.before:
        why = f"{results.since} has no result of it." if results.since else "Git has no other footprint of it."
        return Section("Changes", [Text(why)])
    name, before = results.before[result.pair]
    found = compare(before, result)
    parts: list[Part] = [Text(f"Since {name}:")]
    if found.changed:
        rows = [
            (each.name, shown(each.before, each.unit), shown(each.after, each.unit), shown_change(each))
            for each in found.changed
        ]
        parts.append(Table(("", ">before", ">after", ">change"), rows))
    for title, changes in (("buffer at the peak", found.buffers), ("weight", found.weights)):
        if changes:
            parts.append(
                Table((title, ">before", ">after", ">change", "ONNX nodes"), [_row(each) for each in changes[:_ROWS]])
            )
    if found.classes:
        parts.append(Table(("class", ">before", ">after", ">change"), class_rows(found)[:_ROWS]))
    return Section("Changes", [*parts, *map(Text, sentences(found))])


def _row(change: BufferChange) -> tuple[str, ...]:
    sizes = (format_bytes(each) if each else "–" for each in (change.before, change.after))
    return (change.name, *sizes, signed(change.change), nodes_in(change.nodes) or "–")
