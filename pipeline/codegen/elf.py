"""Read ELF objects: section sizes, undefined symbols, and the functions that use them.

Supported: relocatable files and ar archives of them, little-endian, 32 and 64 bits, as for all targets of the catalogue.
Layout: System V ABI, chapter 4 (object files); `ar` members: the common 60-byte header.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from ..errors import ToolchainError

#: content of a file: a view need not read all of it, such as half a gigabyte of weights
_Bytes = TypeVar("_Bytes", bytes, memoryview)
SHF_WRITE, SHF_ALLOC = 1, 2
_SHT_SYMTAB, _SHT_RELA, _SHT_REL = 2, 4, 9
_STT_FUNC = 2


@dataclass(frozen=True)
class ElfSection:
    """Section of an object: `size` in bytes, `flags` as in the ELF header (SHF_*)."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int


@dataclass(frozen=True)
class Symbol:
    """Symbol of an object; `section` is 0 if undefined."""

    name: str
    kind: int
    section: int
    value: int
    size: int


@dataclass(frozen=True)
class ElfObject:
    """Relocatable object, or several merged.

    `users` maps a symbol's name to the functions that refer to it, in file order.
    """

    sections: tuple[ElfSection, ...]
    symbols: tuple[Symbol, ...]
    users: dict[str, tuple[str, ...]]

    @property
    def undefined(self) -> tuple[str, ...]:
        """Collect the names of symbols that no object defines, sorted."""
        return tuple(sorted({s.name for s in self.symbols if s.name} - {s.name for s in self.symbols if s.section}))

    def functions(self) -> dict[str, int]:
        """Return the bytes of each function; of two names at one place, the first."""
        found: dict[tuple[int, int], Symbol] = {}
        for each in self.symbols:
            if each.kind == _STT_FUNC and each.section:
                found.setdefault((each.section, each.value), each)
        return {each.name: each.size for each in found.values()}

    def read_only_bytes(self, without: Collection[str] = ()) -> int:
        """Count the bytes of text and read-only data, except in the sections of the names in `without`."""
        return sum(
            s.size for s in self.sections if s.flags & SHF_ALLOC and not s.flags & SHF_WRITE and s.name not in without
        )


def together(objects: Sequence[ElfObject]) -> ElfObject:
    """Merge objects that do not refer to each other."""
    users: dict[str, tuple[str, ...]] = {}
    for each in objects:
        users |= {symbol: (*users.get(symbol, ()), *functions) for symbol, functions in each.users.items()}
    sections, symbols = (
        tuple(chain.from_iterable(parts)) for parts in zip(*((o.sections, o.symbols) for o in objects))
    )
    return ElfObject(sections, symbols, users)


def archive_members(data: _Bytes) -> Iterator[tuple[str, _Bytes]]:
    """Yield (name, bytes) of each object in an ar archive, without the archive's own indices.

    Raises ToolchainError for another format.
    """
    if data[:8] != b"!<arch>\n":
        raise ToolchainError("The archive the toolchain wrote is not an ar file.", "Reinstall ziglang.")
    position, long_names = 8, b""
    while position + 60 <= len(data):
        header = bytes(data[position : position + 60])
        name, size = header[:16].decode("ascii").strip(), int(header[48:58])
        body = data[position + 60 : position + 60 + size]
        position += 60 + size + size % 2
        if name == "//":
            long_names = bytes(body)
        elif name not in ("/", "/SYM64/"):
            if name.startswith("/"):
                start = int(name[1:])
                name = long_names[start : long_names.index(b"\n", start)].decode()
            yield name.rstrip("/"), body


def read_object(data: _Bytes) -> ElfObject:
    """Parse one relocatable object. Raises ToolchainError unless it is little-endian ELF."""
    if data[:4] != b"\x7fELF" or data[5] != 1:
        raise ToolchainError("The compiled kernels are not a little-endian ELF object.", "Choose another target.")
    wide = data[4] == 2
    sections = _sections(data, wide)
    symbols = _symbols(data, sections, wide)
    return ElfObject(sections, symbols, _users(data, sections, symbols, wide))


def functions_of(data: _Bytes) -> tuple[Symbol, ...]:
    """Return the functions that a little-endian object or program defines."""
    found = _symbols(data, sections_of(data), data[4] == 2)
    return tuple(each for each in found if each.kind == _STT_FUNC and each.section)


def sections_of(data: _Bytes) -> tuple[ElfSection, ...]:
    """Return the sections of a little-endian object or program."""
    return _sections(data, data[4] == 2)


def _text(data: _Bytes, start: int) -> str:
    length = 64
    while b"\0" not in (read := bytes(data[start : start + length])) and start + length < len(data):
        length *= 2
    return read.partition(b"\0")[0].decode("utf-8", "replace")


def _sections(data: _Bytes, wide: bool) -> tuple[ElfSection, ...]:
    table = struct.unpack_from("<Q", data, 0x28)[0] if wide else struct.unpack_from("<I", data, 0x20)[0]
    entry, count, names = struct.unpack_from("<3H", data, 0x3A if wide else 0x2E)
    form = "<IIQQQQIIQQ" if wide else "<10I"
    if count == 0:  # more than 65279 sections: entry 0 holds the real numbers
        first = struct.unpack_from(form, data, table)
        count, names = first[5], first[6]
    rows = [struct.unpack_from(form, data, table + i * entry) for i in range(count)]
    strings = rows[names][4]
    return tuple(ElfSection(_text(data, strings + r[0]), r[1], r[2], r[4], r[5], r[6], r[7]) for r in rows)


def _symbols(data: _Bytes, sections: tuple[ElfSection, ...], wide: bool) -> tuple[Symbol, ...]:
    found = []
    for table in (s for s in sections if s.kind == _SHT_SYMTAB):
        strings, size = sections[table.link].offset, 24 if wide else 16
        for start in range(table.offset, table.offset + table.size, size):
            if wide:
                name, info, _, section, value, length = struct.unpack_from("<IBBHQQ", data, start)
            else:
                name, value, length, info, _, section = struct.unpack_from("<IIIBBH", data, start)
            found.append(Symbol(_text(data, strings + name), info & 15, section, value, length))
    return tuple(found)


def _users(
    data: _Bytes, sections: tuple[ElfSection, ...], symbols: tuple[Symbol, ...], wide: bool
) -> dict[str, tuple[str, ...]]:
    """Map each symbol to the functions whose code refers to it, by relocations."""
    functions: dict[int, list[Symbol]] = {}
    for symbol in symbols:
        if symbol.kind == _STT_FUNC and symbol.section:
            functions.setdefault(symbol.section, []).append(symbol)
    users: dict[str, dict[str, None]] = {}
    for table in (s for s in sections if s.kind in (_SHT_RELA, _SHT_REL)):
        size = (16 if wide else 8) + (table.kind == _SHT_RELA) * (8 if wide else 4)
        for start in range(table.offset, table.offset + table.size, size):
            where, info = struct.unpack_from("<QQ" if wide else "<II", data, start)
            symbol = symbols[info >> (32 if wide else 8)]
            if not symbol.name:
                continue
            for function in functions.get(table.info, ()):
                first = function.value & ~1 if not wide else function.value  # bit 0 marks Thumb code
                if first <= where < first + function.size:
                    users.setdefault(symbol.name, {})[function.name] = None
    return {name: tuple(found) for name, found in sorted(users.items())}
