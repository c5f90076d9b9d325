"""Offer sequences to the first library: one is built once it is time, and what was built is told."""

import time

from passfit.search import first_library
from passfit.search.first_library import SECONDS


def wait_for_note(early: first_library.FirstLibrary) -> str:
    ends = time.monotonic() + 30
    while not early.note and time.monotonic() < ends:
        early.offer("a later one")
        time.sleep(0.01)
    return early.note


def test_nothing_is_built_before_it_is_time():
    with first_library.first_library(lambda plan: plan, time.monotonic()) as early:
        early.offer("a plan")
        assert early._results is None


def test_the_first_plan_after_that_time_is_built_and_no_later_one():
    with first_library.first_library(lambda plan: f"built {plan}", time.monotonic() - SECONDS) as early:
        early.offer("a plan")
        assert wait_for_note(early) == "built a plan"


def test_nothing_is_built_before_it_may_start():
    done = []
    with first_library.first_library(str, time.monotonic() - SECONDS, lambda: bool(done)) as early:
        early.offer("a plan")
        assert early._results is None
        done.append(True)
        early.offer("a later one")
        assert wait_for_note(early) == "a later one"


def test_a_library_that_is_refused_is_not_told():
    def refused(plan: str) -> str:
        raise ValueError

    with first_library.first_library(refused, time.monotonic() - SECONDS) as early:
        early.offer("a plan")
        while not early._results.ready():
            time.sleep(0.01)
        early.offer("a plan")
        assert early.note == ""
