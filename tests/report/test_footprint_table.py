"""Say to the byte whether a footprint is within its budget, and within the device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from passfit.memory.footprint import Budget
from passfit.memory.limits import RegionUse
from passfit.report.footprint_table import verdict_phrase

from .results import footprint

USED = 12848
#: a capacity that is never exceeded, in bytes
LARGE = 1 << 30


def phrase(budget: Budget, *regions: RegionUse, capacity: int = LARGE) -> str:
    report = footprint(USED)
    return verdict_phrase(
        replace(report, best=replace(report.best, flash=USED, regions=regions)).within(budget, capacity, capacity)
    )


@pytest.mark.parametrize("name", ["ram", "flash"])
def test_a_budget_says_by_how_many_bytes_it_is_exceeded(name):
    assert phrase(Budget(**{name: USED - 1})) == f"does NOT fit the budget ({name} 12,847 B): {name} over by 1 B"
    assert phrase(Budget(**{name: USED})) == f"fits the budget ({name} 12.5 KiB)"
    assert phrase(Budget(**{name: USED + 1})) == f"fits the budget ({name} 12,849 B)"
    assert phrase(Budget(**{name: 1024})) == f"does NOT fit the budget ({name} 1.0 KiB): {name} over by 11.5 KiB"


def test_a_budget_of_a_memory_is_no_capacity_of_the_device():
    sram = RegionUse("sram", "ram", USED, 128 << 10, USED - 1)
    assert phrase(Budget(), sram) == "does NOT fit the budget (sram 12,847 B): sram over by 1 B"
    assert phrase(Budget(), replace(sram, room=USED)) == "fits the budget (sram 12.5 KiB)"
    assert phrase(Budget(ram=1 << 20), sram) == "does NOT fit the budget (ram 1.0 MiB, sram 12,847 B): sram over by 1 B"


def test_the_device_is_named_where_its_capacity_is_exceeded():
    small = RegionUse("psram", "ram", USED, USED - 1)
    assert phrase(Budget()) == "fits the device"
    assert (
        phrase(Budget(), capacity=USED - 1) == phrase(Budget(ram=USED), capacity=USED - 1) == "does NOT fit the device"
    )
    assert phrase(Budget(), small) == "does NOT fit the device: psram over by 1 B"
    assert phrase(Budget(flash=1), small) == (
        "does NOT fit the budget (flash 1 B): flash over by 12.5 KiB, nor the device: psram over by 1 B"
    )
