"""Read the sizes of a library from the image it is linked into."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..codegen.elf import sections_of
from ..memory.limits import RegionUse
from ..targets import Target
from ..targets.memory import Memory, first_of

#: bytes of stack without which no image is started
LEAST_STACK = 256
#: beginnings of the sections that hold parts of arena and weights in memories of their own
_ARENA, _WEIGHTS = ".arena.", ".weights."


@dataclass(frozen=True)
class ImageSizes:
    """Bytes of a library and of the compiler's runtime it needs: sections of the image.

    `arenas` and `weights` are those in other memories than the first of their kind, by name. `boot` and `boot_bss` are those
    of start-up and main, which count nowhere else.
    """

    text: int
    rodata: int
    data: int
    bss: int
    boot: int = 0
    boot_bss: int = 0
    arenas: dict[str, int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)

    @property
    def flash(self) -> int:
        """Return the bytes in flash: code, weights, and the first content of data."""
        return self.text + self.rodata + self.data + sum(self.weights.values())

    @property
    def ram(self) -> int:
        """Return the bytes in ram, without the stack."""
        return self.data + self.bss + sum(self.arenas.values())

    def regions(self, memories: tuple[Memory, ...]) -> tuple[RegionUse, ...]:
        """Return the use of each memory, without the stack."""
        used = {**self.arenas, **self.weights}
        used[first_of(memories, "ram").name] = self.data + self.bss
        used[first_of(memories, "flash").name] = self.text + self.rodata + self.data
        return tuple(RegionUse(each.name, each.kind, used.get(each.name, 0), each.size, each.room) for each in memories)


def why_too_large(sizes: ImageSizes, board: Target) -> str:
    """Say which memory of a board does not hold an image; an empty string if all do."""
    first = {
        first_of(board.memories, "flash").name: sizes.boot,
        first_of(board.memories, "ram").name: sizes.boot_bss + LEAST_STACK,
    }
    for region in sizes.regions(board.memories):
        used = region.used + first.get(region.name, 0)
        if used > region.size:
            return f"the image takes {used} bytes of {region.kind}, and {region.name} of {board.name} has {region.size}"
    return ""


def image_sizes(elf: Path) -> ImageSizes:
    """Read the sizes from the section table of an image."""
    sizes = {section.name: section.size for section in sections_of(elf.read_bytes())}
    own = {name: sizes.get(f".{name}", 0) for name in ("text", "rodata", "data", "bss", "boot", "boot_bss")}
    arenas, weights = (
        {name.removeprefix(start): size for name, size in sizes.items() if name.startswith(start)}
        for start in (_ARENA, _WEIGHTS)
    )
    return ImageSizes(**own, arenas=arenas, weights=weights)
