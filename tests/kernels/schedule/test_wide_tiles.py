"""Test tiles of more bytes than TVM leaves on the stack: the library has the workspace for them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

pytest.importorskip("tvm")

from passfit.codegen.build_library import build_library
from passfit.frontend.imported_model import load
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import Sequence
from passfit.targets import Machine, get_target, how_to_run
from passfit.verify.runner import link
from tests.models import model_of, run, save

HOST = get_target("x86-64")
pytestmark = [
    pytest.mark.tvm,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]


@pytest.mark.parametrize("lanes, registers", [(8, 16), (16, 16), (16, 32), (32, 8), (64, 8)])
def test_a_product_runs_in_tiles_of_any_size(tmp_path, lanes, registers):
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((48, 32), (32, 128)))
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x.shape}, {"y": (48, 128)}, {"w": w})
    imported = load(save(model, tmp_path), "product")
    sequence = Sequence(tuple(map(parse_spec, ("legalize", "fuse-operators"))))
    machine = Machine(lanes, registers)
    lowered, workspace = replay(sequence, imported.graph, imported.onnx, "product", machine)
    library = build_library("product", lowered, checked_plan(lowered.program, HOST), workspace, HOST, tmp_path)
    _, (outputs,) = link(library, lowered.program, HOST, tmp_path).run([{"x": x}])
    np.testing.assert_allclose(outputs["y"], run(model, {"x": x})[0], rtol=1e-4, atol=1e-4)
