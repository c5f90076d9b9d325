"""A manifest is checked where it is read: types, sizes, names that become names of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from passfit.errors import ConfigError
from passfit.memory.files.manifest_file import read_manifest

PORT = {"name": "x", "shape": [1, 3], "dtype": "float32", "scale": 0.1}
MANIFEST = {"model": "a", "target": "rpi4", "io": {"name": "a", "inputs": [PORT], "outputs": []}, "later": [1]}


def test_a_manifest_is_read_as_it_is_with_keys_of_other_versions(tmp_path: Path):
    for made in (MANIFEST, {}):
        (file := tmp_path / "manifest.json").write_text(json.dumps(made))
        assert read_manifest(file, "Again.") == made


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"versions": {"onnx": 1}}, "versions.onnx should be a valid string"),
        ({"io": {"name": "../a"}}, "io.name"),
        ({"io": {"name": "a", "inputs": []}}, "io.outputs is missing"),
        ({"io": {"name": "a", "inputs": [{**PORT, "shape": [1, -3]}]}}, "io.inputs.0.shape.1"),
        ({"io": {"name": "a", "inputs": [{**PORT, "dtype": "int7"}]}}, "io.inputs.0.dtype"),
        ({"io": {"name": "a", "inputs": [{"name": "x"}]}}, "io.inputs.0.shape is missing"),
        ({"source": {"source": 1.5}}, "source.source should be a valid string"),
        ({"files": ["a.h"]}, "files should be"),
        ({"threads": 0}, "threads should be"),
        ({"made_from": {"cases": "3"}}, "made_from.cases should be"),
    ],
)
def test_a_malformed_manifest_is_refused_by_its_field(tmp_path: Path, change: dict, said: str):
    (file := tmp_path / "manifest.json").write_text(json.dumps(MANIFEST | change))
    with pytest.raises(ConfigError) as refused:
        read_manifest(file, "Make it again.")
    assert said in str(refused.value) and str(file) in str(refused.value)
