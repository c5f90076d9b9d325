"""Split the bodies of kept loops into regions, and compare their libraries with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest

from passfit.frontend.canonical.control_flow import long_loops
from passfit.frontend.imported_model import load
from passfit.memory.validation.checked_plan import checked_plan
from passfit.program import Loop, Program
from passfit.targets import get_target

from ....models import model_of, save
from .built_bodies import check_library
from .test_unroll_loops import FLOAT, body, node

if TYPE_CHECKING:
    from passfit.kernels.lower.lower import Lowered

pytestmark = pytest.mark.tvm
TRIPS, SIDE, NARROW, WIDE = 4, 32, 4, 16
PLANE = 4 * SIDE * SIDE
PORT = (FLOAT, [1, NARROW, SIDE, SIDE])
FUSED, TARGET = ("legalize", "fold-constant", "fuse-operators"), get_target("x86-64")


@pytest.fixture(autouse=True)
def _all_loops_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_loops, "LONG", 1)


def _convolutions(source: str, result: str, prefix: str) -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """Return a convolution to wide planes, a Relu, and a convolution back."""
    random = np.random.default_rng(7)
    shapes = {f"{prefix}w": (WIDE, NARROW, 3, 3), f"{prefix}v": (NARROW, WIDE, 3, 3)}
    weights = {name: (random.standard_normal(shape) / 12).astype(np.float32) for name, shape in shapes.items()}
    nodes = [
        node("Conv", f"{source} {prefix}w", f"{prefix}a", pads=[1] * 4), node("Relu", f"{prefix}a", f"{prefix}b"),
        node("Conv", f"{prefix}b {prefix}v", result, pads=[1] * 4),
    ]  # fmt: skip
    return nodes, weights


def _scan(nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], sequence: list[int]) -> onnx.ModelProto:
    step = body(nodes, {"h": PORT, "xi": (FLOAT, sequence)}, {"h2": PORT, "row": PORT}, **weights)
    scan = node("Scan", "h0 x", "h y", body=step, num_scan_inputs=1)
    return model_of([scan], {"h0": PORT[1], "x": [TRIPS, *sequence]}, ["h", "y"], {}, opset=17)


def images() -> onnx.ModelProto:
    """A state of images that each trip adds to and filters."""
    nodes, weights = _convolutions("s", "h2", "")
    return _scan([node("Add", "h xi", "s"), *nodes, node("Identity", "h2", "row")], weights, PORT[1])


def nested() -> onnx.ModelProto:
    """The same over images inside of a loop over groups of them, which also filters their last result."""
    nodes, weights = _convolutions("s", "g2", "i")
    inner = body(
        [node("Add", "g r", "s"), *nodes, node("Identity", "g2", "irow")],
        {"g": PORT, "r": PORT},
        {"g2": PORT, "irow": PORT},
        **weights,
    )
    more, others = _convolutions("gn", "h2", "o")
    loop = node("Scan", "h xi", "gn rows", body=inner, num_scan_inputs=1)
    return _scan(
        [loop, *more, node("ReduceSum", "rows first", "row", keepdims=0)],
        others | {"first": np.asarray([0])},
        [3, *PORT[1]],
    )


def _replayed(model: onnx.ModelProto, passes: tuple[str, ...], folder: Path) -> tuple[Lowered, int]:
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import Sequence, read_sequence, write_sequence

    imported = load(save(model, folder), "body")
    write_sequence(Sequence.parse((*FUSED, *passes, "share", "order")), folder / "sequence.json")
    return replay(read_sequence(folder / "sequence.json"), imported.graph, imported.onnx, "body", TARGET.machine)


def _ram(lowered: Lowered) -> int:
    return checked_plan(lowered.program, TARGET).arena


def _depth(program: Program) -> int:
    return max((1 + _depth(step.body) for step in program.steps if isinstance(step, Loop)), default=0)


CASES = [
    (images, ("split-rows{steps=0.2-0.3,rows=2}",), 2),
    (images, ("split-channels{steps=0.2-0.3,channels=4}",), 2),
    (nested, ("split-rows{steps=0.1.2-0.1.3}", "split-rows{steps=0.2-0.3}"), 3),
]


@pytest.mark.parametrize("make, splits, depth", CASES, ids=["rows", "channels", "nested"])
def test_a_split_body_takes_less_and_computes_the_same(
    tmp_path: Path, make, splits: tuple[str, ...], depth: int
) -> None:

    model = make()
    whole, _ = _replayed(model, (), tmp_path)
    lowered, beside = _replayed(model, splits, tmp_path)
    assert _ram(lowered) < _ram(whole) - PLANE * WIDE // 2
    assert _depth(lowered.program) == depth
    again, _ = _replayed(model, splits, tmp_path)
    assert (again.program, list(again.kernels)) == (lowered.program, list(lowered.kernels))
    check_library(model, lowered, beside, TARGET, tmp_path)


def test_a_step_may_not_write_the_next_state_over_the_one_it_streams(tmp_path: Path) -> None:
    from passfit.errors import SequenceError

    with pytest.raises(SequenceError, match="does not fit"):
        _replayed(images(), ("split-rows{steps=0.1-0.3}",), tmp_path)


def test_the_search_splits_a_body_that_takes_the_most(tmp_path: Path) -> None:
    from passfit.passes.sequence.replay import replay
    from passfit.search.evaluate.candidates import Candidate
    from passfit.search.evaluate.evaluation import Evaluator
    from passfit.search.refine.levers import refine
    from passfit.search.refine.splitting import Splitter

    for make in (images, nested):
        imported = load(save(make(), tmp_path), "body")
        names = [
            tuple(port.name for port in ports) for ports in (imported.onnx.graph.input, imported.onnx.graph.output)
        ]
        evaluator = Evaluator(imported.graph, "body", TARGET, *names)
        found = evaluator.evaluate(Candidate().passes)
        best = refine(evaluator, Splitter(evaluator), found, 0.25).best
        assert best.footprint.ram < found.footprint.ram - PLANE * WIDE // 2
        lowered, workspace = replay(best.sequence, imported.graph, imported.onnx, "body", TARGET.machine)
        assert (_ram(lowered), workspace) == (best.footprint.arena, best.footprint.workspace)
