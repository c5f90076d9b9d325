"""Hand over a model card, a CycloneDX BOM and the licence with a package: what they say is what is in the folder."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from passfit import api
from passfit.data.accuracy import report_fields
from passfit.package import write_package
from passfit.targets import get_target

from ..report.results import accuracy

pytest.importorskip("cyclonedx", reason="the extra `test` is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.tvm]
BOARD = "mps2-an386"
DOCUMENTS = ("MODEL_CARD.md", "bom.cdx.json", "LICENSE")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, result) -> tuple[Path, Path]:
    """Compile a model with a licence beside it, in two folders."""
    model = result(BOARD).parent / "small-net.onnx"
    made = []
    for name in ("one", "two"):
        folder = tmp_path_factory.mktemp(name)
        shutil.copy(model, folder)
        (folder / "LICENSE.txt").write_text("SPDX-License-Identifier: MIT\nPermission is hereby granted\n")
        search = api.SearchSettings("tvm-default", workers=0)
        api.compile_model(folder / model.name, get_target(BOARD), out=folder / "out", search=search)
        made.append(folder / "out")
    return made[0], made[1]


@pytest.fixture(scope="module")
def packages(results: tuple[Path, Path]) -> tuple[Path, Path]:
    for folder in results:
        write_package(folder, "cmake", folder.parent / "package")
    return results[0].parent / "package", results[1].parent / "package"


def test_two_folders_give_the_same_documents(packages: tuple[Path, Path]):
    for name in DOCUMENTS:
        assert (packages[0] / name).read_bytes() == (packages[1] / name).read_bytes()
        assert str(packages[0].parent) not in (packages[0] / name).read_text()


def test_the_bom_is_valid_and_its_hashes_are_those_of_the_files(
    results: tuple[Path, Path], packages: tuple[Path, Path]
):
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = (packages[0] / "bom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bom = json.loads(text)
    hashes = {part["name"]: part["hashes"][0]["content"] for part in bom["components"]}
    assert set(hashes) == {
        "small-net.onnx", "libsmall_net.a", "small_net.h", "inputs.bin", "outputs.bin", "golden.json", "LICENSE",
    }  # fmt: skip
    places = {"small-net.onnx": results[0].parent / "small-net.onnx", "LICENSE": packages[0] / "LICENSE"} | {
        name: results[0] / name for name in ("inputs.bin", "outputs.bin", "golden.json")
    }
    places |= {
        "libsmall_net.a": packages[0] / "lib" / "libsmall_net.a",
        "small_net.h": packages[0] / "include" / "small_net.h",
    }
    assert hashes == {name: hashlib.sha256(place.read_bytes()).hexdigest() for name, place in places.items()}
    model = bom["metadata"]["component"]
    assert model["licenses"] == [{"expression": "MIT", "acknowledgement": "declared"}]
    assert [each["format"] for each in model["modelCard"]["modelParameters"]["inputs"]] == ["x: float32 [2, 16]"]
    assert {tool["name"]: tool["version"] for tool in bom["metadata"]["tools"]["components"]} == json.loads(
        (results[0] / "manifest.json").read_text()
    )["versions"]


def test_the_card_tells_model_memory_passes_and_accuracy(results: tuple[Path, Path], packages: tuple[Path, Path]):
    card = (packages[0] / "MODEL_CARD.md").read_text()
    manifest = json.loads((results[0] / "manifest.json").read_text())
    assert "| licence | MIT, text in `LICENSE` (stated by: LICENSE.txt beside the model) |" in card
    assert all(f"`{spec}`" in card for spec in manifest["passes"]) and manifest["source"]["sha256"] in card
    assert "| output 1: best | int64 | 2 |  |  |" in card and "error against ONNX Runtime" in card
    assert (packages[0] / "LICENSE").read_bytes() == (results[0].parent / "LICENSE.txt").read_bytes()


def test_in_a_repo_the_card_has_the_budget_of_params_yaml(results: tuple[Path, Path], tmp_path: Path):
    folder = tmp_path / "out" / "compile" / "small-net" / BOARD
    shutil.copytree(results[0], folder)
    budget = f"targets: {{{BOARD}: {{budget: {{ram: 16}}}}}}\n"
    (tmp_path / "params.yaml").write_text(f"models: {{small-net: {{source: small-net.onnx}}}}\n{budget}")
    write_package(folder, "cmake", tmp_path / "package", repo=tmp_path)
    card = (tmp_path / "package" / "MODEL_CARD.md").read_text()
    assert "**It does not fit the budget.**" in card and "| 16 B |" in card
    assert "It fits the device." in (results[0].parent / "package" / "MODEL_CARD.md").read_text()


def test_in_a_repo_the_card_has_the_accuracy_on_samples(results: tuple[Path, Path], tmp_path: Path):
    folder = tmp_path / "out" / "compile" / "small-net" / BOARD
    shutil.copytree(results[0], folder)
    source = "{source: small-net.onnx, data: test.npz}"
    (tmp_path / "params.yaml").write_text(f"models: {{small-net: {source}}}\ntargets: {{{BOARD}: }}\n")
    (tmp_path / "test.npz").write_bytes(b"samples")
    place = tmp_path / "out" / "evaluate" / "small-net" / BOARD / "accuracy.json"
    place.parent.mkdir(parents=True)
    report = accuracy(0.95, "small-net", BOARD)
    place.write_text(json.dumps(report_fields(replace(report, data=replace(report.data, source="test.npz")))))
    write_package(folder, "cmake", tmp_path / "package", repo=tmp_path)
    assert "On samples of its users: accuracy 0.95" in (tmp_path / "package" / "MODEL_CARD.md").read_text()
    assert '"ref": "samples"' in (tmp_path / "package" / "bom.cdx.json").read_text()
