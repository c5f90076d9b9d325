"""Insert or remove an entry of a YAML file as text: every other byte stays, comments and all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ruamel.yaml.nodes import CollectionNode, Node, ScalarNode

#: indentation of a section that has no entry yet, relative to its key
_STEP = 2


@dataclass(frozen=True)
class Entry:
    """Entry of a table or list.

    `block` are its lines, indented from 0; `flow` is the same between braces.
    """

    block: tuple[str, ...]
    flow: str


def insert(text: str, place: Sequence[str], entry: Entry, before: str | None = None) -> str | None:
    """Insert `entry` at the end of the section `place`, or above its key `before`; return the text.

    Returns None if the file does not have that section, or not as a table or list. The insertion is textual, so parse
    the result and compare.
    """
    found = _section(text, place)
    if found is None:
        return None
    key, node = found
    new_line = "\r\n" if "\r\n" in text else "\n"
    if node.id == "scalar":  # a key without a value
        column = key.start_mark.column + _STEP
        return None if node.value else _with_lines(text, _after_line(text, key), column, entry, new_line)
    if node.flow_style:
        at = len(text[: node.end_mark.index - 1].rstrip())
        comma = "" if not node.value else " " if text[at - 1] == "," else ", "
        return text[:at] + comma + entry.flow + text[at:]
    place_of = _end(text, node) if before is None else _above(text, node, before)
    return None if place_of is None else _with_lines(text, place_of, node.start_mark.column, entry, new_line)


def remove(text: str, place: Sequence[str], name: str) -> str | None:
    """Remove the entry `name` of the table or list `place`, its last one too; return the text.

    Returns None if the file does not have that entry. The removal is textual, so parse the result and compare.
    """
    found = _section(text, place)
    if found is None or found[1].id == "scalar":
        return None
    owner, node = found
    entries = node.value if node.id == "mapping" else [(item, item) for item in node.value]
    empty = "{}" if node.id == "mapping" else "[]"
    i = next((i for i, (key, _) in enumerate(entries) if key.value == name), None)
    if i is None:
        return None
    last = i + 1 == len(entries)
    if node.flow_style and len(entries) == 1:
        return f"{text[: node.start_mark.index]}{empty}{text[node.end_mark.index :]}"
    if node.flow_style:
        start = entries[i][0].start_mark.index if i == 0 else entries[i - 1][1].end_mark.index
        end = entries[1][0].start_mark.index if i == 0 and not last else entries[i][1].end_mark.index
        return text[:start] + text[end:]
    start = _line_of(text, entries[i][0])
    end = _end(text, node) if last else _line_of(text, entries[i + 1][0])
    if len(entries) > 1:
        return text[:start] + text[end:]
    colon = text.index(":", owner.end_mark.index) + 1
    return f"{text[:colon]} {empty}{text[colon:start]}{text[end:]}"


def _line_of(text: str, node: Node) -> int:
    """Find the start of a node's line."""
    return text.rfind("\n", 0, node.start_mark.index) + 1


def _section(text: str, place: Sequence[str]) -> tuple[ScalarNode, Node] | None:
    """Find the key and the value at a path of keys."""
    from ruamel.yaml import YAML

    node, found = YAML(typ="safe", pure=True).compose(text), None
    for word in place:
        if node is None or node.id != "mapping":
            return None
        found = next(((key, value) for key, value in node.value if key.id == "scalar" and key.value == word), None)
        if found is None:
            return None
        node = found[1]
    return found


def _with_lines(text: str, at: int, column: int, entry: Entry, new_line: str) -> str:
    lines = "".join((" " * column + line).rstrip() + new_line for line in entry.block)
    return text[:at] + ("" if text[:at].endswith("\n") else new_line) + lines + text[at:]


def _end(text: str, node: CollectionNode) -> int:
    """Find the end of a block: before the blank lines, and comments further left, after it."""
    end, column = node.end_mark.index, node.start_mark.column
    lines = text[node.start_mark.index : end].splitlines(keepends=True)
    while len(lines) > 1:
        content = lines[-1].lstrip()
        indentation = len(lines[-1]) - len(content)
        if content and not (content.startswith("#") and indentation < column):
            break
        end -= len(lines.pop())
    return end


def _above(text: str, node: CollectionNode, name: str) -> int | None:
    """Find the start of the line of key `name`, or of comments right above."""
    key = next((key for key, _ in node.value if key.value == name), None)
    if key is None:
        return None
    at = _line_of(text, key)
    while (above := text.rfind("\n", 0, max(at - 1, 0)) + 1) < at and text[above:at].lstrip().startswith("#"):
        at = above
    return at


def _after_line(text: str, node: Node) -> int:
    end = text.find("\n", node.end_mark.index)
    return len(text) if end < 0 else end + 1
