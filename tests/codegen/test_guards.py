"""The C of a guarded call: its condition holds in the trips of its guard, and its number counts them."""

from hypothesis import given
from hypothesis import strategies as st

from passfit.codegen.library import guard_condition, guard_number
from passfit.program import Guard


@given(st.integers(1, 60), st.data())
def test_the_condition_and_the_number_of_a_guarded_call_are_those_of_its_guard(trips: int, data: st.DataObject):
    period, offset = data.draw(st.integers(1, 5)), data.draw(st.integers(0, trips - 1))
    guard = Guard(period, offset, data.draw(st.integers(1, (trips - 1 - offset) // period + 1)), numbered=True)
    condition = guard_condition(guard, "t0", trips).replace("&&", "and")
    runs = [trip for trip in range(trips) if eval(condition or "True", {"t0": trip})]
    assert runs == [trip for trip in range(trips) if guard.runs_in(trip)]
    assert [eval(guard_number(guard, "t0").replace("/", "//"), {"t0": trip}) for trip in runs] == list(
        range(guard.groups)
    )
