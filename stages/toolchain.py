"""Stage `toolchain`: what DVC cannot see by itself: package versions, passfit's own source, knowledge, facts of the targets.

It runs on every `dvc repro`, so it imports nothing heavy. Its bytes change only when one of them does, and then DVC
reruns what depends on it: everything on an upgrade of TVM, one target's stages when the facts of that target change.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from dataclasses import asdict
from pathlib import Path

import passfit
import passfit.stages
from passfit.config import Params, check_targets
from passfit.graph.files import read_text
from passfit.scaffold import check_models
from passfit.stages._common import OUT, run_stage, write_json
from passfit.targets.catalogue import load_catalogue

#: the packages whose versions decide what the stages compute
PACKAGES = ("passfit", "apache-tvm", "apache-tvm-ffi", "onnx", "onnxruntime", "ziglang")


def toolchain(params: Params) -> None:
    """Write out/toolchain.json, out/knowledge.json, and out/targets/NAME.json for every target there is."""
    catalogue = load_catalogue(Path())
    check_targets(params, catalogue)
    if params.models:
        check_models(params.models, Path("dvc.yaml"))
    versions = {package: importlib.metadata.version(package) for package in PACKAGES}
    write_json(OUT / "toolchain.json", versions | {"passfit-source": source_digest()})
    write_json(OUT / "knowledge.json", {"sha256": _digest(params.search.knowledge)})
    for name, target in catalogue.items():
        write_json(OUT / "targets" / f"{name}.json", asdict(target))


def _digest(file: str | None) -> str | None:
    """sha256 of the repo's own knowledge. Raises ConfigError where it cannot be read."""
    if file is None:
        return None
    text = read_text(Path(file), "Run `passfit learn` to make it, or remove search.knowledge from params.yaml.")
    return hashlib.sha256(text.encode()).hexdigest()


def source_digest() -> str:
    """sha256 over passfit's own files: an edited checkout is another compiler, though its version is the same."""
    # In a checkout the stages lie outside of the package's folder, in an installed wheel inside of it: key by module.
    files = {}
    for package in (passfit, passfit.stages):
        for root in map(Path, package.__path__):
            for file in root.rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts and not file.name.startswith("."):
                    files[f"{package.__name__.replace('.', '/')}/{file.relative_to(root).as_posix()}"] = file
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\n".encode())
        digest.update(hashlib.sha256(files[name].read_bytes()).digest())
    return digest.hexdigest()


if __name__ == "__main__":
    run_stage(toolchain)
