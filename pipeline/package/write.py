"""Write a package: the library with header, card, example and self test, as a folder that a build system takes."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..card import BOM, CARD, Facts, bill_of_materials, model_card
from ..codegen.template import render
from ..errors import ConfigError, OutputError
from ..frontend.source.provenance import LICENCE_FILE
from ..image import BOARD_FILES
from ..support.result_folder import result_folder
from ..targets import emulator_command
from .contents import Contents, read_contents
from .cores import cmsis_core, fpu_of, zephyr_core
from .earlier import check_folder
from .kinds import README, Kind, check_kind, place

_TEMPLATES = Path(__file__).parent / "templates"
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_URL = re.compile(r"https?://[^\s<>\"']+")
#: an expression of SPDX licences, as build systems ask for
_SPDX = re.compile(r"[\w.+-]+( (AND|OR|WITH) [\w.+-]+)*", re.ASCII)
#: golden vectors in a self test: flash is small
CASES = 1
#: most bytes of golden vectors that become C source, of four times that
_MOST_BYTES = 8 << 20


def write_package(
    folder: Path,
    kind: str,
    out: Path,
    version: str = "1.0.0",
    cases: int = CASES,
    repo: Path = Path(),
    over_any: bool = False,
    *,
    author: str = "passfit",
    url: str = "https://example.com/",
    source: bool = False,
) -> None:
    """Package the result in `folder`, with golden vectors of at most `cases` cases.

    `author` and `url` are for those who look for the package; with `source`, C and assembly replace the archive.
    The same result gives the same bytes. An earlier package of the kind and library, `over_any` of another library too, is
    replaced; a folder with anything else is refused. Raises ConfigError for a kind or version that does not exist, or a folder without
    a whole result; TargetError, OutputError.
    """
    if not _VERSION.fullmatch(version):
        raise ConfigError(f"The version is '{version}'.", "Give three numbers, such as 1.0.0.")
    if not _URL.fullmatch(url):
        raise ConfigError(f"The url is '{url}'.", "Give the address of a page, such as https://example.com/.")
    if not author.strip() or not author.isprintable():
        raise ConfigError(f"The author is {author!r}.", "Give a name on one line.")
    contents = read_contents(folder, repo)
    chosen = check_kind(kind, contents.target)
    if out.exists() and out.samefile(folder):
        raise OutputError(f"'{out}' holds the result itself.", "Choose another folder.")
    earlier = check_folder(out, kind, contents.target, None if over_any else contents.m)
    if source and not contents.sources():
        raise ConfigError(f"'{folder}' has no sources.", "Compile the model again with --source.")
    values = package_values(contents, chosen, kind, version, cases) | {"author": author, "url": url}
    values["sources"] = sorted(contents.sources().values()) if source else []
    with result_folder(out) as made:
        _write_files(contents, chosen, values, made)
        if chosen.zipped:
            _zip(made, place(chosen.zipped, contents.m, contents.target, version))
        written = {file.relative_to(made).as_posix() for file in made.rglob("*")}
    for name in earlier - written:
        (out / name).unlink(missing_ok=True)


def _write_files(contents: Contents, kind: Kind, values: dict[str, Any], folder: Path) -> None:
    def at(name: str) -> Path:
        file = folder / place(name, contents.m, contents.target)
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    files = dict(kind.files) | {README: "README.md.j2"}
    if values["golden"] is not None:
        files |= {kind.selftest: "selftest.c.j2", kind.selftest_header: "selftest.h.j2"}
    for name, template in files.items():
        at(name).write_text(render(template, _TEMPLATES, **values), encoding="utf-8")
    facts = Facts(contents.footprint, contents.target, contents.manifest, contents.recorded, contents.accuracy)
    at(CARD).write_text(model_card(facts), encoding="utf-8")
    at(BOM).write_text(bill_of_materials(facts), encoding="utf-8")
    if LICENCE_FILE in contents.manifest["files"]:
        shutil.copyfile(contents.folder / LICENCE_FILE, at(LICENCE_FILE))
    if values["sources"]:
        for name, file in contents.sources().items():
            shutil.copyfile(contents.folder / name, at(file))
    else:
        shutil.copyfile(contents.archive, at(kind.archive))
    shutil.copyfile(contents.header, at(kind.header))
    if kind.board and contents.target.bare:
        for name in BOARD_FILES:
            shutil.copyfile(contents.folder / name, at(f"{kind.board}/{name}"))


def _zip(folder: Path, name: str) -> None:
    """Zip all files of a folder into one of `name` there; the same files give the same bytes."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    with zipfile.ZipFile(folder / name, "w") as archive:  # stored: versions of zlib differ
        for file in files:
            entry = zipfile.ZipInfo(file.relative_to(folder).as_posix())  # dated 1980
            entry.external_attr, entry.create_system = 0o644 << 16, 3
            archive.writestr(entry, file.read_bytes())


def package_values(contents: Contents, kind: Kind, name: str, version: str, cases: int) -> dict[str, Any]:
    """Return the values of the templates' variables, for a kind of that name."""
    target, golden = contents.target, contents.golden
    licence = contents.manifest.get("source", {}).get("licence", {}).get("name", "")
    inputs, outputs = contents.ports("inputs"), contents.ports("outputs")
    case_bytes = sum(port["nbytes"] for port in (*inputs, *outputs))
    if case_bytes > _MOST_BYTES:
        golden = None
    cases = 0 if golden is None else min(cases, len(golden.inputs), _MOST_BYTES // max(1, case_bytes))
    if golden is not None:
        for port, values in zip(inputs, zip(*golden.inputs[:cases])):
            port["values"] = values
        for port, values, tolerance in zip(outputs, zip(*golden.outputs[:cases]), golden.tolerances):
            port |= {"values": values, "tolerance": tolerance, "elements": int(np.prod(port["shape"], dtype=np.int64))}
    return {
        "model": contents.manifest["model"], "m": contents.m, "M": contents.m.upper(), "kind": name, "version": version,
        "passfit": importlib.metadata.version("passfit"), "target": target, "threads": contents.manifest.get("threads", 1),
        "ram": contents.footprint.best.ram, "flash": contents.footprint.best.flash,
        "sha256": contents.manifest.get("made_from", {}).get("model", ""),
        "inputs": inputs, "outputs": outputs, "golden": golden, "cases": cases,
        "dtypes": sorted({port["dtype"] for port in outputs if port["nbytes"] and port.get("tolerance")}),
        "exact": any(port["nbytes"] and not port.get("tolerance") for port in outputs),
        "emulator": emulator_command(target), "fpu": fpu_of(target), "cmsis_core": cmsis_core(target), "zephyr_core": zephyr_core(target),
        "archive": place(kind.archive, contents.m, target), "licence": licence if _SPDX.fullmatch(licence) else "",
        "licence_file": LICENCE_FILE if LICENCE_FILE in contents.manifest["files"] else "",
    }  # fmt: skip
