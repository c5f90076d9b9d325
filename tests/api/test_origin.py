"""Test the origin recorded by `compile` against the gate's, also without DVC."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tvm")

from passfit import api
from passfit.artifacts.places import compile_dir
from passfit.gate import run_gate
from passfit.targets import get_target

pytestmark = [pytest.mark.tvm, pytest.mark.slow]
PARAMS = """
models: {m: {source: m.onnx, shapes: {image: [1, 3, 16, 16]}}}
targets: {x86-64: {budget: {ram: 1MiB}}}
search: {strategy: greedy, evaluations: 3, max-extra-compute: null}
verify: {cases: 1}
"""


def test_a_result_compiled_by_hand_is_judged_until_something_changes(save_tiny_cnn, tmp_path: Path):
    (tmp_path / "params.yaml").write_text(PARAMS)
    api.compile_model(
        save_tiny_cnn(tmp_path / "m.onnx"), get_target("x86-64"), out=tmp_path / compile_dir("m", "x86-64"),
        search=api.SearchSettings("greedy", 3, max_extra_compute=None), verify=api.VerifySettings(cases=1),
        shapes={"image": [1, 3, 16, 16]},
    )  # fmt: skip
    judged = run_gate(tmp_path)
    assert judged.exit_code == 0, judged.text
    save_tiny_cnn(tmp_path / "m.onnx", seed=1)
    assert run_gate(tmp_path).exit_code == 2
    save_tiny_cnn(tmp_path / "m.onnx")
    assert run_gate(tmp_path).exit_code == 0
    (tmp_path / "params.yaml").write_text(PARAMS.replace("evaluations: 3", "evaluations: 4"))
    assert "search.evaluations changed" in run_gate(tmp_path).text
