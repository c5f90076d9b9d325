from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.memory import bound, check_order, share
from passfit.memory.order.best_first import best_first
from passfit.memory.order.cut_points import ancestors, cut_points
from passfit.memory.order.step_graph import step_graph

from ...profiles import examples
from ...strategies import programs
from .. import brute_force
from ..shared_programs import sharing_programs

ANY = st.one_of(programs(max_steps=9), sharing_programs(max_steps=9).map(share))


def searched(program, work, alignment=64):
    """Return the peak of the order found from the given one, and the claimed lower bound."""
    order, least = best_first(step_graph(program, alignment), range(len(program.steps)), work)
    check_order(program, order)
    return bound(program.reordered(order), alignment=alignment), least


@settings(max_examples=examples(300))
@given(ANY, st.sampled_from([1, 64]))
def test_the_search_alone_finds_the_least_peak_and_proves_it(program, alignment):
    assert searched(program, 10**6, alignment) == (brute_force.least_peak(program, alignment),) * 2


@given(ANY, st.integers(0, 60))
def test_a_search_cut_short_makes_nothing_worse_and_claims_nothing_false(program, work):
    peak, least = searched(program, work)
    assert least <= brute_force.least_peak(program, 64) <= peak <= bound(program)


@given(ANY)
def test_a_cut_point_is_a_set_that_every_order_passes(program):
    """Every step of it comes before every other step, and no other set is like that."""
    earlier = ancestors(step_graph(program))
    points = cut_points(earlier)
    steps = range(len(earlier))
    sets = {sum(1 << s for s in sorted(steps, key=lambda s: earlier[s].bit_count())[:n]) for n in range(len(steps) + 1)}
    assert points == sorted(
        (each for each in sets if all(earlier[s] & each == each for s in steps if not each >> s & 1)),
        key=int.bit_count,
    )
