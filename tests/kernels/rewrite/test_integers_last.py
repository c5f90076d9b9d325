"""Integers lie with channels last on machines with pairs: no byte of ram, no other number, no other order of floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.frontend.canonicalise import import_model
from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rewrite.integers_last import integers_last, region_with_integers_last
from passfit.kernels.rewrite.splittable import splits_of
from passfit.memory.streaming.region import region
from passfit.memory.validation.validate_region import validate_region
from passfit.passes.sequence.apply import apply_program_passes
from passfit.passes.sequence.sequence import Sequence
from passfit.support.temporary_folder import scratch_folder
from passfit.targets import Machine, get_target, how_to_run

from ...frontend.onnx_nodes import NodeCase
from ...models import model_of, save
from ...nodes.building import HOST, compile_and_run
from ...nodes.integer_oracle import evaluate
from ...nodes.test_integer_nodes import is_exact

pytestmark = pytest.mark.tvm
KERNELS = ("legalize", "fold-constant", "fuse-operators")


def network(channels: int, size: tuple[int, int], stride: int, zero: int, pool: bool = False) -> onnx.ModelProto:
    """Return a convolution of three channels, a depthwise one, a 1×1, and maybe their mean."""
    random, node = np.random.default_rng(channels), helper.make_node
    constants: dict[str, np.ndarray] = {"s": np.float32(0.05), "z": np.int8(zero)}
    nodes = []
    for x, y, *shape, attributes in (
        ("x", "a", channels, 3, 3, 3, {"pads": [1, 1, 1, 1]}),
        ("a", "b", channels, 1, 3, 3, {"pads": [0, 0, 1, 1], "group": channels, "strides": [stride, stride]}),
        ("b", "c", 16, channels, 1, 1, {}),
        ("c", "d", 16, 1, 3, 3, {"pads": [1, 1, 1, 1], "group": 16}),
        ("d", "y", 8, 16, 1, 1, {}),
    ):
        constants |= {f"{y}_w": random.integers(-127, 128, shape, np.int8), f"{y}_wz": np.zeros(shape[0], np.int8)}
        constants |= {f"{y}_ws": random.uniform(0.002, 0.02, shape[0]).astype(np.float32)}
        constants |= {f"{y}_b": random.integers(-500, 500, shape[0], np.int32)}
        names = [x, "s", "z", f"{y}_w", f"{y}_ws", f"{y}_wz", "s", "z", f"{y}_b"]
        nodes.append(node("QLinearConv", names, [y if y != "y" or not pool else "q"], **attributes))
    if pool:
        nodes += [node("DequantizeLinear", ["q", "s", "z"], ["f"]), node("GlobalAveragePool", ["f"], ["y"])]
    dtypes = {"x": TensorProto.INT8, "y": TensorProto.FLOAT if pool else TensorProto.INT8}
    return model_of(nodes, {"x": (1, 3, *size)}, ["y"], constants, dtypes=dtypes)


def lowered(model: onnx.ModelProto, folder: Path, machine: Machine = HOST.machine, passes: tuple[str, ...] = KERNELS):
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import lower_by_sequence

    imported = import_model(save(model, folder))
    return lower_by_sequence(Sequence.parse(passes), to_relax(imported), imported, "small", machine)


@pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
@settings(max_examples=5)
@given(
    st.sampled_from([8, 11, 24]), st.tuples(st.integers(5, 9), st.integers(5, 20)), st.integers(1, 2), st.sampled_from([-128, 7]),
    st.sampled_from([(), ("split-rows{steps=0-4}",), ("split-rows{steps=1-3,rows=2}",), ("split-rows{steps=0-4,axis=3}",)]),
)  # fmt: skip
def test_results_are_exact_whole_and_row_by_row(channels, size, stride, zero, splits):
    if splits and "rows=2" in splits[0] and (size[0] - 1) // stride % 2 == 0:
        return  # rows that do not go in twos
    model = network(channels, size, stride, zero)
    inputs = {"x": np.random.default_rng(1).integers(-128, 128, (1, 3, *size), np.int8)}
    case = NodeCase("last", "last", model, inputs, tuple(evaluate(model, inputs)), 0, 0)
    with scratch_folder() as folder:
        outcome = compile_and_run([case], (*KERNELS, *splits, "share", "order"), folder)["last"]
    assert outcome.failure == outcome.refusal == ""
    assert is_exact(case, outcome.outputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rpi4", "beaglebone"])
@pytest.mark.parametrize("splits", [(), ("split-rows{steps=1-4}",)], ids=["whole", "rows"])
def test_results_are_exact_on_neon(name, splits, tmp_path):
    target, model = get_target(name), network(16, (7, 9), 1, -3)
    if how_to_run(target).command is None:
        pytest.skip(how_to_run(target).how)
    assert integers_last(lowered(model, tmp_path, target.machine), range(5)).last
    inputs = {"x": np.random.default_rng(1).integers(-128, 128, (1, 3, 7, 9), np.int8)}
    case = NodeCase("last", "last", model, inputs, tuple(evaluate(model, inputs)), 0, 0)
    outcome = compile_and_run([case], (*KERNELS, *splits, "share", "order"), tmp_path, target)["last"]
    assert outcome.failure == outcome.refusal == ""
    assert is_exact(case, outcome.outputs)


def test_a_machine_with_pairs_has_channels_last_for_no_byte_of_memory(tmp_path):
    plain = lowered(network(16, (12, 12), 1, -128), tmp_path)
    moved = integers_last(plain, range(5))
    assert len(moved.last) == 4 and integers_last(moved, range(5)) is moved
    assert integers_last(plain, range(5), moved.last) is plain
    assert len(integers_last(plain, {0, 1}).last) == 2 and integers_last(plain, {0}) is plain
    _, before = schedule_program(plain)
    found, after = apply_program_passes(plain, ())
    assert after <= before and found.program.tensors[plain.program.steps[0].writes[0]].shape == (1, 12, 12, 16)


def test_machines_without_pairs_keep_planes(tmp_path):
    plain = lowered(network(16, (12, 12), 1, -128), tmp_path, get_target("visionfive2").machine)
    assert integers_last(plain, range(5)) is plain


def test_what_a_sum_of_floats_reads_keeps_its_layout(tmp_path):
    plain = lowered(network(16, (12, 12), 1, -128, pool=True), tmp_path, passes=KERNELS[:2])
    *_, before, _ = plain.program.steps
    moved = integers_last(plain, range(len(plain.program.steps)))
    assert len(moved.last) == 4 and before.writes[0] not in moved.last


@pytest.mark.parametrize("size", [(16, 16), (16, 9)], ids=["as many channels as rows and columns", "fewer columns"])
def test_axes_of_a_region_follow_tensors_whose_shape_stays_the_same(size, tmp_path):
    """Rows of 16 × 16 × 16 are axis 1 with channels last, though no shape tells that it moved."""
    plain = lowered(network(16, size, 1, 7), tmp_path)
    found = region(plain.program, splits_of(plain), 1, 3, 2)
    assert found is not None
    moved, after = region_with_integers_last(plain, found)
    written = [plain.program.steps[stage.step].writes[0] for stage in after.stages]
    assert moved.last
    assert [stage.axis for stage in after.stages] == [1 if tensor in moved.last else 2 for tensor in written]
    validate_region(moved.program, splits_of(moved), after)


def test_rules_are_asked_once_for_equal_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first, again = (lowered(network(6, (9, 7), 1, 3), tmp_path) for _ in range(2))
    moved = integers_last(first, set(range(len(first.program.steps))))
    assert moved is not first
    monkeypatch.setattr("passfit.kernels.rewrite.integers_last.flatten_axes", lambda *_: 1 / 0)
    assert integers_last(again, set(range(len(again.program.steps)))).program == moved.program
