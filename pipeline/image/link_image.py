"""Link a library into an image: start-up, a program that runs it on recorded inputs, and the places of both in memory."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ..codegen.library import Library, compile_flags
from ..codegen.template import render
from ..program import Program
from ..targets import Target, zig_cc, zig_link
from ..targets.memory import first_of
from .image_sizes import ImageSizes, image_sizes

_HERE = Path(__file__).parent
#: sources of start-up, by architecture
_STARTUP = {"thumb": "startup_thumb.c", "riscv32": "startup_riscv.c"}
_HEADERS = ("semihosting.h", "clock.h")
#: files by which any program boots on a board
BOARD_FILES = ("startup.c", "link.ld", *_HEADERS)


@dataclass(frozen=True)
class Image:
    """Image of a library for `board`: the program `elf`, the linker's `map`, and the sizes of the library in it.

    Its sources are beside it.
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
    """Write the image `folder`/<library>.elf and its map, beside its sources. Raises ToolchainError.

    The image is linked even if the memories of the board do not hold it, so that its sizes are known.
    """
    flash, ram = first_of(board.memories, "flash"), first_of(board.memories, "ram")
    values = {
        "m": library.name, "M": library.name.upper(), "target": board.name, "flash": flash, "ram": ram,
        "flash_limit": _room(board, flash.start), "ram_limit": _room(board, ram.start),
        "input_bytes": [program.tensors[port.tensor].nbytes for port in program.inputs],
        "output_bytes": [program.tensors[port.tensor].nbytes for port in program.outputs],
    }  # fmt: skip
    for file in (library.archive, library.header, *(_HERE / header for header in _HEADERS)):
        if not (folder / file.name).exists():
            shutil.copyfile(file, folder / file.name)
    shutil.copyfile(_HERE / _STARTUP[board.architecture], folder / "startup.c")
    for name in ("main.c", "link.ld"):
        (folder / name).write_text(render(f"{name}.j2", _HERE, **values), encoding="utf-8")
    for part in ("startup", "main"):
        # a loop that copies must not become a call of the library's own
        zig_cc([*compile_flags(board), "-fno-builtin", "-c", f"{part}.c", "-o", f"{part}.o"], board, folder)
    elf, objects = f"{library.name}.elf", ["startup.o", "main.o", library.archive.name]
    options = ["-static", "-nostdlib", "-Wl,-T,link.ld", "-Wl,--gc-sections", "-Wl,--print-map"]
    text = zig_link([*options, *objects, "-o", elf], board, folder)
    (folder / f"{library.name}.map").write_text(text, encoding="utf-8")
    return Image(board, folder / elf, folder / f"{library.name}.map", image_sizes(folder / elf))


def _room(board: Target, start: int) -> int:
    """Return the bytes from `start` to the next memory of the board, or to the end of addresses."""
    return min((each.start for each in board.memories if each.start > start), default=1 << 32) - start
