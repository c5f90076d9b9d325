"""Stage `toolchain`: record dependencies invisible to DVC.

These are package versions, passfit's own source, the facts of targets, and each stage's share of params.yaml. The stage
runs on every `dvc repro`, so it imports nothing heavy. Its output changes only with one of them; then DVC reruns the
dependent stages: all after an upgrade of TVM, one target's after a change of its facts.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import passfit
import passfit.stages
from passfit.artifacts.origin import (
    PACKAGES,
    evaluate_record,
    import_record,
    provenance_record,
    quantize_record,
    search_inputs,
    search_settings,
    tune_record,
    verify_record,
    verify_settings,
)
from passfit.artifacts.sample_files import settings_file
from passfit.params.params import Params, check_targets, declared
from passfit.scaffold import check_asked, check_models
from passfit.stages._common import OUT, run_stage, target_of, write_json
from passfit.support.digests import folders_digest
from passfit.targets import Target
from passfit.targets.catalogue import load_catalogue


def toolchain(params: Params) -> str:
    """Write out/toolchain.json, out/targets/NAME.json for every target it can read, and out/settings/MODEL/TARGET/."""
    catalogue = load_catalogue(Path())
    check_targets(params, catalogue)
    if params.models:
        check_models(params.models, Path("dvc.yaml"))
        check_asked(params, Path("dvc.yaml"))
    versions = {package: importlib.metadata.version(package) for package in PACKAGES}
    write_json(OUT / "toolchain.json", versions | {"passfit-source": source_digest()})
    for name, target in catalogue.readable(needed=params.targets).items():
        write_json(OUT / "targets" / f"{name}.json", asdict(target))
    (OUT / "settings").mkdir(parents=True, exist_ok=True)  # DVC asks for it, of a repo without models too
    for model, name in declared(params):
        write_settings(params, model, name, catalogue)
    counted = f"models: {len(params.models)}, targets: {len(params.targets)}"
    return f"passfit {versions['passfit']}, TVM {versions['apache-tvm']}; {counted}"


def write_settings(params: Params, model: str, name: str, catalogue: Mapping[str, Target] | None = None) -> None:
    """Write the inputs of a search, a tuning and a compilation from params.yaml and the catalogue, and nothing else."""
    folder, target = OUT / "settings" / model / name, target_of(params, model, name, catalogue)
    write_json(folder / "search.json", search_inputs(search_settings(params), params.budget(model, name), target))
    write_json(Path(settings_file(model, "import")), import_record(params, model))
    if params.models[model].data is not None:
        write_json(Path(settings_file(model, "evaluate", name)), evaluate_record(params, model))
    if params.models[model].quantize is not None:
        write_json(Path(settings_file(model, "quantize")), quantize_record(params, model))
    write_json(folder / "tune.json", tune_record(params, name))
    # the sequence is not known yet: it can be lossy only if the search allows that
    verified = verify_record(verify_settings(params), params.search.lossy, target)
    write_json(folder / "compile.json", {**verified, "provenance": provenance_record(params, model)})


def source_digest() -> str:
    """Return the sha256 of passfit's own files: an edited checkout of the same version is another compiler."""
    # keyed by module: stages lie outside of the package's folder in a checkout, inside of it in an installed wheel
    packages = {package.__name__.replace(".", "/"): Path(package.__path__[0]) for package in (passfit, passfit.stages)}
    return folders_digest(packages)


if __name__ == "__main__":
    run_stage(toolchain)
