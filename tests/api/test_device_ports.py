"""Compile with the ports of docs/microcontrollers.md: the library takes the device's bytes, and says so in every file."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from passfit import api
from passfit.card import model_card
from passfit.card.facts import read_facts
from passfit.cli.option_groups import ModelOptions
from passfit.memory import read_report
from passfit.search.settings import SearchSettings
from passfit.targets import get_target, how_to_run

from ..models import NodeBuilder, save

pytestmark = pytest.mark.slow
HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
PAGE = Path(__file__).parents[2] / "docs" / "microcontrollers.md"


def documented() -> ModelOptions:
    """Return the options of the command in the page."""
    (command,) = re.findall(
        r"^passfit compile person.onnx (.*?)\n```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    words = shlex.split(command.replace("\\\n", " "))
    given = dict(zip(words[::2], words[1::2]))
    return ModelOptions(input_=[given["--input"]], output=[given["--output"]])


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = NodeBuilder()
    first = build.node("Relu", build.node("Conv", "x", build.weight(4, 3, 3, 3), strides=[2, 2], pads=[1] * 4))
    flat = build.node("Flatten", build.node("GlobalAveragePool", first))
    build.node("Softmax", build.node("MatMul", flat, build.weight(4, 5)))
    model = build.model((1, 3, 24, 24), *build.results())
    for node in model.graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                names[place] = {"x": "image", model.graph.output[0].name: "scores"}.get(name, name)
    model.graph.input[0].name, model.graph.output[0].name = "image", "scores"
    return save(model, tmp_path_factory.mktemp("person"), "person.onnx")


@native
def test_the_documented_ports_are_in_every_file(person: Path, tmp_path: Path):
    search = SearchSettings(evaluations=1)
    floats = api.compile_model(person, HOST, out=tmp_path / "floats", search=search)
    bytes_ = api.compile_model(person, HOST, out=tmp_path / "bytes", search=search, **documented().keywords())
    assert bytes_.best.arena < floats.best.arena
    assert bytes_.measured.max_abs_error == 0
    folder = tmp_path / "bytes"
    words = "write 24x24x3 bytes, rows of BGR pixels; the network gets (number - mean) / std, mean 123.7, 116.3, 103.5"
    assert words in (folder / "person.h").read_text()
    io = json.loads((folder / "manifest.json").read_text())["io"]
    assert (io["inputs"][0]["dtype"], io["inputs"][0]["shape"]) == ("uint8", [1, 24, 24, 3])
    assert (io["outputs"][0]["dtype"], io["outputs"][0]["shape"]) == ("int32", [1, 2])
    card = model_card(read_facts(folder, read_report(folder / "footprint.json"), HOST))
    assert words in card and "before the last Softmax, the indices of the top 2 numbers" in card
    kept = np.frombuffer((folder / "inputs.bin").read_bytes()[4:], np.uint8)
    assert kept.size % (24 * 24 * 3) == 0
