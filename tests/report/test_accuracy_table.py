from hypothesis import given
from hypothesis import strategies as st

from passfit.report.accuracy_table import accuracy_lines, moved_classes, share, worst_classes

from .results import accuracy


@given(st.floats(0, 1))
def test_only_all_is_a_hundred_per_cent(value):
    assert (share(value) == "100%") == (value == 1)


def test_the_worst_class_comes_first_and_the_largest_loss():
    assert worst_classes(accuracy())[0].name == "dog"
    assert moved_classes(accuracy(), accuracy(dog=0.8)) == [("dog", 0.9, 0.8)]
    assert moved_classes(accuracy(), accuracy()) == []


def test_summary_classes_and_samples_are_a_line_each():
    summary, classes, samples = accuracy_lines(accuracy())
    assert summary.startswith("accuracy: accuracy 0.95 (file 0.95) on 1,000 samples of test")
    assert (
        classes.startswith("fewest right, by class: dog: 90% of 500")
        and samples == "worst samples: 7.png: cat, not dog"
    )
    assert "accuracy not known, without labels" in accuracy_lines(accuracy(None))[0]
