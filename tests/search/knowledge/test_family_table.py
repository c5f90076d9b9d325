"""Laws of the evidence per family."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from passfit.search.knowledge.family import FAMILIES
from passfit.search.knowledge.family_table import ENOUGH, family_table
from passfit.search.knowledge.features import FEATURES
from passfit.search.knowledge.record import KnownOutcome, KnownSequence, KnownState, ModelRecord

from .records import SPECS, TAIL_SPECS, records

OBJECTIVES = st.sampled_from(["ram", "sum"])
_SEQUENCES = st.builds(
    KnownSequence, st.lists(st.sampled_from(SPECS), max_size=3).map(tuple), st.sampled_from(TAIL_SPECS)
)
LEARNT = st.builds(
    replace, records(), family=st.sampled_from(FAMILIES[:2]), passes=st.just(tuple(SPECS[:-2])),
    refined=st.one_of(st.none(), _SEQUENCES),
)  # fmt: skip
LISTS = st.lists(LEARNT, max_size=6)


@given(LISTS, OBJECTIVES)
def test_the_best_of_every_model_of_the_family_is_reached_by_one_of_the_sequences(some, objective):
    for family in FAMILIES[:2]:
        table = family_table(some, family, objective)
        for record in some:
            if record.family != family:
                continue
            if objective == "ram" and record.refined is not None:
                assert record.refined in table.sequences
            elif record.winners(objective):
                assert min(record.cost(each, objective) for each in table.sequences) <= record.best(objective) * 1.001


@given(LISTS, OBJECTIVES)
def test_counts_are_of_models(some, objective):
    table = family_table(some, FAMILIES[0], objective)
    used = some if table.borrowed else [record for record in some if record.family == FAMILIES[0]]
    for each in (*table.passes.values(), *table.tails.values()):
        assert max(each.tried, each.changed, each.led) <= len(used)
    led = {spec for spec, each in table.passes.items() if each.led}
    assert led == {spec for sequence in table.sequences for spec in sequence.prefix} <= set(table.joined)
    assert sum(each.led for each in table.tails.values()) == len(used)


@given(LISTS)
def test_a_family_of_few_models_borrows_the_evidence_of_all(some):
    table = family_table(some, FAMILIES[0], "ram")
    own = [record for record in some if record.family == FAMILIES[0]]
    assert table.models == len(own) and table.borrowed == (len(own) < ENOUGH)
    if table.borrowed:
        assert table.sequences == family_table(some, "another", "ram").sequences


@given(LISTS, OBJECTIVES)
def test_what_no_model_has_tried_is_named(some, objective):
    table = family_table(some, FAMILIES[0], objective)
    assert set(SPECS[-2:]) <= set(table.untried(SPECS))
    if some and table.borrowed:
        assert table.untried(SPECS) == tuple(SPECS[-2:])


@given(st.lists(LEARNT, min_size=ENOUGH, max_size=6), st.data())
def test_the_order_of_the_models_does_not_matter(some, data):
    shuffled = data.draw(st.permutations(some))
    assert family_table(shuffled, FAMILIES[0], "ram") == family_table(some, FAMILIES[0], "ram")


def test_without_records_everything_is_untried():
    table = family_table((), FAMILIES[0], "ram")
    assert table.untried(SPECS) == tuple(SPECS)
    assert table.sequences == () and table.joined == ()


PLAIN, BETTER = (KnownSequence(prefix, TAIL_SPECS[0]) for prefix in ((), ("eliminate-common-subexpr",)))


def changed(number: int, family: str, refined: KnownSequence, changes: bool) -> ModelRecord:
    """Build the record of a model that one pass changes, or none."""
    edges = {"eliminate-common-subexpr": 1} if changes else {}
    states = tuple(KnownState((0.0,) * len(FEATURES), each, (0,)) for each in (edges, {}))
    outcomes = (KnownOutcome(1.0, 1.0),)
    return ModelRecord(f"m{number}", str(number), "t", TAIL_SPECS[:1], outcomes, states, family, tuple(SPECS), refined)


def test_a_pass_that_changed_enough_models_of_a_family_and_led_on_none_is_left_out():
    others = [changed(number, "dense", BETTER, True) for number in range(3)]
    for count, joined in ((ENOUGH - 1, BETTER.prefix), (ENOUGH, ())):
        own = [changed(10 + number, "mobile", PLAIN, number < count) for number in range(4)]
        assert family_table([*others, *own], "mobile", "ram").joined == joined


def test_a_pass_that_led_nowhere_is_tried_while_it_changed_too_few_models_to_judge():
    """An encoder alone needed its heads split: without its record, no graph of the kind was given the pass."""
    for count, joined in ((0, ()), (1, BETTER.prefix), (ENOUGH - 1, BETTER.prefix), (ENOUGH, ())):
        some = [changed(number, "dense", PLAIN, number < count) for number in range(ENOUGH + 1)]
        for family in ("dense", "mobile"):
            assert family_table(some, family, "ram").joined == joined


def test_a_step_that_is_only_the_clean_up_is_no_change_of_a_pass():
    edges = {"canonicalize-bindings": 1, "eliminate-common-subexpr": 1, "fast-math": 2}
    states = tuple(KnownState((0.0,) * len(FEATURES), each, (0,)) for each in (edges, {}, {}))
    one = ModelRecord("m", "1", "t", TAIL_SPECS[:1], (KnownOutcome(1.0, 1.0),), states, "mobile", tuple(SPECS))
    changed = {spec for spec, each in family_table([one], "mobile", "ram").passes.items() if each.changed}
    assert changed == {"canonicalize-bindings", "fast-math"}
