"""Check the table of faults: up to date, and each row a test that is run."""

from __future__ import annotations

from .table import PAGE, faults, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it: python -m tests.faults"


def test_every_row_is_a_test_and_says_all_it_has_to() -> None:
    for fault in faults():
        assert fault.test[1].startswith("test_"), fault
        assert all(
            words and "|" not in words and "\n" not in words for words in (fault.name, fault.injection, fault.outcome)
        ), fault


def test_a_fault_is_injected_in_one_way_by_one_test() -> None:
    rows = [(fault.name, fault.injection) for fault in faults()]
    assert len(rows) == len(set(rows))
