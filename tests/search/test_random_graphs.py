"""Laws of the search on random networks: never worse than TVM's default, replayed as promised, correct."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings

from .. import strategies  # noqa: F401  (the settings of hypothesis)
from ..profiles import examples
from .random_models import models

pytestmark = pytest.mark.tvm


def check(model: onnx.ModelProto) -> None:
    from passfit.frontend.canonicalise import canonicalize
    from passfit.frontend.imported_model import port_names
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.memory import account, plan_arena, validate_plan
    from passfit.passes.sequence.replay import replay
    from passfit.search.search import search
    from passfit.search.strategies.trace import Limits
    from passfit.targets import get_target

    from ..kernels.programs import run
    from ..models import run as run_onnx

    target = get_target("rpi4")
    canonical = canonicalize(model)
    module = to_relax(canonical)
    result = search(module, "random", target, *port_names(canonical), limits=Limits(evaluations=14))
    assert result.best.ram <= result.baseline.ram

    lowered, workspace = replay(result.sequence, module, canonical, "random")
    plan = plan_arena(lowered.program, target.alignment)
    validate_plan(lowered.program, plan, target.alignment)
    assert account(lowered.program, plan, workspace=workspace, code=0, weights_in_place=True) == result.best
    assert all(step.nodes for step in lowered.program.steps)
    assert {name for step in lowered.program.steps for name in step.nodes} <= {n.name for n in canonical.graph.node}

    shape = [dim.dim_value for dim in canonical.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for got, expected in zip(run(lowered, [x]), run_onnx(canonical, {"x": x}), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * max(float(np.abs(expected).max()), 1e-3))


@settings(max_examples=examples(16))
@given(models())
def test_the_search_is_never_worse_than_tvms_default_and_keeps_the_results(model: onnx.ModelProto):
    check(model)
