"""Follow every lever that the gate prints for failing limits, on a board and on Linux: each helps as it says."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml

from passfit.gate import run_gate
from passfit.memory import read_report
from passfit.params.params import load_params
from passfit.stages.compile import compile_library
from passfit.stages.import_model import import_model
from passfit.stages.optimize import optimize
from passfit.stages.tune import tune
from passfit.support.sizes import parse_size
from passfit.targets import get_target

from ..models import NodeBuilder, save
from .samples import Repo

pytestmark = [pytest.mark.slow, pytest.mark.tvm]

#: part of a predicted gain that there is at least, and part of predicted sizes by which those built exceed them at most
_GAINED, _NEAR = 0.8, 0.1


def convolutions() -> onnx.ModelProto:
    build, x = NodeBuilder(), "x"
    for inputs, filters, stride in ((2, 8, 1), (8, 8, 1), (8, 16, 2)):
        weight = build.weight(filters, inputs, 3, 3)
        x = build.node("Relu", build.node("Conv", x, weight, pads=[1, 1, 1, 1], strides=[stride, stride]))
    return build.model((1, 2, 16, 16), build.node("GlobalAveragePool", x))


def words() -> onnx.ModelProto:
    build = NodeBuilder()
    taken = build.node("Gather", build.weight(40, 16), "x")
    hidden = build.node("Relu", build.node("MatMul", taken, build.weight(16, 40)))
    last = build.node("MatMul", hidden, build.weight(40, 20))
    return build.model((1, 12), build.node("Softmax", last, axis=-1), dtypes={"x": onnx.TensorProto.INT64})


def dense() -> onnx.ModelProto:
    build = NodeBuilder()
    hidden = build.node("Relu", build.node("MatMul", "x", build.weight(48, 128)))
    return build.model((1, 48), build.node("MatMul", hidden, build.weight(128, 8)))


def gated() -> onnx.ModelProto:
    """Return a network with a large result that waits for a gate: to run its kernel twice takes less."""
    build = NodeBuilder()
    waits = build.node("Relu", build.node("Conv", "x", build.weight(8, 2, 1, 1)))
    x, inputs = build.node("MaxPool", waits, kernel_shape=[2, 2], strides=[2, 2]), 8
    for _ in range(3):
        x = build.node("Relu", build.node("Conv", x, build.weight(16, inputs, 3, 3), pads=[1, 1, 1, 1]))
        inputs = 16
    gate = build.node("Conv", build.node("GlobalAveragePool", x), build.weight(8, 16, 1, 1))
    mixed = build.node("Mul", waits, build.node("Sigmoid", gate))
    return build.model((1, 2, 24, 24), build.node("Conv", mixed, build.weight(2, 8, 1, 1)))


MODELS = {"convolutions": convolutions, "words": words, "dense": dense, "gated": gated}


@dataclass
class Pipeline:
    """A repo of one model and one target, whose stages run one by one."""

    repo: Repo
    model: str
    target: str
    data: dict

    def run(self) -> None:
        """Search and compile by the present params.yaml."""
        (self.repo.path / "params.yaml").write_text(yaml.safe_dump(self.data))
        params = load_params(self.repo.path / "params.yaml")
        import_model(params, self.model, f"{self.model}.onnx")
        optimize(params, self.model, self.target)
        tune(params, self.model, self.target)
        compile_library(params, self.model, self.target)

    @property
    def used(self) -> dict[str, float]:
        report = read_report(self.repo.path / "out/compile" / self.model / self.target / "footprint.json")
        # with an operating system no stack is predicted
        ram = report.best.ram if get_target(self.target).bare else report.best.planned_ram
        return {"ram": ram, "flash": report.best.flash, "time": report.measured.instructions or 0}

    def levers(self, against: str | None) -> list[str]:
        causes = json.loads(run_gate(self.repo.path, explain=True, format="json", against=against).text)["causes"]
        return [each.partition("next: ")[2] for each in causes if "next: " in each]

    def follow(self, lever: str) -> None:
        """Change params.yaml, or the model, as a lever says, and run the stages again."""
        if lever.startswith("the model quantised to int8"):
            quantise(self.repo.path / f"{self.model}.onnx")
        else:
            for entries, section in re.findall(r"(?:^| and )(.+?) under (\S+)", _change(lever)):
                place = self.data
                for key in section.split("."):
                    place = place.setdefault(key, {})
                place.update(yaml.safe_load(f"{{{entries}}}"))
        self.run()


def quantise(file: Path) -> None:
    from onnxruntime.quantization import CalibrationDataReader, quantize_static

    class Cases(CalibrationDataReader):
        def __init__(self) -> None:
            port = onnx.load(file).graph.input[0]
            shape = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
            random = np.random.default_rng(1)
            floats = port.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
            self._left = [
                {port.name: random.normal(size=shape).astype(np.float32) if floats else random.integers(0, 40, shape)}
                for _ in range(3)
            ]

        def get_next(self) -> dict[str, np.ndarray] | None:
            return self._left.pop() if self._left else None

    quantize_static(file, file, Cases(), per_channel=True)


def said(lever: str) -> dict[str, float]:
    """Return ram, flash and time, relative to the present, that a lever promises."""
    text = lever.rpartition(": ")[2]
    found: dict[str, float] = {
        name: parse_size(size.replace(" ", "").replace(",", ""))
        for name, size in re.findall(r"(ram|flash) ([\d.,]+ \w+) instead of", text)
    }
    if before := re.search(r"ram [\d.,]+ \w+ instead of ([\d.,]+ \w+)", text):
        found["before"] = parse_size(before[1].replace(" ", "").replace(",", ""))
    if time := re.search(r"([\d.]+) × the time", text):
        found["time"] = float(time[1])
    return found


def _change(lever: str) -> str:
    """Return what a lever says to change."""
    return re.split(r" in params.yaml: |: (?=(?:ram|flash) \d)", lever)[0]


INT8 = "the model quantised to int8 (QDQ)"
FASTEST = "objective: fastest-within-budget under search"
NIGHTLY = pytest.mark.nightly
CASES = [
    ("convolutions", "stm32f446", {"ram": "2KiB"}, [INT8]),
    ("convolutions", "stm32f446", {"flash": "9KiB"}, [INT8]),
    ("convolutions", "stm32f446", {"instructions": 1000}, ["opt: speed under targets.stm32f446"]),
    pytest.param("dense", "stm32f446", {"flash": "12KiB"}, [INT8], marks=NIGHTLY),
    ("words", "stm32f446", {"instructions": 1000}, [FASTEST]),
    pytest.param("gated", "stm32f446", {}, ["max-extra-compute, max-slowdown: null under search", INT8], marks=NIGHTLY),
    (
        "convolutions",
        "rpi4",
        {"flash": "9KiB"},
        ["opt: size under targets.rpi4", INT8],
    ),
    pytest.param("convolutions", "rpi4", {"instructions": 1000}, [FASTEST], marks=NIGHTLY),
    ("dense", "rpi4", {"ram": "600B"}, [INT8]),
    ("words", "rpi4", {"instructions": 1000}, []),
    ("words", "rpi4", {}, ["max-slowdown under search", "max-slowdown under search", INT8]),
    ("gated", "rpi4", {}, ["max-extra-compute, max-slowdown: null under search", INT8]),
]


@pytest.mark.parametrize(("model", "target", "limits", "expected"), CASES, ids=lambda each: str(each))
def test_every_lever_helps_as_it_says_and_no_other_is_printed(tmp_path, monkeypatch, model, target, limits, expected):
    """Without limits, ram has grown since a commit."""
    monkeypatch.chdir(tmp_path)
    save(MODELS[model](), tmp_path, f"{model}.onnx")
    given = (tmp_path / f"{model}.onnx").read_bytes()
    search = {"evaluations": 12 if model == "words" else 1, "seconds": 10, "workers": 0}
    search |= {"max-extra-compute": 0.01} if model == "gated" else {}
    data = {"models": {model: {"source": f"{model}.onnx"}}, "targets": {target: {"budget": limits}}, "search": search}
    pipeline = Pipeline(Repo(tmp_path), model, target, data)
    pipeline.run()
    if not limits:
        pipeline.repo.keep(model, target, ram=64, flash=1 << 20)
        pipeline.repo.commit("then")
        shutil.rmtree(tmp_path / "footprints")
    before, settings = pipeline.used, json.dumps(data)
    levers = pipeline.levers(None if limits else "then")
    assert [re.sub(r": [\d.]+", "", each) for each in map(_change, levers)] == expected
    quantity = {"instructions": "time"}.get(failing := next(iter(limits), "ram"), failing)
    for lever in levers:
        pipeline.data = json.loads(settings)
        (tmp_path / f"{model}.onnx").write_bytes(given)
        pipeline.follow(lever)
        promised = said(lever) | ({"time": said(lever)["time"] * before["time"]} if "time" in said(lever) else {})
        gain = (promised["before"] if quantity == "ram" else before[quantity]) - promised[quantity]
        assert before[quantity] - pipeline.used[quantity] >= _GAINED * gain > 0, lever
        for paid in {"ram", "flash"} & promised.keys():
            assert pipeline.used[paid] <= (1 + _NEAR) * promised[paid], lever
