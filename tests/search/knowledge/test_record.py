"""Laws of a model's record."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from passfit.search.knowledge.record import (
    BEYOND,
    UNKNOWN,
    KnownOutcome,
    KnownSequence,
    KnownState,
    ModelRecord,
    first_problem,
)

from .records import SPECS, records


@given(records())
def test_a_prefix_leads_to_its_state_and_none_is_shorter(record):
    prefixes = record.prefixes()
    assert sorted(prefixes) == list(range(len(record.states)))
    for state, prefix in prefixes.items():
        assert record.state_after(prefix) == state
        for length in range(len(prefix)):
            assert record.state_after(prefix[:length]) != state


@given(records(), st.lists(st.sampled_from(SPECS), max_size=4), st.sampled_from(SPECS))
def test_a_pass_that_changes_nothing_can_stand_anywhere(record, prefix, spec):
    state = record.state_after(prefix)
    if state is not None and spec not in record.states[state].edges:
        assert record.state_after((*prefix, spec)) == state


@given(records(), st.sampled_from(["ram", "sum"]))
def test_winners_reach_the_best_and_nothing_is_better(record, objective):
    cells = [
        cost
        for state in range(len(record.states))
        for tail in range(len(record.tails))
        if (cost := record.cost_of(state, tail, objective)) is not None
    ]
    assert record.best(objective) <= min(cells)
    reached = [record.cost(winner, objective) for winner in record.winners(objective)]
    assert all(cost <= record.best(objective) * 1.001 for cost in reached)
    assert len({winner.tail for winner in record.winners(objective)}) == len(reached)
    assert bool(reached) == (min(cells) <= record.best(objective) * 1.001)


@given(records())
def test_what_is_not_known_costs_as_much_as_the_default(record):
    assert record.cost(KnownSequence((), ("no-such-tail",)), "ram") == UNKNOWN
    broken = replace(record.states[0], edges={SPECS[0]: BEYOND})
    record = replace(record, states=(broken, *record.states[1:]))
    assert record.cost(KnownSequence((SPECS[0],), record.tails[0]), "ram") == UNKNOWN


@given(records())
def test_a_whole_record_has_no_problem(record):
    assert first_problem(record) is None


@given(records(), st.data())
def test_a_broken_record_has_one(record, data):
    state = record.states[0]
    broken_state = st.sampled_from(
        [
            replace(state, features=state.features[1:]),
            replace(state, features=(float("nan"), *state.features[1:])),
            replace(state, edges={SPECS[0]: len(record.states)}),
            replace(state, edges={SPECS[0]: -2}),
            replace(state, outcomes=(*state.outcomes, None)),
            replace(state, outcomes=(len(record.outcomes), *state.outcomes[1:])),
            replace(state, outcomes=(None, *state.outcomes[1:])),
        ]
    ).map(lambda each: replace(record, states=(each, *record.states[1:])))
    others = st.sampled_from(
        [replace(record, states=()), replace(record, outcomes=(KnownOutcome(0.0, 1.0), *record.outcomes[1:]))]
    )
    assert first_problem(data.draw(st.one_of(broken_state, others)))


def test_the_effects_of_passes_add_up_along_a_path():
    """b does something only after a: an implicit effect."""
    tail = (("legalize",),)
    states = (KnownState((), {"a": 1}, (0,)), KnownState((), {"b": 2}, (1,)), KnownState((), {}, (2,)))
    record = ModelRecord(
        "m", "0", "t", tail, (KnownOutcome(1.0, 1.0), KnownOutcome(0.9, 1.0), KnownOutcome(0.5, 1.0)), states
    )
    costs = {prefix: record.cost(KnownSequence(tuple(prefix), tail[0]), "ram") for prefix in ("", "b", "a", "ab", "ba")}
    assert costs == {"": 1.0, "b": 1.0, "a": 0.9, "ab": 0.5, "ba": 0.9}
