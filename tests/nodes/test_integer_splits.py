"""A quantised model returns the same numbers, byte by byte, however its memory is saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.errors import SequenceError
from passfit.targets import Machine, Target, get_target, how_to_run

from ..frontend.onnx_nodes import NodeCase
from ..models import model_of, save
from .building import HOST, run_lowered
from .integer_oracle import evaluate
from .test_integer_nodes import is_exact

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]

KERNELS = ("legalize", "fold-constant", "fuse-operators")
END = ("share", "order")


def network() -> onnx.ModelProto:
    """Return convolutions of all kinds, a residual sum, a concatenation, sums as results: all on int8."""
    random, node = np.random.default_rng(0), helper.make_node
    constants: dict[str, np.ndarray] = {"z": np.int8(-3), "zy": np.int8(5)}
    nodes = []

    def conv(x: str, result: str, *shape: int, zero: str = "z", **attributes: object) -> None:
        scales = {
            f"{result}_s": np.float32(0.05),
            f"{result}_ws": random.uniform(0.002, 0.004, shape[0]).astype(np.float32),
        }
        constants.update(scales)
        constants[f"{result}_w"] = random.integers(-128, 128, shape, np.int8)
        constants[f"{result}_wz"] = np.zeros(shape[0], np.int8)
        constants[f"{result}_b"] = random.integers(-500, 500, shape[0], np.int32)
        names = [x, f"{result}_s", "z", *(f"{result}_{each}" for each in ("w", "ws", "wz", "s")), zero, f"{result}_b"]
        nodes.append(node("QLinearConv", names, [result], **attributes))

    conv("x", "a", 16, 3, 3, 3, pads=[1, 1, 1, 1])
    conv("a", "b", 16, 1, 3, 3, pads=[1, 1, 1, 1], group=16)
    conv("b", "c", 16, 16, 1, 1)
    nodes += [
        node("DequantizeLinear", ["a", "a_s", "z"], ["af"]), node("DequantizeLinear", ["c", "c_s", "z"], ["cf"]),
        node("Add", ["af", "cf"], ["sf"]), node("QuantizeLinear", ["sf", "b_s", "z"], ["s"]),
        node("Concat", ["s", "c"], ["t"], axis=1),
    ]  # fmt: skip
    conv("t", "u", 24, 32, 3, 3, pads=[0, 1, 1, 0], strides=[2, 2])
    conv("u", "y", 8, 24, 1, 1, zero="zy")
    nodes.append(node("ConvInteger", ["u", "y_w", "z"], ["i"]))
    dtypes = {"x": TensorProto.INT8, "y": TensorProto.INT8, "i": TensorProto.INT32}
    return model_of(nodes, {"x": (1, 3, 12, 13)}, ["y", "i"], constants, dtypes=dtypes)


def _specs() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [("cut-sums",), ("rematerialise{steps=0,before=3}",)]
    for first, last in ((0, 1), (0, 2), (0, 5), (1, 2), (2, 3), (4, 5), (6, 6)):
        found.append((f"split-rows{{steps={first}-{last},rows=2}}",))
        found.append((f"split-channels{{steps={first}-{last},channels=2}}",))
    found += [
        ("split-rows{steps=1-2,axis=3,rows=5}",),
        ("split-rows{steps=1-2,in_place=1}",),
        ("split-rows{steps=2-4}",),
    ]
    return found


@pytest.mark.parametrize(
    "target, machine",
    [(HOST, Machine()), *((target, target.machine) for target in (HOST, get_target("rpi4"), get_target("beaglebone")))],
    ids=["planes", "channels last", "rpi4", "beaglebone"],
)
def test_memory_actions_change_no_byte(target: Target, machine: Machine, tmp_path: Path) -> None:
    from passfit.frontend.canonicalise import import_model
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import Sequence

    given = network()
    inputs = {"x": np.random.default_rng(1).integers(-128, 128, (1, 3, 12, 13), np.int8)}
    case = NodeCase("split", "split", given, inputs, tuple(evaluate(given, inputs)), 0, 0)
    model = import_model(save(given, tmp_path))
    module = to_relax(model)
    lowered, workspace = [], 0
    every = target is HOST
    for specs in _specs():
        if not every and "steps=0-2" not in specs[0] and "steps=4-5" not in specs[0]:  # enough for kernels of a target
            continue
        try:
            part, needed = replay(Sequence.parse((*KERNELS, *specs, *END)), module, model, "split", machine)
        except SequenceError:  # these steps do not stream
            continue
        lowered.append((replace(case, name="".join(specs)), part))
        workspace = max(workspace, needed)
    kinds = {name.split("{")[0] for name in (each.name for each, _ in lowered)}
    assert kinds == ({"cut-sums", "rematerialise", "split-rows", "split-channels"} if every else {"split-rows"})
    assert len(lowered) >= (8 if every else 2)
    outcomes = run_lowered(lowered, workspace, tmp_path, target)
    assert [name for name, outcome in outcomes.items() if not is_exact(case, outcome.outputs)] == []
