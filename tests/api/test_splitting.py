"""Test libraries with kernels that run row by row: compiled, run, compared, measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from passfit import api
from passfit.memory import FootprintReport, read_plan
from passfit.passes.sequence.sequence import read_sequence
from passfit.targets import get_target, how_to_run

from ..models import model_of, save

pytestmark = pytest.mark.slow

HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
DOWN = ("legalize", "fold-constant", "fuse-operators")


class _Model:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, value: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(value, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def node(self, kind: str, result: str, *reads: str, **options: object) -> None:
        self.nodes.append(helper.make_node(kind, reads, [result], **options))

    def conv(self, x: str, taken: int, given: int, y: str, stride: int = 1, group: int = 1) -> None:
        values = np.random.default_rng(len(self.weights)).standard_normal((given, taken // group, 3, 3))
        weight = self.constant(values.astype(np.float32) / (2 * taken // group))
        self.node("Conv", f"{y} before", x, weight, pads=[1] * 4, strides=[stride] * 2, group=group)
        self.node("Relu", y, f"{y} before")

    def save(self, path: Path, shape: tuple[int, ...], dtype: int = TensorProto.FLOAT) -> Path:
        model = model_of(self.nodes, {"x": shape}, ["y"], self.weights, dtypes={"x": dtype}, name=path.stem)
        return save(model, path.parent, path.name)


def stack(path: Path) -> Path:
    """Make a network on odd extents, with intermediates many times the size of its inputs and outputs."""
    model = _Model()
    model.conv("x", 3, 24, "wide")
    model.conv("wide", 24, 24, "apart", stride=2, group=24)
    model.conv("apart", 24, 4, "y", stride=2)
    return model.save(path, (1, 3, 101, 67))


def photo(path: Path) -> Path:
    """Make a network on a camera's picture: cast, centred, scaled, transposed, then convolved."""
    model = _Model()
    model.node("Cast", "float", "x", to=TensorProto.FLOAT)
    model.node("Sub", "centred", "float", model.constant(np.array([123, 117, 104], np.float32)))
    model.node("Mul", "scaled", "centred", model.constant(np.array(1 / 58, np.float32)))
    model.node("Transpose", "channels", "scaled", perm=[0, 3, 1, 2])
    model.conv("channels", 3, 8, "first", stride=2)
    model.conv("first", 8, 8, "second", stride=2)
    model.node("MaxPool", "y", "second", kernel_shape=[2, 2], strides=[2, 2])
    return model.save(path, (1, 96, 96, 3), TensorProto.UINT8)


def compiled(model: Path, out: Path, *passes: str) -> FootprintReport:
    out.mkdir()
    (out / "s.json").write_text(json.dumps({"passes": [*DOWN, *passes]}))
    return api.compile_model(model, HOST, out=out / "out", sequence=out / "s.json")


def _is_sound(report: FootprintReport) -> None:
    best, measured = report.best, report.measured
    assert measured.ran and measured.max_rel_error <= 1e-5
    assert abs(measured.ram - best.planned_ram) <= max(0.05 * best.planned_ram, 128 * 1024)


@native
@pytest.mark.parametrize(
    "split", ["split-rows{steps=0-2}", "split-rows{steps=1-2,axis=3}", "split-channels{steps=0-1,channels=8}"]
)
def test_a_split_library_agrees_and_needs_less(tmp_path: Path, split: str):
    model = stack(tmp_path / "stack.onnx")
    plain = compiled(model, tmp_path / "plain", "share", "order")
    joined = compiled(model, tmp_path / "split", split, "share", "order")
    for report in (plain, joined):
        _is_sound(report)
    assert joined.best.kernels < plain.best.kernels and joined.best.arena <= plain.best.arena
    saved = read_plan(tmp_path / "split" / "out" / "plan.json")
    assert any(step.kernel.startswith("streamed_") for step in saved.program.steps)
    if "0-2" in split:
        assert joined.best.arena < plain.best.arena / 2


@native
def test_splitting_again_gives_the_same_bytes(tmp_path: Path):
    model = stack(tmp_path / "stack.onnx")
    for name in ("one", "two"):
        compiled(model, tmp_path / name, "split-rows{steps=0-2}", "share", "order")
    for file in ("plan.json", "stack.h", "libstack.a"):
        assert (tmp_path / "one" / "out" / file).read_bytes() == (tmp_path / "two" / "out" / file).read_bytes()


@native
def test_no_float_copy_of_a_photo_is_ever_whole(tmp_path: Path):
    model, pixels = photo(tmp_path / "photo.onnx"), 96 * 96 * 3
    plain = compiled(model, tmp_path / "plain", "share", "order")
    _is_sound(plain)
    found = api.compile_model(model, HOST, out=tmp_path / "found")
    _is_sound(found)
    assert any(spec.startswith("split-") for spec in read_sequence(tmp_path / "found" / "sequence.json").specs)
    assert pixels <= found.best.arena < 5 * pixels <= plain.best.arena
