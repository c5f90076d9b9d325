"""Read the sizes of a library from the image it is linked into."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..codegen.elf import sections_of
from ..targets import Target
from ..targets.memory import first_of

#: bytes of stack without which no image is started
LEAST_STACK = 256


@dataclass(frozen=True)
class ImageSizes:
    """Bytes of a library and of the compiler's runtime it needs: sections of the image.

    `boot` and `boot_bss` are those of start-up and main, which count nowhere else.
    """

    text: int
    rodata: int
    data: int
    bss: int
    boot: int = 0
    boot_bss: int = 0

    @property
    def flash(self) -> int:
        """Return the bytes in flash: code, weights, and the first content of data."""
        return self.text + self.rodata + self.data

    @property
    def ram(self) -> int:
        """Return the bytes in ram, without the stack."""
        return self.data + self.bss


def why_too_large(sizes: ImageSizes, board: Target) -> str:
    """Say which memory of a board does not hold an image; an empty string if both do."""
    flash, ram = first_of(board.memories, "flash"), first_of(board.memories, "ram")
    for memory, used in ((flash, sizes.flash + sizes.boot), (ram, sizes.ram + sizes.boot_bss + LEAST_STACK)):
        if used > memory.size:
            return f"the image takes {used} bytes of {memory.kind}, and {memory.name} of {board.name} has {memory.size}"
    return ""


def image_sizes(elf: Path) -> ImageSizes:
    """Read the sizes from the section table of an image."""
    sizes = {section.name: section.size for section in sections_of(elf.read_bytes())}
    return ImageSizes(*(sizes.get(f".{name}", 0) for name in ("text", "rodata", "data", "bss", "boot", "boot_bss")))
