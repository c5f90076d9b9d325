"""Find the modules that a module may run: those it imports, at the top, in functions and for types, and theirs.

Modules are read as text, since Python's parser takes seconds for all: a word in a docstring adds a module at most.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

_FROM = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n]*)", re.MULTILINE)
_NAME = re.compile(r"[\w.]+(?=[ \t]*(?:[,)#\n]|as\b|$))", re.MULTILINE)


class ImportGraph:
    """Hold the imports between the modules of some packages, each in a folder of its own."""

    def __init__(self, packages: Mapping[str, Path]):
        self._packages = dict(packages)
        self.file_of = cache(self._find)
        self.imports = cache(self._imports)

    def closure(self, *modules: str) -> frozenset[str]:
        """Return the modules with all they import, directly or not, and the packages that hold these."""
        found: set[str] = set()
        left = [*modules]
        while left:
            module = left.pop()
            if module not in found and self.file_of(module) is not None:
                found.add(module)
                left += self.imports(module)
        return frozenset(found)

    def files(self, *modules: str) -> frozenset[Path]:
        """Return the files of `closure`, and other files in their folders: templates and tables."""
        sources = {file for module in self.closure(*modules) if (file := self.file_of(module))}
        return frozenset(sources.union(*(_data_of(folder) for folder in {file.parent for file in sources})))

    def module_of(self, file: Path) -> str | None:
        """Return the name of the module in a file; None outside of the packages."""
        for package, folder in sorted(self._packages.items(), key=lambda each: -len(each[1].parts)):
            if file.is_relative_to(folder):
                parts = file.relative_to(folder).with_suffix("").parts
                return ".".join((package, *(parts[:-1] if parts[-1:] == ("__init__",) else parts)))
        return None

    def _find(self, module: str) -> Path | None:
        package = max((each for each in self._packages if f"{module}.".startswith(f"{each}.")), key=len, default=None)
        if package is None:
            return None
        path = self._packages[package].joinpath(*module[len(package) + 1 :].split(".")) if module != package else None
        files = (
            (self._packages[package] / "__init__.py",)
            if path is None
            else (path / "__init__.py", path.with_suffix(".py"))
        )
        return next((file for file in files if file.is_file()), None)

    def _imports(self, module: str) -> tuple[str, ...]:
        file = self.file_of(module)
        assert file is not None
        text = file.read_text(encoding="utf-8")
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        names = {
            package,
            *self._from(text, package),
            *(name for line in _IMPORT.findall(text) for name in _NAME.findall(line)),
        }
        found = {each for name in names for each in _with_parents(name)}
        return tuple(sorted(each for each in found if self.file_of(each)))

    def _from(self, text: str, package: str) -> Iterator[str]:
        for dots, stem, names in _FROM.findall(text):
            above = package.split(".")[: len(package.split(".")) - len(dots) + 1] if dots else []
            base = ".".join((*above, *filter(None, [stem])))
            yield base
            yield from (f"{base}.{name}" for name in _NAME.findall(names))


def _with_parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


@cache
def _data_of(folder: Path) -> frozenset[Path]:
    return frozenset(file for file in folder.iterdir() if file.is_file() and file.suffix not in (".py", ".pyc"))


@cache
def _digest_of(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


@cache
def own_imports() -> ImportGraph:
    """Return the imports of this package."""
    return ImportGraph({"passfit": Path(__file__).parents[1]})


@lru_cache(1 << 10)
def code_digest(*modules: str) -> str:
    """Return 32 digits for the code that modules of this package may run, and the tables they read."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(own_imports().files(*modules)):
        digest.update(f"{file.relative_to(root).as_posix()}\n".encode() + _digest_of(file))
    return digest.hexdigest()[:32]
