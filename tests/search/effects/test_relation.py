from hypothesis import given
from hypothesis import strategies as st

from passfit.search.effects.relation import Effect, implicit, relation

DELTAS = st.fixed_dictionaries({"ram": st.integers(-2, 2), "sum": st.integers(-2, 2)})
EFFECTS = st.builds(Effect, st.booleans(), DELTAS)
OPPOSITE = {"enables": "disables", "disables": "enables", "strengthens": "weakens", "weakens": "strengthens", "": ""}


@given(EFFECTS, EFFECTS)
def test_what_is_done_one_way_is_undone_the_other_way(alone, after):
    assert relation(after, alone) == OPPOSITE[relation(alone, after)]
    assert implicit(after, alone) == tuple(-nbytes for nbytes in implicit(alone, after))


@given(EFFECTS)
def test_a_pass_that_does_the_same_after_another_is_independent_of_it(effect):
    assert relation(effect, effect) == ""


def test_ram_comes_before_the_sum_and_no_footprint_decides_what_is_possible():
    still, saves = Effect(False, {"ram": 0, "sum": 0}), Effect(True, {"ram": -8, "sum": 0})
    assert relation(still, saves) == relation(still, Effect(True, {"ram": 8, "sum": 8})) == "enables"
    assert relation(saves, Effect(True, {"ram": -9, "sum": 5})) == "strengthens"
    assert relation(saves, Effect(True, {"ram": -8, "sum": 1})) == "weakens"
