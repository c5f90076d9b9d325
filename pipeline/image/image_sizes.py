"""Read the sizes of a library from the image it is linked into."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..codegen.elf import sections_of


@dataclass(frozen=True)
class ImageSizes:
    """Bytes of a library and of the compiler's runtime it needs: sections of the image, without start-up and main."""

    text: int
    rodata: int
    data: int
    bss: int

    @property
    def flash(self) -> int:
        """Return the bytes in flash: code, weights, and the first content of data."""
        return self.text + self.rodata + self.data

    @property
    def ram(self) -> int:
        """Return the bytes in ram, without the stack."""
        return self.data + self.bss


def image_sizes(elf: Path) -> ImageSizes:
    """Read the sizes from the section table of an image."""
    sizes = {section.name: section.size for section in sections_of(elf.read_bytes())}
    return ImageSizes(*(sizes.get(f".{name}", 0) for name in ("text", "rodata", "data", "bss")))
