"""Records of explored models agree with a search."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.passes.sequence.catalogue import parse_spec
from passfit.search.evaluate.candidates import Candidate, clean
from passfit.search.evaluate.evaluation import Evaluator
from passfit.search.knowledge import Knowledge
from passfit.search.knowledge.explore import explore, features_of
from passfit.search.knowledge.features import FEATURES
from passfit.search.knowledge.graph_features import graph_features
from passfit.search.knowledge.record import first_problem
from passfit.targets import get_target

from ..test_search import network

pytestmark = pytest.mark.tvm
BLOCKS = ["bn", "concat", "conv", "pool"]


def evaluator(blocks=BLOCKS, seed=0):
    model = network(blocks, seed=seed)
    return Evaluator(to_relax(model), "small", get_target("x86-64"), *port_names(model))


def parsed(specs):
    return tuple(map(parse_spec, specs))


def candidate(prefix, tail):
    return Candidate(parsed(prefix), parsed(tail))


@pytest.fixture(scope="module")
def record():
    return explore(evaluator(), "small")


def test_a_record_is_whole_and_starts_with_tvms_default(record):
    assert first_problem(record) is None
    assert record.outcomes[record.states[0].outcomes[0]].ram == 1.0
    assert len(record.states) > 1 and len(record.outcomes) > 3


def test_every_cost_is_that_of_replaying_the_sequence(record):
    fresh = evaluator()
    default = fresh.evaluate(parsed(record.tails[0])).footprint
    for state, prefix in record.prefixes().items():
        for number, tail in enumerate(record.tails):
            found = fresh.evaluate(candidate(prefix, tail).passes).footprint
            cost = record.cost_of(state, number, "ram")
            assert (cost is None) == (found is None)
            if found is not None:
                assert cost == pytest.approx(found.ram / default.ram, abs=1e-5)
                assert record.cost_of(state, number, "sum") == pytest.approx(found.sum / default.sum, abs=1e-5)


def test_every_edge_is_a_pass_that_leads_there(record):
    fresh = evaluator()
    keys = {state: fresh.key(clean(parsed(prefix))) for state, prefix in record.prefixes().items()}
    for state, prefix in record.prefixes().items():
        for spec, after in record.states[state].edges.items():
            assert fresh.key(clean(parsed((*prefix, spec)))) == keys[after]


def test_other_weights_are_the_same_to_it_and_another_structure_is_not(record):
    assert explore(evaluator(seed=1), "small") == record
    assert explore(evaluator([*BLOCKS, "Relu"]), "small").digest != record.digest


def test_what_a_record_names_best_is_tried_first_on_the_same_model(record):
    chosen = Knowledge((record,)).coreset("sum")
    found = [evaluator().evaluate(each.passes).footprint.sum for each in chosen]
    default = evaluator().evaluate(parsed(record.tails[0])).footprint.sum
    assert min(found) / default == pytest.approx(record.best("sum"), rel=2e-3)


def test_the_limit_holds():
    limited = evaluator()
    record = explore(limited, "small", evaluations=5)
    assert limited.count == 5 and first_problem(record) is None


def test_the_features_see_what_is_in_the_graph():
    found = dict(zip(FEATURES, graph_features(evaluator().scorer.module(())), strict=True))
    assert all(found[f"count:{kind}"] > 0 for kind in ("convolution", "normalise", "concat", "pool", "element-wise"))
    assert found["count:matmul"] == 0 and found["weights"] > 0
    one_plane = evaluator(["Relu"]).scorer.module(())
    plain = dict(zip(FEATURES, graph_features(one_plane), strict=True))
    assert plain["operations"] == pytest.approx(0.693, abs=1e-3) and plain["weights"] == 0


def test_the_features_of_a_prefix_are_those_of_the_graph_it_leads_to():
    fresh = evaluator()
    prefix = (parse_spec("decompose-ops-for-inference"),)
    assert (
        features_of(fresh)(prefix)
        == graph_features(fresh.scorer.module(tuple(each.spec for each in clean(prefix))))
        != features_of(fresh)(())
    )
