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
    library=st.builds(LibraryScore, value=FRACTION | st.none(), reference=FRACTION, agreement=FRACTION, max_rel_error=FRACTION),
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
    if before is None or report.library.value is None:
        assert report.loss is None
    else:
        worse = (before > report.library.value) == report.higher_is_better and before != report.library.value
        assert (report.loss > 0) == worse
        assert replace(report, higher_is_better=not report.higher_is_better).loss == -report.loss


@pytest.mark.parametrize("text", ["{}", "[1]", "no", '{"data": 3}'])
def test_other_files_are_refused(text):
    with pytest.raises(ConfigError, match=r"accuracy\.json"):
        parse_accuracy(text, "accuracy.json", "Again.")
