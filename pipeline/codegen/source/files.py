"""Write header, C sources and weights of a library; keep them for compilers other than its own."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..bare.float_functions import SOURCE
from ..template import render
from ..tensor_addresses import MemoryBlock, TensorAddresses

#: sources of a library for other compilers
SOURCES = ("library.c", "arena.c", "weights.c", "kernels.S", SOURCE.name)


def write_sources(folder: Path, values: dict, weights: Sequence[np.ndarray], addresses: TensorAddresses) -> list[str]:
    """Write header, C sources and weights into `folder`; return the names of the files to compile."""
    stated = render("library.h.j2", **values, digest="")
    values = values | {"digest": hashlib.sha256(stated.encode()).hexdigest()[:12]}
    sources = {f"{values['m']}.h": "library.h.j2", "library.c": "library.c.j2", "arena.c": "arena.c.j2"}
    if addresses.weight_blocks:
        sources["weights.s"] = "weights.s.j2"
    for block in addresses.weight_blocks:
        _write_weights(folder / f"{values['m']}_{block.name}.bin", weights, block, addresses)
    for file, template in sources.items():
        (folder / file).write_text(render(template, **values), encoding="utf-8")
    if values["float_functions"]:
        shutil.copyfile(SOURCE, folder / SOURCE.name)
        sources[SOURCE.name] = ""
    return [file for file in sources if not file.endswith(".h")]


def keep_sources(folder: Path, values: dict, assembly: str) -> list[str]:
    """Write the sources of a library that was built in `folder`, for compilers other than its own; return their names."""
    contents = {
        block.name: (folder / f"{values['m']}_{block.name}.bin").read_bytes() for block, _ in values["weight_blocks"]
    }
    (folder / "weights.c").write_text(render("weights.c.j2", **values, contents=contents), encoding="utf-8")
    (folder / "kernels.S").write_text(assembly, encoding="utf-8")
    kept = {name: f"{values['m']}_{name}" for name in SOURCES if (folder / name).exists()}
    for name, place in kept.items():
        os.replace(folder / name, folder / place)
    return list(kept.values())


def _write_weights(path: Path, weights: Sequence[np.ndarray], block: MemoryBlock, addresses: TensorAddresses) -> None:
    """Write the weights of a block to one file, each at its offset, zeros between."""
    with path.open("wb") as file:
        for number in block.weights:
            file.write(b"\0" * (addresses.weight_offsets[number] - file.tell()))
            file.write(np.ascontiguousarray(weights[number]).reshape(-1).view(np.uint8))
        file.write(b"\0" * (block.nbytes - file.tell()))
