"""Link a library into an image: start-up, a program that runs it on recorded inputs, and the places of both in memory."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from ..codegen.library import Library, compile_flags
from ..codegen.names import c_identifier
from ..codegen.template import render
from ..errors import ToolchainError
from ..program import Program
from ..targets import Target, zig_cc, zig_link
from ..targets.memory import Kind, Memory, first_of
from .image_sizes import ImageSizes, image_sizes, why_too_large

_HERE = Path(__file__).parent
#: sources of start-up, by architecture
_STARTUP = {"thumb": "startup_thumb.c", "riscv32": "startup_riscv.c"}
_HEADERS = ("semihosting.h", "clock.h")
#: bytes between memories that are linked far apart
_APART = 1 << 28
#: files to boot any program on a board
BOARD_FILES = ("startup.c", "link.ld", *_HEADERS)


@dataclass(frozen=True)
class Image:
    """Image of a library for `board`: the program `elf`, the linker's `map`, and the sizes of the library in it.

    Its sources are next to it.
    """

    board: Target
    elf: Path
    map: Path
    sizes: ImageSizes

    @property
    def files(self) -> list[Path]:
        """Return the image, its map, main, and the files of the board."""
        return [self.elf, self.map, self.elf.with_name("main.c"), *self.board_files]

    @property
    def board_files(self) -> list[Path]:
        """Return start-up, linker script, and the headers of both."""
        return [self.elf.with_name(name) for name in BOARD_FILES]


def link_image(library: Library, program: Program, board: Target, folder: Path) -> Image:
    """Write the image `folder`/<library>.elf and its map, next to its sources. Raises ToolchainError.

    The image is linked even if the memories of the board do not hold it, so that its sizes are known: where one would run into
    the next, as if they were far apart.
    """
    values = {
        "m": library.name, "M": library.name.upper(),
        "input_bytes": [program.tensors[port.tensor].nbytes for port in program.inputs],
        "output_bytes": [program.tensors[port.tensor].nbytes for port in program.outputs],
    }  # fmt: skip
    for file in (library.archive, library.header, *(_HERE / header for header in _HEADERS)):
        if not (folder / file.name).exists():
            shutil.copyfile(file, folder / file.name)
    shutil.copyfile(_HERE / _STARTUP[board.architecture], folder / "startup.c")
    (folder / "main.c").write_text(render("main.c.j2", _HERE, **values), encoding="utf-8")
    for part in ("startup", "main"):
        # a loop that copies must not become a call of the library's own
        zig_cc([*compile_flags(board), "-fno-builtin", "-c", f"{part}.c", "-o", f"{part}.o"], board, folder)
    elf, objects = folder / f"{library.name}.elf", ["startup.o", "main.o", library.archive.name]

    def link(memories: tuple[Memory, ...]) -> Image:
        _write_script(board, memories, library.regions, folder / "link.ld")
        options = ["-static", "-nostdlib", "-Wl,-T,link.ld", "-Wl,--gc-sections", "-Wl,--print-map"]
        text = zig_link([*options, *objects, "-o", elf.name], board, folder)
        elf.with_suffix(".map").write_text(text, encoding="utf-8")
        return Image(board, elf, elf.with_suffix(".map"), image_sizes(elf))

    try:
        return link(board.memories)
    except ToolchainError:
        apart = link(tuple(replace(each, start=number * _APART) for number, each in enumerate(board.memories)))
        if why_too_large(apart.sizes, board):
            return apart
        raise


def _write_script(board: Target, memories: tuple[Memory, ...], regions: Sequence[str], path: Path) -> None:
    """Write the linker script for memories, of which `regions` hold sections of their own."""

    def place(memory: Memory) -> dict:
        return {
            "name": memory.name,
            "word": c_identifier(memory.name),
            "start": memory.start,
            "size": memory.size,
            "limit": _room(memories, memory.start),
        }

    own = {
        kind: [place(each) for each in memories if each.kind == kind and each.name in regions]
        for kind in get_args(Kind)
    }
    first = {kind: place(first_of(memories, kind)) for kind in get_args(Kind)}
    path.write_text(
        render(
            "link.ld.j2",
            _HERE,
            target=board.name,
            ram=first["ram"],
            flash=first["flash"],
            arenas=own["ram"],
            weights=own["flash"],
        ),
        encoding="utf-8",
    )


def _room(memories: tuple[Memory, ...], start: int) -> int:
    """Return the bytes from `start` to the next memory, or to the end of addresses."""
    return min((each.start for each in memories if each.start > start), default=1 << 32) - start
