"""Compare the lowest finalist with full refinement of each; finalists left out are reported."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("tvm")

from passfit.search.evaluate.candidates import starts
from passfit.search.refine import accept
from passfit.search.refine import finalists as race
from passfit.search.refine.accept import refine_winner
from passfit.search.refine.finalists import lowest_finalist
from passfit.search.refine.levers import Attempt, refine
from passfit.search.refine.splitting import Splitter

from ..test_search import evaluator, network

pytestmark = pytest.mark.tvm
BLOCKS = ["conv", "bn", "Relu", "concat", "Sigmoid", "conv", "residual", "pool"]


def states(blocks=BLOCKS):
    """An evaluator, and different states in the order of their score."""
    tried = evaluator(network(blocks, side=16))
    found = {each.key: each for each in (tried.evaluate(start.passes) for start in starts())}
    return tried, sorted(found.values(), key=lambda each: each.score)


@pytest.mark.parametrize("extra_compute", [None, 0.0, 0.25])
def test_it_leads_as_low_as_all_levers_on_all_finalists(extra_compute):
    tried, finalists = states()
    splitter = Splitter(tried)
    pulled = {each.key: refine(tried, splitter, each, extra_compute).ram for each in finalists}
    lowest = lowest_finalist(tried, splitter, finalists, extra_compute)
    assert len(finalists) > 4 and lowest.complete
    assert lowest.ram == min(pulled.values()) == pulled[lowest.found.key]


def test_a_worse_order_of_finalists_leads_as_low():
    tried, finalists = states()
    there, back = (lowest_finalist(tried, Splitter(tried), each, 0.25) for each in (finalists, finalists[::-1]))
    assert there.ram == back.ram


def test_of_equal_splits_that_of_fewest_weights_and_kernels_is_found_in_any_order():
    tried, finalists = states(["conv", "bn", "Relu", "conv", "bn", "Relu", "pool"])
    worse_first = sorted(finalists, key=lambda each: each.score, reverse=True)
    found = [lowest_finalist(tried, Splitter(tried), order, 0.0).found for order in (finalists, worse_first)]
    there, back = (refine(tried, Splitter(tried), each, 0.0).best.cost for each in found)
    assert there == back


def test_nothing_is_found_below_the_lowest():
    tried, finalists = states()
    lowest = lowest_finalist(tried, Splitter(tried), finalists, 0.25)
    assert lowest_finalist(tried, Splitter(tried), finalists, 0.25, below=lowest.ram).found is None
    assert lowest_finalist(tried, Splitter(tried), finalists, 0.25, below=lowest.ram + 1).ram == lowest.ram


def test_finalists_left_out_for_effort_are_told(monkeypatch):
    monkeypatch.setattr(race, "KERNELS", 1)
    monkeypatch.setattr(race, "PART", 10**6)
    tried, finalists = states()
    first = finalists[-1].key
    lowest = lowest_finalist(tried, Splitter(tried), finalists, 0.25, first)
    assert not lowest.complete
    assert lowest.ram <= refine(tried, Splitter(tried), finalists[-1], 0.25).ram, "the first is never left out"


def test_others_are_the_finalists_of_the_least_split_plans():
    tried, finalists = states()
    splitter = Splitter(tried)
    lowest = lowest_finalist(tried, splitter, finalists, 0.25)
    bounds = {each.key: splitter.lowest(each, splitter.plans(each), 0.25).bound for each in finalists}
    own = [bounds[each.key] for each in lowest.others]
    assert 0 < len(own) <= race.OTHERS and own == sorted(own) and lowest.found not in lowest.others


@pytest.mark.parametrize("grows", [True, False])
def test_a_finalist_that_grows_to_less_than_the_lowest_replaces_it(monkeypatch, grows):
    tried, finalists = states()
    before = lowest_finalist(tried, Splitter(tried), finalists, 0.25)
    other = next(each for each in finalists if each.key != before.found.key)
    monkeypatch.setattr(accept, "lowest_finalist", lambda *_: replace(before, others=(other,)))
    monkeypatch.setattr(accept, "grows_below", lambda *_: True)

    def try_growth(evaluator, splitter, refinement, extra_compute):
        best = refinement.best
        if not grows or best.key != other.key:
            return refinement
        lower = replace(best, footprint=replace(best.footprint, ram=before.ram - 1))
        return refinement.taken(Attempt("grow", lower))

    monkeypatch.setattr(accept, "try_growth", try_growth)
    trace = SimpleNamespace(evaluator=tried, short=True, finalists=lambda: [finalists])
    refinement = refine_winner(trace, Splitter(tried), lambda _: "", 0.25, ()).refinement
    assert refinement.ram == before.ram - grows
    assert {each.evaluation.key for each in refinement.tried} == {before.found.key, other.key}
