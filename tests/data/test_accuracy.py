"""Accuracy reports come back from their file as they were written."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.data.accuracy import (
    AccuracyReport,
    ClassScore,
    DataRecord,
    LibraryScore,
    Score,
    WorstSample,
    parse_accuracy,
    report_fields,
)
from passfit.errors import ConfigError

FRACTION = st.floats(0, 1)
REPORTS = st.builds(
    AccuracyReport,
    model=st.just("m"), target=st.just("t"), metric=st.just("accuracy"), higher_is_better=st.booleans(),
    data=st.builds(DataRecord), reference=st.builds(Score, st.integers(1), FRACTION | st.none()),
    library=st.builds(LibraryScore, value=FRACTION | st.none(), reference=FRACTION | st.none(), agreement=FRACTION, max_rel_error=FRACTION),
    original=st.none() | st.builds(Score, st.integers(1), FRACTION),
    classes=st.lists(st.builds(ClassScore, reference=FRACTION, library=FRACTION), max_size=2).map(tuple),
    worst=st.lists(st.builds(WorstSample, error=FRACTION), max_size=2).map(tuple),
)  # fmt: skip


@given(REPORTS)
def test_a_report_comes_back(report):
    assert parse_accuracy(json.dumps(report_fields(report)), "accuracy.json", "") == report


@given(REPORTS)
def test_loss_is_positive_where_the_library_is_worse(report):
    before = (report.original or report.reference).value
    if before is None or report.value is None:
        assert report.loss is None
    else:
        lost = round(before - report.value, 12)
        assert report.loss == (lost if report.higher_is_better else -lost)
        assert replace(report, higher_is_better=not report.higher_is_better).loss == -report.loss


@given(REPORTS, FRACTION, FRACTION)
def test_a_library_that_decides_like_its_file_is_as_accurate_on_a_part_of_the_samples(report, whole, part):
    alike = replace(report.library, samples=9, value=part, reference=part)
    report = replace(report, reference=Score(10, whole), library=alike, original=None)
    assert report.value == pytest.approx(whole) and report.loss == pytest.approx(0)
    assert replace(report, reference=Score(9, whole)).value == part


@pytest.mark.parametrize("text", ["{}", "[1]", "no", '{"data": 3}'])
def test_other_files_are_refused(text):
    with pytest.raises(ConfigError, match=r"accuracy\.json"):
        parse_accuracy(text, "accuracy.json", "Again.")
