"""A score read back is the one computed, for any target: its workspace and its copied weights are added anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from hypothesis import HealthCheck, given, settings

from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.passes.program.order import Order
from passfit.passes.program.share import Share
from passfit.search.evaluate import scoring, transitions
from passfit.search.evaluate.scoring import EvaluationRequest, Scorer
from passfit.support.result_store import ResultStore
from passfit.targets import get_target

from ...profiles import examples
from ..test_search import BLOCKS, network

pytestmark = pytest.mark.tvm
FUSED = ("legalize", "fuse-operators")
BEST = (Share(), Order(by="best"))
REQUESTS = [
    EvaluationRequest(FUSED),
    EvaluationRequest(FUSED, order=(Order(by="given"),)),
    EvaluationRequest(FUSED, order=BEST),
    EvaluationRequest(FUSED, order=BEST, below=1),
    EvaluationRequest(FUSED, order=BEST, below=1 << 30),
]
IN_PLACE = get_target("rpi4")
TARGETS = (IN_PLACE, replace(IN_PLACE, weights="copied"))


def outcomes(model, target):
    scorer = Scorer(to_relax(model), "small", target, *port_names(model))
    return [scorer.outcome(request) for request in REQUESTS]


@settings(max_examples=examples(3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BLOCKS)
def test_scores_read_back_are_those_computed(tmp_path_factory, monkeypatch, blocks):
    model, folder = network(blocks), tmp_path_factory.mktemp("stores")
    with monkeypatch.context() as patched:
        patched.setattr(transitions, "store_of", lambda subject: ResultStore(None))
        computed = [[vars(each) for each in outcomes(model, target)] for target in TARGETS]
        patched.setattr(transitions, "store_of", lambda subject: ResultStore(folder / f"{subject}.jsonl"))
        outcomes(model, IN_PLACE)
        for name in ("arrangements", "plan_arena", "bound"):
            patched.setattr(scoring, name, None)  # nothing is planned again
        assert [[vars(each) for each in outcomes(model, target)] for target in TARGETS] == computed
    (whole, *_, hopeless, allowed), (copied, *_) = computed
    assert hopeless["hopeless"] and not allowed["hopeless"]
    assert copied["footprint"].ram == whole["footprint"].ram + whole["footprint"].weights
