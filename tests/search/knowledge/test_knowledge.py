"""Laws of the coreset and the ranking."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.sequence import Sequence
from passfit.search.evaluate.candidates import TAILS, Candidate, actions
from passfit.search.knowledge import Knowledge, load_knowledge
from passfit.search.knowledge.features import FEATURES
from passfit.search.knowledge.knowledge import LEAST, MOST
from passfit.search.knowledge.predictor import CostPredictor, Query

from ...profiles import examples
from .records import records

PASSES = actions()
LISTS = st.lists(records(), min_size=1, max_size=4)
OBJECTIVES = st.sampled_from(["ram", "sum"])
CANDIDATES = st.lists(
    st.builds(Candidate, st.lists(st.sampled_from(PASSES), max_size=3).map(tuple), st.sampled_from(TAILS)), max_size=8
)


def features_of(prefix):
    return tuple(float(len(prefix) + number % 3) for number in range(len(FEATURES)))


@settings(max_examples=examples(15))
@given(LISTS, CANDIDATES, OBJECTIVES)
def test_a_ranking_is_a_permutation_and_deterministic(some, candidates, objective):
    ranked = Knowledge(tuple(some)).ranking(objective, features_of)(candidates)
    assert sorted(map(repr, ranked)) == sorted(map(repr, candidates))
    assert ranked == Knowledge(tuple(some)).ranking(objective, features_of)(candidates)


@settings(max_examples=examples(15))
@given(LISTS, st.lists(st.permutations(PASSES), min_size=1, max_size=4))
def test_candidates_it_cannot_tell_apart_keep_their_order(some, prefixes):
    candidates = [Candidate(tuple(prefix)) for prefix in prefixes]
    assert Knowledge(tuple(some)).ranking("ram", features_of)(candidates) == candidates


@given(CANDIDATES, OBJECTIVES)
def test_without_knowledge_the_order_is_the_given_one(candidates, objective):
    assert Knowledge().ranking(objective, features_of)(candidates) == candidates
    assert Knowledge().coreset(objective) == ()


@given(LISTS, OBJECTIVES, st.data())
def test_a_coreset_does_not_depend_on_the_order_of_the_records(some, objective, data):
    shuffled = data.draw(st.permutations(some))
    assert Knowledge(tuple(some)).coreset(objective) == Knowledge(tuple(shuffled)).coreset(objective)


@given(LISTS, OBJECTIVES)
def test_a_coreset_is_worth_at_least_the_most_valuable_single_winner(some, objective):
    knowledge = Knowledge(tuple(some))

    def mean(sequences):
        reached = [min([1.0, *(record.cost(each, objective) for each in sequences)]) for record in some]
        return sum(cost / record.best(objective) for cost, record in zip(reached, some)) / len(some)

    chosen = knowledge.known_sequences(objective)
    assert len(chosen) <= MOST
    for record in some:
        for winner in record.winners(objective):
            assert mean(chosen) <= mean([winner]) + LEAST + 1e-9


def test_what_ships_can_be_replayed_and_is_worth_trying():
    knowledge = load_knowledge()
    for objective in ("ram", "sum"):
        candidates = knowledge.coreset(objective)
        assert 1 <= len(candidates) <= MOST
        for each in candidates:
            assert Sequence.parse(step.spec for step in each.passes).passes == each.passes


def test_the_predictor_prefers_what_was_good_on_the_only_model_it_knows():
    knowledge = load_knowledge()
    record = max(knowledge.records, key=lambda each: len(each.states))
    prefixes = {prefix: record.states[state].features for state, prefix in record.prefixes().items()}
    ranking = Knowledge((record,)).ranking("sum", lambda prefix: prefixes[tuple(step.spec for step in prefix)])
    known = {
        tail: record.tails.index(specs)
        for tail in TAILS
        if (specs := tuple(step.spec for step in tail)) in record.tails
    }
    candidates = [Candidate(tuple(map(parse_spec, prefix)), tail) for prefix in prefixes for tail in known]
    ranked = ranking(candidates)
    costs = [
        record.cost_of(record.state_after(step.spec for step in each.prefix), known[each.tail], "sum") or 1.0
        for each in ranked
    ]
    quarter = len(costs) // 4
    assert sum(costs[:quarter]) < sum(costs[-quarter:])


def test_units_of_features_change_no_prediction():
    record = max(load_knowledge().records, key=lambda each: len(each.states))

    def predicted(unit: float) -> list[float]:
        states = tuple(replace(each, features=tuple(unit * value for value in each.features)) for each in record.states)
        known = replace(record, states=states)
        asked = [Query(states[0].features, each.features, tail) for each in states for tail in known.tails]
        return CostPredictor([known], "ram").predict(asked)

    assert predicted(1024.0) == pytest.approx(predicted(1.0), abs=2e-6)
    assert len(set(predicted(1.0))) > 1
