"""Make a repo with a catalogue of its own, params.yaml, and footprints."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path

from passfit.artifacts import origin
from passfit.artifacts.places import accuracy_file, kept_accuracy
from passfit.data.accuracy import AccuracyReport, DataRecord, LibraryScore, Score, report_fields
from passfit.frontend.source.import_options import ImportOptions
from passfit.frontend.source.model_record import model_record
from passfit.memory.footprint import Baseline, Footprint, FootprintReport, Measured, Start
from passfit.params.params import load_params
from passfit.targets.catalogue import get_target

KIB, MIB = 1024, 1024 * 1024
PARAMS = """
models:
  a: {source: a.onnx}
targets:
  x86-64: {budget: {ram: 600KiB}}
"""


def footprint(model: str = "a", target: str = "x86-64", ram: int = 500 * KIB, flash: int = MIB, **measured) -> dict:
    """Make the object of a footprint.json; `measured` overrides fields of its `measured`."""
    best = Footprint(
        ram=ram, flash=flash, arena=ram, workspace=0, weights=flash, code=0, bound=ram, floor=ram, proved=True,
        kernels=3, sum=ram,
    )  # fmt: skip
    ran = replace(Measured(True, "native", None, 1.5, 0.0, 0.0), **measured)
    return FootprintReport(model, target, Start(2 * ram, 5), best, Baseline.of(best), ran).to_json()


def accuracy(
    value: float | None = 0.9, reference: float | None = None, samples: int = 1000, **fields
) -> AccuracyReport:
    """Make the accuracy of a library that ran all samples, and differs from its file in as many as its value does."""
    known = value if reference is None else reference
    part = fields.pop("part", samples)
    library = LibraryScore("native", part, value, known, fields.pop("agreement", 1.0), 0.0, True)
    data = DataRecord("test.npz", fields.pop("digest", "0"), samples, 0 if value is None else samples)
    report = AccuracyReport("a", "x86-64", "accuracy", True, data, Score(samples, known), library)
    return replace(report, **fields)


def made_from(repo: Path, model: str, target: str) -> tuple[dict, dict]:
    """Return the records of a search and a compilation with the params in `repo`, of its model file."""
    params = load_params(repo / "params.yaml")
    declared, device = params.models[model], get_target(target, repo).with_threads(params.targets[target].threads)
    of_model = model_record(repo / declared.source, declared.source, ImportOptions(declared.shapes, declared.fix))
    search = origin.search_record(origin.search_settings(params), params.budget(model, target), device, repo)
    return of_model | search, of_model | origin.verify_record(origin.verify_settings(params), False, device)


def digests(*files: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


class Repo:
    """Folder for the gate; params.yaml declares the file of the model `a` as a or a.onnx."""

    def __init__(self, path: Path):
        self.path = path

    def params(self, text: str) -> None:
        (self.path / "params.yaml").write_text(text, encoding="utf-8")

    def footprint(self, model: str = "a", target: str = "x86-64", **sizes) -> Path:
        """Write a result made from the present model and params."""
        place = self.path / "out" / "compile" / model / target / "footprint.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(footprint(model, target, **sizes)), encoding="utf-8")
        source = self.path / load_params(self.path / "params.yaml").models[model].source
        source.exists() or source.write_bytes(b"a model")
        search, compiled = made_from(self.path, model, target)
        self.write(place.with_name("search.json"), {"made_from": search})
        self.write(
            place.with_name("manifest.json"),
            {"passes": [], "exact": True, "made_from": compiled, "files": digests(place)},
        )
        return place

    def write(self, path: Path, data: object) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data), encoding="utf-8")

    def samples(self, *names: str) -> None:
        """Write samples that params.yaml names, before they are evaluated."""
        for name in names:
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_bytes(f"samples in {name}".encode())

    def accuracy(self, value: float | None = 0.9, kept: bool = True, **fields: object) -> Path:
        """Write the accuracy of a on x86-64, as it is after its library; and its copy in git, where `kept`."""
        report = accuracy(value, **fields)
        place = self.path / accuracy_file(report.model, report.target)
        self.write(place, report_fields(report))
        if kept:
            self.write(self.path / kept_accuracy(report.model, report.target), report_fields(report))
        return place

    def keep(self, model: str = "a", target: str = "x86-64", **sizes) -> None:
        """Write the copy of a footprint kept in git."""
        place = self.path / "footprints" / model / f"{target}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(footprint(model, target, **sizes)), encoding="utf-8")

    def git(self, *arguments: str) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *arguments], cwd=self.path, check=True, capture_output=True)

    def commit(self, tag: str) -> None:
        self.git("init", "--quiet")
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--message", tag)
        self.git("tag", tag)
