"""Write a comparison as a table for people, as Markdown, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import RenderableType

from ...support.sizes import format_bytes
from ..accuracy_table import score_text
from ..effects_table import signed
from ..fit import Name, Nodes, fitted, nodes_in, shorten, table
from ..markdown import escaped
from .comparison import BufferChange, Comparison, shown, shown_change

#: buffers and weights listed; JSON has them all
ROWS = 8
#: characters of a name in a sentence, and in a comment
_ROOM = 60


def compare_table(found: Comparison, before: str, after: str) -> RenderableType:
    """Show a comparison; `before` and `after` name the two results."""
    made = table(f"{found.model} @ {found.target}: {before} → {after}", "<", ">before", ">after", ">change")
    for each in found.figures:
        made.add_row(each.name, shown(each.before, each.unit), shown(each.after, each.unit), shown_change(each))
    tables = [made, *_buffers("at the peak", found.buffers), *_buffers("weights", found.weights, False)]
    if found.classes:
        tables.append(table("", "<class", ">before", ">after", ">change"))
        for name, *cells in class_rows(found)[:ROWS]:
            tables[-1].add_row(Name(name), *cells)
    return fitted(*tables, *sentences(found))


def class_rows(found: Comparison) -> list[tuple[str, ...]]:
    """Return the classes that moved, the largest loss first: name, shares of right decisions before and after, change."""
    return [(name, score_text(one), score_text(two), f"{two - one:+.4g}") for name, one, two in found.classes]


def sentences(found: Comparison) -> list[str]:
    """List other differences, and levers for the arena."""
    lines = [f"the result before is another's: {found.earlier}"] if found.earlier else []
    lines += ["nothing differs"] if found.same else []
    if found.dropped or found.added:
        specs = [*(f"− {spec}" for spec in found.dropped), *(f"+ {spec}" for spec in found.added)]
        lines.append(f"sequence: {'; '.join(specs)}")
    if found.reordered:
        lines.append("sequence: the same passes in another order")
    if found.peaks[0] != found.peaks[1] and all(found.peaks):
        lines.append(f"the peak moved from {found.peaks[0]} to {found.peaks[1]}")
    lines += [f"not compared: {each}" for each in found.unknown]
    return lines + (list(found.advice) if found.buffers else [])


def because(found: Comparison) -> str:
    """Name the cause of a growth of the arena in one phrase, with its ONNX nodes; empty if no buffer grew."""
    if not found.grown:
        return ""
    most = found.grown[0]
    new = "new at the peak" if not most.before else f"{format_bytes(most.before)} before"
    more = f"; {len(found.grown) - 1} more grew" if len(found.grown) > 1 else ""
    return f"{shorten(most.name, _ROOM)} takes {format_bytes(most.change)} more at the peak ({new}), {_made_by(most)}{more}"


def _made_by(change: BufferChange) -> str:
    if not change.kernel:
        return "an input"
    return f"made by {shorten(change.kernel, _ROOM)}" + (f" of {nodes_in(change.nodes, _ROOM)}" if change.nodes else "")


def markdown(found: Comparison, before: str, after: str) -> str:
    """Write a comparison as Markdown: a line for each figure that differs, and the buffers behind them."""
    lines = [f"### {escaped(found.model)} @ {escaped(found.target)}: {escaped(before)} → {escaped(after)}", ""]
    if found.changed:
        lines += ["| | before | after | change |", "| --- | ---: | ---: | ---: |"]
        for each in found.changed:
            lines.append(
                f"| {each.name} | {shown(each.before, each.unit)} | {shown(each.after, each.unit)} | {shown_change(each)} |"
            )
        lines.append("")
    for title, changes in (("buffer at the peak", found.buffers), ("weight", found.weights)):
        lines += _markdown_buffers(title, changes)
    if found.classes:
        lines += ["| class | before | after | change |", "| --- | ---: | ---: | ---: |"]
        lines += [f"| {escaped(name)} | {' | '.join(cells)} |" for name, *cells in class_rows(found)[:ROWS]]
        lines += [f"| {len(found.classes) - ROWS} more | | | |"] if len(found.classes) > ROWS else []
        lines.append("")
    return "\n".join([*lines, *(f"- {escaped(each)}" for each in sentences(found))]).rstrip() + "\n"


def as_json(found: Comparison, before: str, after: str) -> dict:
    """Return a comparison as plain data, sizes in bytes."""
    return {"before": before, "after": after, **asdict(found), "same": found.same}


def _buffers(title: str, changes: Sequence[BufferChange], made: bool = True) -> Iterator[RenderableType]:
    if not changes:
        return
    shown_table = table("", f"<{title}", ">before", ">after", ">change", *(["<ONNX nodes"] if made else []))
    for each in changes[:ROWS]:
        more = (Nodes(each.nodes),) if made else ()
        shown_table.add_row(Name(each.name), *_sizes(each), *more)
    yield shown_table
    if len(changes) > ROWS:
        yield f"{len(changes) - ROWS} more {title} differ"


def _markdown_buffers(title: str, changes: Sequence[BufferChange]) -> Iterator[str]:
    if not changes:
        return
    yield from (f"| {title} | before | after | change | ONNX nodes |", "| --- | ---: | ---: | ---: | --- |")
    for each in changes[:ROWS]:
        yield f"| {escaped(shorten(each.name, _ROOM))} | {' | '.join(_sizes(each))} | {escaped(nodes_in(each.nodes, _ROOM))} |"
    if len(changes) > ROWS:
        yield f"| {len(changes) - ROWS} more | | | | |"
    yield ""


def _sizes(change: BufferChange) -> tuple[str, str, str]:
    before, after = (format_bytes(each) if each else "–" for each in (change.before, change.after))
    return before, after, signed(change.change)
