"""Describe the kinds of packages: places of the library and of each template, by build system."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..card import BOM, CARD
from ..codegen.source.files import SOURCES
from ..errors import ConfigError, did_you_mean
from ..frontend.source.provenance import LICENCE_FILE
from ..image import BOARD_FILES
from ..targets import Target
from .cores import arduino_folder

README = "README.md"


@dataclass(frozen=True)
class Kind:
    """Layout of a package: places of archive or sources and header, and its other files by their template.

    `{m}` is the library's C name, `{folder}` that of its processor, `{version}` the package's. `bare` ones are for targets without
    an operating system. `board` is the folder of start-up and linker script, for one that links an image by itself; `zipped` a file
    that holds all others.
    """

    archive: str = "lib/lib{m}.a"
    header: str = "include/{m}.h"
    selftest: str = "src/{m}_selftest.c"
    files: dict[str, str] = field(default_factory=dict)
    bare: bool = True
    board: str = ""
    zipped: str = ""

    @property
    def selftest_header(self) -> str:
        """Return the place of the self test's header, beside the library's."""
        return self.header.replace(".h", "_selftest.h")


#: CMake: cmake-toolchains(7). Zephyr: Modules (External projects). PlatformIO: library.json. Arduino: Library specification
#: 1.5, rev. 2.2, "Precompiled binaries". CMSIS-Pack: Open-CMSIS-Pack specification 1.7. ESP-IDF: Build System, "Component
#: CMakeLists Files"; IDF Component Manager, idf_component.yml Manifest File
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
    "cmsis-pack": Kind(
        files={"passfit.{m}.pdsc": "pack.pdsc.j2", "example/main.c": "main.c.j2"}, zipped="passfit.{m}.{version}.pack",
    ),
    "esp-idf": Kind(
        files={
            "CMakeLists.txt": "idf.txt.j2", "idf_component.yml": "idf_component.yml.j2", "Kconfig": "Kconfig.j2",
            "examples/{m}/CMakeLists.txt": "idf_project.txt.j2", "examples/{m}/main/CMakeLists.txt": "idf_main.txt.j2",
            "examples/{m}/main/idf_component.yml": "idf_main.yml.j2", "examples/{m}/main/main.c": "main.c.j2",
        },
    ),
}  # fmt: skip


#: the architecture of the processors of a build system, where LLVM knows one alone
_ARCHITECTURES = {"cmsis-pack": "thumb", "esp-idf": "riscv32"}


def check_kind(name: str, target: Target) -> Kind:
    """Return the kind called `name`. Raises ConfigError for an unknown one, and for one that does not run on the target."""
    if name not in KINDS:
        raise ConfigError(f"There is no package '{name}'.", did_you_mean(name, KINDS))
    kind = KINDS[name]
    if (kind.bare and not target.bare) or target.architecture != _ARCHITECTURES.get(name, target.architecture):
        raise ConfigError(
            f"{target.name} ({target.triple}) is not a processor of {name}.", "Choose --kind cmake, or another target."
        )
    return kind


def place(template: str, m: str, target: Target, version: str = "*") -> str:
    """Return a place in a package, with the names of library and processor, and its version; a pattern without one."""
    return template.format(m=m, folder=arduino_folder(target), version=version)


def source_places(m: str) -> dict[str, str]:
    """Return the place of each source of the library `m`, by its name in a result."""
    return {f"{m}_{name}": f"src/{m}_{name}" for name in SOURCES}


def places(kind: Kind, m: str, target: Target) -> set[str]:
    """Return patterns of all places that a package of the library `m` may fill."""
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
        kind.zipped,
        *source_places(m).values(),
        *board,
    ]
    return {place(name, m, target) for name in names}
