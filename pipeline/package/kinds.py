"""Describe the kinds of packages: places of the library and of each template, by build system."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..card import BOM, CARD
from ..errors import ConfigError, did_you_mean
from ..frontend.source.provenance import LICENCE_FILE
from ..image import BOARD_FILES
from ..targets import Target
from .cores import arduino_folder

README = "README.md"


@dataclass(frozen=True)
class Kind:
    """Layout of a package: places of archive and header, and its other files by their template.

    `{m}` is the library's C name, `{folder}` that of its processor. `bare` ones are for targets without an operating system.
    `board` is the folder of start-up and linker script, for one that links an image by itself.
    """

    archive: str = "lib/lib{m}.a"
    header: str = "include/{m}.h"
    selftest: str = "src/{m}_selftest.c"
    files: dict[str, str] = field(default_factory=dict)
    bare: bool = True
    board: str = ""

    @property
    def selftest_header(self) -> str:
        """Return the place of the self test's header, beside the library's."""
        return self.header.replace(".h", "_selftest.h")


#: CMake: cmake-toolchains(7). Zephyr: Modules (External projects). PlatformIO: library.json. Arduino: Library specification
#: 1.5, rev. 2.2, "Precompiled binaries". CMSIS-Pack: Open-CMSIS-Pack specification 1.7
KINDS = {
    "cmake": Kind(
        files={"CMakeLists.txt": "cmake.txt.j2", "cmake/zig.cmake": "zig.cmake.j2", "example/main.c": "main.c.j2"}, bare=False, board="board",
    ),
    "zephyr": Kind(
        files={
            "zephyr/module.yml": "module.yml.j2", "zephyr/CMakeLists.txt": "zephyr.txt.j2", "zephyr/Kconfig": "Kconfig.j2",
            "samples/{m}/CMakeLists.txt": "zephyr_sample.txt.j2", "samples/{m}/prj.conf": "prj.conf.j2",
            "samples/{m}/sample.yaml": "sample.yaml.j2", "samples/{m}/src/main.c": "main.c.j2",
        }
    ),
    "platformio": Kind(
        files={
            "library.json": "library.json.j2", "link.py": "link.py.j2", "examples/{m}/platformio.ini": "platformio.ini.j2",
            "examples/{m}/src/main.c": "main.c.j2",
        },
        bare=False,
    ),
    "arduino": Kind(
        archive="src/{folder}/lib{m}.a", header="src/{m}.h",
        files={"library.properties": "library.properties.j2", "examples/{m}/{m}.ino": "sketch.ino.j2"},
    ),
    "cmsis-pack": Kind(files={"passfit.{m}.pdsc": "pack.pdsc.j2", "example/main.c": "main.c.j2"}),
}  # fmt: skip


def check_kind(name: str, target: Target) -> Kind:
    """Return the kind called `name`. Raises ConfigError for an unknown one, and for one that does not run on the target."""
    if name not in KINDS:
        raise ConfigError(f"There is no package '{name}'.", did_you_mean(name, KINDS))
    kind = KINDS[name]
    if (kind.bare and not target.bare) or (name == "cmsis-pack" and target.architecture != "thumb"):
        raise ConfigError(
            f"{target.name} ({target.triple}) is not a processor of {name}.", "Choose --kind cmake, or another target."
        )
    return kind


def place(template: str, m: str, target: Target) -> str:
    """Return a place in a package, with the names of library and processor."""
    return template.format(m=m, folder=arduino_folder(target))


def places(kind: Kind, m: str, target: Target) -> set[str]:
    """Return all places that a package of the library `m` may fill."""
    board = [f"{kind.board}/{name}" for name in BOARD_FILES] if kind.board else []
    names = [
        README,
        CARD,
        BOM,
        LICENCE_FILE,
        *kind.files,
        kind.selftest,
        kind.selftest_header,
        kind.archive,
        kind.header,
        *board,
    ]
    return {place(name, m, target) for name in names}
