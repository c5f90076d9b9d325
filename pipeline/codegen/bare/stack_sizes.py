"""Read the bytes of stack of each function from an object compiled with `-fstack-size-section`.

Format, by LLVM ("Emitting function stack size information"): sections `.stack_sizes` of entries, each the address of a
function, in the width of the object, and the bytes of its frame as ULEB128.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..elf import sections_of


def stack_sizes(data: bytes) -> list[int]:
    """Return the known bytes of the stack frames of a little-endian object's functions."""
    width = 8 if data[4] == 2 else 4
    found: list[int] = []
    for section in sections_of(data):
        if section.name == ".stack_sizes":
            found += _entries(data[section.offset : section.offset + section.size], width)
    return found


def _entries(content: bytes, width: int) -> Iterator[int]:
    place = 0
    while place < len(content):
        place += width
        value = shift = 0
        while True:
            byte = content[place]
            value |= (byte & 127) << shift
            place, shift = place + 1, shift + 7
            if byte < 128:
                break
        yield value
