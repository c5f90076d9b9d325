"""Run docs/exporting.md as it is written, a framework at a time, and check that what passfit is quoted with is what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model
from passfit.frontend.source.import_options import ImportOptions

from ..models import model_of

pytestmark = pytest.mark.slow
PAGE = (Path(__file__).parents[2] / "docs" / "exporting.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
#: what each section imports
NEEDED = {
    "PyTorch": ("torch", "onnxscript"),
    "Keras": ("keras", "torch"),
    "TensorFlow Lite": ("tensorflow", "tf2onnx"),
    "scikit-learn": ("skl2onnx", "sklearn"),
}


def test_every_section_is_run():
    assert SECTIONS.keys() == NEEDED.keys()


def find_python(modules: tuple[str, ...]) -> str:
    """Return a Python that has the modules: this one, or the one of EXPORTERS. Skips without."""
    for python in filter(None, (sys.executable, os.environ.get("EXPORTERS"))):
        code = f"import importlib.util; assert all(map(importlib.util.find_spec, {modules}))"
        if subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip(f"no Python with {' and '.join(modules)} is here: make exporters")


@pytest.mark.parametrize("section", NEEDED)
def test_commands_of_a_framework_do_what_the_page_says(section: str, tmp_path: Path, warm):
    python = find_python(NEEDED[section])
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", SECTIONS[section], re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "sh"]
    (tmp_path / "export.py").write_text(blocks[0][1], encoding="utf-8")
    path = map(str, (warm.python.parent, Path(sys.executable).parent, os.environ["PATH"]))
    environment = {"PATH": os.pathsep.join(path), "CUDA_VISIBLE_DEVICES": ""}
    run(tmp_path, f"{python} export.py", environment)
    commands = blocks[1][1].replace("python -m", f"{python} -m")
    assert "fits" in run(tmp_path, commands, environment)
    # compiling checks that the library computes what ONNX Runtime does
    given = re.search(r"passfit fit (\S+\.onnx(?: --shape \S+)?)", commands)
    assert given
    run(tmp_path, f"passfit compile {given[1]} --target x86-64 --evaluations 1 --out build", environment)
    assert (tmp_path / "build" / "footprint.json").is_file()


def run(folder: Path, commands: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-e", "-c", commands], cwd=folder, env=os.environ | environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def refused() -> dict[str, onnx.ModelProto]:
    """Return a model for each row of the table that names an error, by a word of the row."""
    weights = {"w": np.ones((4, 3, 3, 3), np.float32)}
    scales = {name: np.ones(3, np.float32) for name in "sbmv"}
    normalise = helper.make_node("BatchNormalization", ["x", *"sbmv"], ["y", "m2", "v2"], training_mode=1)
    select = helper.make_node("NonMaxSuppression", ["boxes", "scores"], ["y"])
    return {
        "sizes": model_of([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": (1, 3, "h", 8)}, ["y"], weights),
        "evaluation": model_of([normalise], {"x": (1, 3, 8, 8)}, {"y": (1, 3, 8, 8)}, scales),
        "NMS": model_of([select], {"boxes": (1, 9, 4), "scores": (1, 1, 9)}, {"y": (None, 3)}, dtypes={"y": TensorProto.INT64}),
    }  # fmt: skip


@pytest.mark.parametrize("word", refused())
def test_errors_are_those_of_the_table(word: str, tmp_path: Path):
    row = next(line for line in PAGE.splitlines() if line.startswith("| ") and word in line)
    onnx.save(refused()[word], tmp_path / "model.onnx")
    with pytest.raises(ModelError) as error:
        import_model(tmp_path / "model.onnx", ImportOptions())
    quoted = re.findall(r"`([^`]+)`", row.split("|")[3])
    assert quoted[0] in str(error.value)
    assert all(each in str(error.value) for each in quoted if each == "--shape")
