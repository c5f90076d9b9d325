"""Test verdicts: laws of the order of targets, of what is lacking, and of remedies."""

from hypothesis import given
from hypothesis import strategies as st

from passfit.fit.verdict import (
    FitVerdict,
    Sizes,
    TargetLimits,
    next_smaller,
    smallest_first,
    smallest_that_fits,
)
from passfit.memory.footprint import Budget
from passfit.targets import get_target

_bytes = st.integers(0, 100)
_sizes = st.builds(Sizes, *[_bytes] * 7)
_verdicts = st.lists(
    st.builds(
        FitVerdict,
        st.sampled_from("abcdefgh"),
        _sizes,
        st.builds(TargetLimits, st.integers(0, 400), st.integers(0, 200)),
        st.sampled_from(("", "", "no")),
    ),
    unique_by=lambda each: each.target,
)


@given(_sizes)
def test_ram_and_flash_are_the_sums_of_their_parts(sizes: Sizes):
    assert sizes.ram == sizes.arena + sizes.workspace + sizes.stack + sizes.data + sizes.weights_in_ram
    assert sizes.flash == sizes.weights + sizes.code


@given(_verdicts)
def test_a_model_fits_where_nothing_is_lacking(verdicts: list[FitVerdict]):
    for each in verdicts:
        within = each.sizes.ram <= each.limits.ram and each.sizes.flash <= each.limits.flash
        assert within == (not each.lacking)
        assert each.fits == (within and not each.refused)
        assert all(nbytes > 0 for nbytes in each.lacking.values())
        assert each.to_json()["free"] == {
            "ram": each.limits.ram - each.sizes.ram,
            "flash": each.limits.flash - each.sizes.flash,
        }


@given(_verdicts, st.floats(0, 0.9), st.floats(0, 0.9))
def test_a_verdict_is_close_if_errors_of_those_parts_might_turn_it(
    verdicts: list[FitVerdict], ram: float, flash: float
):
    for each in verdicts:
        least, most = (
            (1 + sign * ram) * each.sizes.ram <= each.limits.ram
            and (1 + sign * flash) * each.sizes.flash <= each.limits.flash
            for sign in (-1, 1)
        )
        assert each.is_close(ram, flash) == (least and not most)
        assert not each.is_close(0.0, 0.0)


@given(_verdicts, st.randoms())
def test_the_order_is_by_limits_and_independent_of_that_of_the_targets(verdicts: list[FitVerdict], random):
    ordered = smallest_first(verdicts)
    random.shuffle(verdicts)
    assert smallest_first(verdicts) == ordered
    assert [(each.limits.ram, each.limits.flash) for each in ordered] == sorted(
        (each.limits.ram, each.limits.flash) for each in verdicts
    )


@given(_verdicts)
def test_all_targets_below_the_smallest_that_fits_do_not_fit(verdicts: list[FitVerdict]):
    ordered = smallest_first(verdicts)
    smallest, below = smallest_that_fits(verdicts), next_smaller(verdicts)
    first = len(ordered) if smallest is None else ordered.index(smallest)
    assert smallest is None or smallest.fits
    assert not any(each.fits for each in ordered[:first])
    lacking = [each for each in ordered[:first] if not each.refused]
    assert below == (lacking[-1] if lacking else None) and (below is None or below.lacking)


@given(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
def test_a_budget_takes_the_place_of_the_capacity(ram: int | None, flash: int | None):
    target = get_target("stm32f446")
    limits = TargetLimits.of(target, Budget(ram, flash))
    assert limits.ram == (target.ram if ram is None else ram)
    assert limits.flash == (target.flash if flash is None else flash)
