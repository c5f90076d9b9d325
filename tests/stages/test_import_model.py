"""Test that the stage `import` gives a model the ports of params.yaml, which later stages read from its files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from passfit import api
from passfit.artifacts.places import canonical_model, given_model
from passfit.frontend.canonical.ports.apply import port_forms
from passfit.frontend.quantised.port_scales import port_facts
from passfit.params.params import load_params
from passfit.stages.import_model import import_model

from ..models import model_of, run, save

PARAMS = """
models: {m: {source: m.onnx, inputs: {x: "uint8,nhwc,scale=0.5,zero-point=3"}, outputs: {y: argmax}}}
targets: {rpi4: }
"""


def test_later_stages_read_the_ports_from_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Flatten", ["r"], ["y"])]
    save(model_of(nodes, {"x": [1, 3, 2, 2]}, {"y": [1, 12]}), tmp_path, "m.onnx")
    (tmp_path / "params.yaml").write_text(PARAMS)
    import_model(load_params(tmp_path / "params.yaml"), "m", "m.onnx")
    loaded = api.load(canonical_model("m"), "m", given=given_model("m"))
    assert loaded.onnx.SerializeToString(deterministic=True) == canonical_model("m").read_bytes()
    assert loaded.given is not None and port_forms(loaded.onnx) == port_forms(loaded.given) != {}
    facts = port_facts(loaded.drawn_for)
    assert (facts["x"]["scale"], facts["x"]["zero_point"]) == (0.5, 3)
    assert facts["x"]["form"] == "write 2x2x3 bytes, rows of pixels; the network gets scale * (number - zero point)"
    raw = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)
    assert run(loaded.onnx, {"x": raw})[0] == run(loaded.given, {"x": raw})[0] == [11]
    made_from = json.loads((canonical_model("m").parent / "origin.json").read_text())["made_from"]
    assert made_from["forms"] == {"y": {"argmax": True}} and made_from["inputs"]["x"]["zero-point"] == 3
