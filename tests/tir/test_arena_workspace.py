"""Put the workspace of kernels into the arena: no allocation is left that a library would have to supply."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from passfit.codegen.build_library import build_library
from passfit.codegen.elf import archive_members
from passfit.frontend.imported_model import load
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
from passfit.program.workspaces import largest_workspace
from passfit.targets import get_target
from passfit.verify.runner import link

from ..models import model_of, run, save

pytestmark = pytest.mark.tvm


@pytest.mark.parametrize("target", ["x86-64", "rpi4", "bpi-f3"])
def test_kernels_with_a_workspace_in_the_arena_compute_the_same(tmp_path, target: str):
    """A depthwise convolution has lines of its own, a softmax its exponentials."""
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((1, 8, 40, 80), (8, 1, 3, 3)))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], group=8, pads=[1] * 4), helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Softmax", ["b"], ["y"], axis=1),
    ]  # fmt: skip
    model = model_of(nodes, {"x": x.shape}, ["y"], {"w": w})
    device = get_target(target)
    imported = load(save(model, tmp_path), "lines")
    lowered, beside = replay(Sequence.parse(TVM_DEFAULT), imported.graph, imported.onnx, "lines", device.machine)
    assert beside == 0 < largest_workspace(lowered.program)
    library = build_library("lines", lowered, checked_plan(lowered.program, device), beside, device, tmp_path)
    assert not any(b"AllocWorkspace" in body for _, body in archive_members(library.archive.read_bytes()))
    _, (outputs,) = link(library, lowered.program, device, tmp_path).run([{"x": x}])
    np.testing.assert_allclose(outputs["y"], run(model, {"x": x})[0], rtol=1e-4, atol=1e-5)
