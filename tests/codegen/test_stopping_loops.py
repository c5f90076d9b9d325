"""Check loops that end where a condition of the data says: their code, and the passes that keep them so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("tvm")

from onnx import TensorProto
from tvm.tirx import PrimFunc

from passfit.codegen.build_library import build_library
from passfit.frontend.relax.loop_kernel import ITERATIONS, STOPPING
from passfit.frontend.relax.to_relax import to_relax
from passfit.kernels.lower.lower import Lowered
from passfit.kernels.rewrite.distribute_loop import distribute_loop
from passfit.memory import plan_arena
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
from passfit.program import Loop
from passfit.program.serial import program_from_json, program_to_json
from passfit.targets import get_target

from ..frontend.canonical.control_flow.test_bounded_loops import decoder
from ..frontend.canonical.lengths.checking import imported
from ..models import NodeBuilder
from ..passes.graphs import EXAMPLES, applied

pytestmark = pytest.mark.tvm
HOST = get_target("x86-64")


def suppression() -> onnx.ModelProto:
    """Build NonMaxSuppression of boxes and scores that an input holds."""
    b = NodeBuilder()
    boxes = b.node("Slice", "x", *(b.constant(np.array([each])) for each in (0, 4, 2)))
    scores = b.node(
        "Transpose", b.node("Slice", "x", *(b.constant(np.array([each])) for each in (4, 6, 2))), perm=[0, 2, 1]
    )
    limits = np.array([10]), np.array([0.5], np.float32), np.array([0.2], np.float32)
    kept = b.node("NonMaxSuppression", boxes, scores, *map(b.constant, limits))
    return b.model([1, 20, 6], kept, dtypes={kept: TensorProto.INT64})


MODELS = {"condition": decoder(30), "suppression": suppression()}


def lowered(model: onnx.ModelProto) -> tuple[Lowered, Loop]:
    canonical = imported(model)
    found, _ = replay(Sequence.parse(TVM_DEFAULT), to_relax(canonical), canonical, "stopping", HOST.machine)
    (loop,) = (step for step in found.program.steps if isinstance(step, Loop))
    return found, loop


@pytest.mark.parametrize("name", MODELS)
def test_a_loop_that_stops_ends_in_c(tmp_path: Path, monkeypatch, name: str) -> None:
    made, loop = lowered(MODELS[name])
    assert loop.stops and program_from_json(program_to_json(made.program)) == made.program
    written = []
    monkeypatch.setattr(
        "passfit.codegen.library.zig_cc",
        lambda command, target, folder: written.append((folder / "library.c").read_text()) or 1 / 0,
    )
    steps = tuple(replace(each, stops=False) if each is loop else each for each in made.program.steps)
    for number, program in enumerate((made.program, replace(made.program, steps=steps))):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(ZeroDivisionError):
            build_library("net", replace(made, program=program), plan_arena(program), 0, HOST, tmp_path / str(number))
    stops, runs = written
    assert stops.count(") break;\n") == 1 and f"({loop.trips - 1} - t0) * " in stops
    assert "break;" not in runs and "ends(" not in runs


def test_a_loop_that_stops_is_not_divided_into_blocks_of_trips() -> None:
    (kernel,) = (
        each
        for each in applied(EXAMPLES["distribute-loops"]).functions.values()
        if isinstance(each, PrimFunc) and each.attrs and ITERATIONS in each.attrs
    )
    stopping = kernel.with_attr(STOPPING, True)
    assert distribute_loop(kernel, 2) is not None and distribute_loop(stopping, 2) is None
    whole = distribute_loop(stopping, 0)
    assert whole is not None and STOPPING in whole.kernel.attrs
