"""A model with samples of its own, from `init --data` to a gate that refuses a retraining, with real DVC and real stages."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from ..digits import save_digits, train_network

pytestmark = [pytest.mark.slow, pytest.mark.tvm]


def test_a_retraining_of_the_same_size_that_decides_worse_does_not_pass(tmp_path, make_repo):
    repo = make_repo(tmp_path / "repo")
    save_digits(repo.root, 200)
    onnx.save(train_network(), repo.root / "net.onnx")
    repo.passfit("init", "--model", "net.onnx", "--target", "x86-64", "--data", "digits.npz")
    repo.shorten_search()
    repo.edit("params.yaml", "{ram: null, flash: null}", "{accuracy: 0.9, min-agreement: 1.0}")
    repo.repro("footprint")
    assert "accuracy.json. Run `dvc repro`" in repo.passfit("gate", expect=2)
    assert repo.repro("evaluate-net") == {"toolchain", "evaluate-net@x86-64"}
    found = json.loads((repo.root / "accuracies/net/x86-64.json").read_text())
    assert found["library"]["value"] == found["reference"]["value"] > 0.9 and found["data"]["samples"] == 200
    assert "(200 samples, native)" in repo.passfit("gate")
    repo.run("git", "add", "-A")
    repo.run("git", "commit", "-qm", "one")

    repo.edit("params.yaml", "accuracy: 0.9", "accuracy: 0.91")  # limits of accuracy make nothing again
    assert repo.repro("evaluate-net") == {"toolchain"}
    repo.passfit("gate")

    worse = train_network()
    (last,) = [each for each in worse.graph.initializer if each.name == "w2"]
    rows = numpy_helper.to_array(last).copy()
    rows[8] = np.roll(rows[8], 1)
    last.CopyFrom(numpy_helper.from_array(rows, "w2"))
    onnx.save(worse, repo.root / "net.onnx")
    repo.edit("params.yaml", "accuracy: 0.91", "accuracy: 0.1")
    assert "evaluate-net@x86-64" in repo.repro("evaluate-net", "footprint")
    said = repo.passfit("gate", "--against", "HEAD", expect=1)
    (line,) = [line for line in said.splitlines() if line.startswith(("FAIL", "ERROR"))]
    assert line.startswith("FAIL  net @ x86-64: accuracy went from ") and "with the same ram and flash" in line

    save_digits(repo.root, 199)
    assert "stale: digits.npz changed since it was evaluated. Run `dvc repro`." in repo.passfit("gate", expect=2)


def test_what_judges_makes_no_library_again_and_a_retraining_makes_all(tmp_path, make_repo):
    repo = make_repo(tmp_path / "repo")
    save_digits(repo.root, 200)
    onnx.save(train_network(), repo.root / "net.onnx")
    repo.passfit("init", "--model", "net.onnx", "--target", "x86-64", "--data", "digits.npz", "--quantize", "int8")
    repo.shorten_search()
    repo.edit("params.yaml", "data: digits.npz", "data: {source: digits.npz, metric: accuracy}")
    repo.edit("params.yaml", "{ram: null, flash: null}", "{accuracy: 0.9, max-accuracy-loss: 0.01}")
    makes = {"quantize-net", "import@net", "optimize@net-x86-64", "compile@net-x86-64", "evaluate-net@x86-64"}
    judged = ("footprint", "evaluate-net")
    assert makes <= repo.repro(*judged)
    assert "accuracy loss budget" in repo.passfit("gate", "--all")
    assert repo.repro(*judged) == {"toolchain"}

    repo.edit("params.yaml", "accuracy: 0.9", "accuracy: 0.8")
    assert not makes & repo.repro(*judged)
    repo.edit("params.yaml", "metric: accuracy", "metric: f1")
    assert makes & repo.repro(*judged) == {"quantize-net", "evaluate-net@x86-64"}
    assert "f1" in repo.passfit("gate", "--all")

    trained = train_network()
    (last,) = [each for each in trained.graph.initializer if each.name == "w2"]
    last.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(last) * np.float32(0.9), "w2"))
    onnx.save(trained, repo.root / "net.onnx")
    assert makes <= repo.repro(*judged)
    repo.passfit("gate")
