"""Test the table of `passfit fit`: its rows come one by one, in the columns of its head."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from passfit.fit.verdict import FitVerdict, Sizes, TargetLimits
from passfit.report.targets_that_fit import fit_head, fit_row

NAMES = ("stm32f446", "x86-64-vnni", "rp2040")
_bytes = st.integers(0, 1 << 36)
_verdicts = st.builds(
    FitVerdict,
    st.sampled_from(NAMES),
    st.builds(Sizes, *[_bytes] * 4, near=st.booleans(), cycles=st.none() | st.floats(1e3, 1e9)),
    st.builds(TargetLimits, st.integers(1, 1 << 36), st.integers(1, 1 << 36)),
    st.sampled_from(("", "its kernels need a file system")),
    st.none() | st.sampled_from((64, 180)),
)


@given(_verdicts)
def test_a_row_stands_in_the_columns_of_the_head(found: FitVerdict):
    title, head = fit_head("net", NAMES)
    row = fit_row(found, NAMES)
    assert "net" in title and row.startswith(found.target)
    assert (
        row[head.index("verdict") :].startswith("fits" if found.fits else "no: ")
        and row[head.index("verdict") - 1] == " "
    )


def test_a_row_says_what_is_estimated_refused_and_lacking():
    limits = TargetLimits(2048, 4096)
    near = fit_row(FitVerdict("rp2040", Sizes(1024, 0, 512, 512, near=True, cycles=1.8e6), limits, mhz=180), NAMES)
    assert near.split("  ")[-1] == "fits, 50.0 % of ram left" and near.count("≈ 1.0 KiB") == 2 and "≈ 10 ms" in near
    over = fit_row(FitVerdict("rp2040", Sizes(3072, 0, 512, 512), limits), NAMES)
    assert over.endswith("no: ram 1.0 KiB over") and "≈" not in over
    refused = fit_row(FitVerdict("rp2040", Sizes(0, 0, 0, 0), limits, "no libm"), NAMES)
    assert refused.endswith("no: no libm") and refused.count("–") == 2
