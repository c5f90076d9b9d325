"""Let rows of results take the place of the slices they come from, in loops both ways, of any widths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passfit.frontend.canonical.control_flow import long_loops
from passfit.frontend.canonicalise import import_model
from passfit.memory import plan_arena

from ....models import model_of, run, save
from .test_unroll_loops import BOOL, FLOAT, INT, body, node

pytestmark = pytest.mark.tvm
TRIPS = 6


@pytest.fixture(autouse=True)
def _all_loops_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_loops, "LONG", 1)


def _planned(model, folder: Path, *, shared: bool) -> int:
    """Compare the kernels, run in their arena, with the model as given; return the arena in bytes."""
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence

    from ....kernels.programs import run as run_kernels

    given = {
        port.name: np.random.default_rng(number).standard_normal([each.dim_value for each in port.type.tensor_type.shape.dim]).astype(np.float32)
        for number, port in enumerate(model.graph.input)
    }  # fmt: skip
    imported = import_model(save(model, folder))
    assert [each.op_type for each in imported.graph.node].count("Scan") == 1
    passes = (*TVM_DEFAULT, "share", "order") if shared else TVM_DEFAULT
    lowered, _ = replay(Sequence.parse(passes), to_relax(imported), imported, "loop")
    for got, wanted in zip(run_kernels(lowered, list(given.values())), run(model, given), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    return plan_arena(lowered.program).arena


def _scan(width: int, made: int, directions: tuple[int, int], last=(node("Softmax", "s", "h2", axis=-1),)):
    """A recurrence of slices of `width` elements that makes rows of `made`; `last` makes the state."""
    random = np.random.default_rng(7)
    weights = {"w": random.standard_normal((width, made)), "r": random.standard_normal((made, made)) / 8}
    step = body(
        [node("MatMul", "xi w", "a"), node("MatMul", "h r", "b"), node("Add", "a b", "s"), *last, node("Identity", "h2", "row")],
        {"h": (FLOAT, [1, made]), "xi": (FLOAT, [1, width])}, {"h2": (FLOAT, [1, made]), "row": (FLOAT, [1, made])},
        **{name: value.astype(np.float32) for name, value in weights.items()},
    )  # fmt: skip
    scan = node(
        "Scan",
        "h0 x",
        "h y",
        body=step,
        num_scan_inputs=1,
        scan_input_directions=[directions[0]],
        scan_output_directions=[directions[1]],
    )
    return model_of([scan], {"h0": [1, made], "x": [TRIPS, 1, width]}, ["h", "y"], {}, opset=17)


@pytest.mark.parametrize("width, made", [(64, 64), (32, 64), (64, 32), (48, 64)])
@pytest.mark.parametrize("direction", [0, 1])
def test_results_take_the_place_of_the_sequence(tmp_path: Path, width: int, made: int, direction: int) -> None:
    model = _scan(width, made, (direction, direction))
    alone, shared = (_planned(model, tmp_path, shared=each) for each in (False, True))
    assert alone - shared >= 4 * TRIPS * min(width, made)


def test_a_kernel_that_reads_slices_may_make_the_next_state(tmp_path: Path) -> None:
    """The product of a slice is one kernel with all that follows: it writes the state, from which the row is copied."""
    model = _scan(64, 64, (0, 0), (node("Tanh", "s", "h2"),))
    alone, shared = (_planned(model, tmp_path, shared=each) for each in (False, True))
    assert alone - shared >= 4 * TRIPS * 64


def test_results_in_the_other_direction_have_a_place_of_their_own(tmp_path: Path) -> None:
    model = _scan(64, 64, (0, 1))
    alone, shared = (_planned(model, tmp_path, shared=each) for each in (False, True))
    assert alone - shared < 4 * TRIPS * 64


def test_slices_by_the_number_of_the_iteration_are_a_sequence(tmp_path: Path) -> None:
    """A Loop reads x[i], and no more of x: rows take their place; a slice that is read once more is still there then."""

    def model(last: str, axis: int):
        nodes = [
            node("Gather", "x i", "xi", axis=axis),
            node("Add", "h xi", "s"),
            node("Softmax", "s", "h2", axis=-1),
            node("Sub", f"h2 {last}", "row"),
        ]
        step = body(
            nodes, {"i": (INT, []), "on": (BOOL, []), "h": (FLOAT, [2, 32])},
            {"on": (BOOL, []), "h2": (FLOAT, [2, 32]), "row": (FLOAT, [2, 32])},
        )  # fmt: skip
        loop = node("Loop", "m _ h0", "h y", body=step)
        return model_of(
            [loop],
            {"x": [TRIPS, 2, 32] if axis == 0 else [1, TRIPS, 32], "h0": [2, 32]},
            ["h", "y"],
            {"m": np.asarray(TRIPS, np.int64)},
            opset=17,
        )

    for last, axis in (("s", 0), ("xi", 0), ("s", -2)):
        alone, shared = (_planned(model(last, axis), tmp_path, shared=each) for each in (False, True))
        assert alone - shared >= 4 * TRIPS * (2 if axis == 0 else 1) * 32
