"""A stored plan of fusion is the plan: its key tells apart all that a plan depends on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .test_mapping_fusion import _step

pytestmark = pytest.mark.tvm
SHAPE = (1, 4, 8, 8)


def _called(
    shape: tuple[int, ...] = SHAPE,
    steps: tuple[str, ...] = ("conv", "relu", "own softmax"),
    around: Callable = lambda x: x,
):
    from passfit.passes.graph.mapping.kernel_calls import read_calls
    from passfit.passes.sequence.catalogue import parse_spec

    from ..kernels.programs import module_of

    def body(x):
        for number, step in enumerate(steps):
            x = _step(step, x, x, [3, 1, 0, 2], number)
        return around(x)

    module = parse_spec("legalize").apply(module_of([shape], body))
    return module, read_calls(module)


def test_a_plan_is_made_once_and_equals_the_one_made(monkeypatch: pytest.MonkeyPatch) -> None:
    from passfit.passes.graph.mapping import stored_plan
    from passfit.passes.graph.mapping.scheduled_plan import scheduled_plan
    from passfit.support.result_store import ResultStore

    store = ResultStore(None)
    monkeypatch.setattr(stored_plan, "shared_store", lambda: store)
    module, called = _called()
    expected = scheduled_plan(module, called, by_peak=False, redo=1.0).exist
    assert expected < called.bindings.keys()
    assert stored_plan.existing_values(module, called, by_peak=False, redo=1.0) == expected
    monkeypatch.setattr(stored_plan, "scheduled_plan", None)  # a second one is not made
    again = _called()
    assert stored_plan.existing_values(*again, by_peak=False, redo=1.0) == expected
    with pytest.raises(TypeError):
        stored_plan.existing_values(*again, by_peak=True, redo=1.0)


def test_the_key_tells_graphs_apart() -> None:
    from tvm import relax

    from passfit.passes.graph.mapping.stored_plan import plan_key

    graphs = [
        _called(),
        _called((1, 4, 8, 9)),
        _called((1, 4, 9, 8)),
        _called((2, 4, 8, 8)),
        _called(steps=("conv", "own softmax", "relu")),
        _called(steps=("conv", "relu")),
        _called(around=lambda x: relax.op.add(x, relax.const(1.0, "float32"))),
        _called(around=lambda x: relax.op.add(x, x)),
    ]
    keys = [plan_key(module, called, by_peak) for module, called in graphs for by_peak in (False, True)]
    assert len(set(keys)) == len(keys)
    assert plan_key(*graphs[0], True) == plan_key(*_called(), True)


def test_the_key_does_not_read_constants() -> None:
    """Weights of any values are fused alike: a trained model again has the plans of the one before."""
    import numpy as np
    from tvm import relax

    from passfit.passes.graph.mapping.stored_plan import plan_key

    def scaled(by: float):
        return _called(
            steps=("relu",), around=lambda x: relax.op.multiply(x, relax.const(np.full(SHAPE, by, "float32")))
        )

    assert plan_key(*scaled(2.0)) == plan_key(*scaled(3.0))
