"""Open the library of a result folder, to run it again without building anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..codegen.elf import archive_members, sections_of
from ..codegen.library import Library
from ..errors import ConfigError
from ..memory.files.manifest_file import read_manifest
from ..memory.files.plan_file import read_plan
from ..program import Program

#: what to do about a folder that is none of a result
REMAKE = "Give the folder that `passfit compile` wrote, or compile the model again."
#: sections of a part of the weights or the arena in another memory, before its name
_IN_REGIONS = (".rodata.weights.", ".bss.arena.")


@dataclass(frozen=True)
class OpenedResult:
    """Library of a result folder, its program, and its manifest."""

    library: Library
    program: Program
    manifest: dict[str, Any]


def open_result(folder: Path) -> OpenedResult:
    """Open the library that `passfit compile` wrote to a folder. Raises ConfigError."""
    manifest = read_manifest(folder / "manifest.json", REMAKE)
    name = manifest.get("io", {}).get("name")
    archive, header = folder / f"lib{name}.a", folder / f"{name}.h"
    if missing := [each for each in (archive, header) if not each.is_file()]:
        raise ConfigError(f"'{missing[0]}' is missing.", REMAKE)
    program = read_plan(folder / "plan.json").program
    library = Library(name, archive, header, 0, 0, threads=manifest.get("threads", 1), regions=_regions(archive))
    return OpenedResult(library, program, manifest)


def _regions(archive: Path) -> tuple[str, ...]:
    """Return the memories with sections of their own."""
    names = [section.name for _, member in archive_members(archive.read_bytes()) for section in sections_of(member)]
    found = (name.removeprefix(prefix) for name in names for prefix in _IN_REGIONS if name.startswith(prefix))
    return tuple(dict.fromkeys(found))
