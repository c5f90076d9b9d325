"""Scatters count places in the shape of the data, whatever the shape of the updates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from passfit.targets import how_to_run

from ..frontend.onnx_nodes import NodeCase
from ..models import model_of, run
from .building import HOST
from .single import single, wrong

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]


SHAPE = (5, 4, 6)


@pytest.mark.parametrize("reduction", ["none", "add", "min"])
def test_fewer_updates_than_data_along_any_axis(reduction: str, tmp_path: Path) -> None:
    random, cases = np.random.default_rng(0), []
    for kind in (np.float32, np.int64):
        data = random.integers(-9, 9, SHAPE).astype(kind)
        for axis in (0, 1, -1):
            for shape in ((2, 3, 4), (5, 3, 6), (5, 4, 3)):
                updates = random.integers(-9, 9, shape).astype(kind)
                # places are unique along the axis, and negative ones count from the end
                order = np.argsort(
                    random.random([SHAPE[axis] if place == axis % 3 else each for place, each in enumerate(shape)]),
                    axis=axis,
                )
                places = np.take(order, range(shape[axis]), axis=axis)
                places = np.where(random.random(shape) < 0.5, places, places - SHAPE[axis])
                name = f"{kind.__name__}-{axis}-{shape}"
                cases.append(single(name, "ScatterElements", [data, places, updates], axis=axis, reduction=reduction))
    assert wrong(cases, tmp_path) == {}


def test_truth_values_are_joined(tmp_path: Path) -> None:
    data, updates = np.array([True, False, True, False]), np.array([True, True, False, False, True])
    places = np.array([0, 1, 2, -1, 1])
    cases = [single(f"{how}", "ScatterElements", [data, places, updates], reduction=how) for how in ("add", "mul")]
    cases += [
        single(f"ND-{how}", "ScatterND", [data, places[:, None], updates], reduction=how) for how in ("add", "mul")
    ]
    assert wrong(cases, tmp_path) == {}


#: operators whose kernels are loops of their own, with constants by operand; "a" is the operand that was a byte
_LOOPS = {
    "CumSum": (["a", "axis"], {"axis": np.int64(1)}),
    "ScatterElements": (["a", "i", "u"], {"i": np.int64([[1, 0], [0, 1]]), "u": np.float32([[7, 8], [9, 6]])}),
    "ScatterElements of updates": (
        ["d", "i", "a"],
        {"d": np.ones((4, 6), np.float32), "i": np.int64([[1, 3] * 3, [2, 0] * 3])},
    ),
    "ScatterND": (["a", "i", "u"], {"i": np.int64([[1]]), "u": np.ones((1, 6), np.float32)}),
    "ScatterND of updates": (["d", "i", "a"], {"d": np.ones((4, 6), np.float32), "i": np.int64([[3], [1]])}),
}


def test_their_operands_may_be_widened_bytes(tmp_path: Path) -> None:
    """Other kernels widen bytes as they read them; these read any buffer of floats."""
    cases = []
    for name, (operands, constants) in _LOOPS.items():
        for kind in (np.int8, np.uint8):
            number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
            x = np.arange(12).reshape(2, 6).astype(kind)
            wider = {
                "cast": helper.make_node("Cast", ["x"], ["a"], to=TensorProto.FLOAT),
                "dequantised": helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]),
            }
            for how, widen in wider.items():
                used = constants | ({"s": np.float32(0.5), "z": kind(3)} if how == "dequantised" else {})
                nodes = [widen, helper.make_node(name.partition(" ")[0], operands, ["y"])]
                shape = (4, 6) if "d" in constants else (2, 6)
                model = model_of(nodes, {"x": (2, 6)}, {"y": shape}, used, dtypes={"x": number}, opset=18)
                title = f"{name}, {how} {kind.__name__}"
                cases.append(NodeCase(title, nodes[1].op_type, model, {"x": x}, tuple(run(model, {"x": x})), 0, 0))
    assert wrong(cases, tmp_path) == {}
