"""Tasks in a background process: their results, and their failures."""

import os
import signal
import time

import numpy as np
import pytest

from passfit.support.background import background


def failing() -> None:
    raise ValueError


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def working() -> None:
    while True:
        pass


def test_results_come_in_order_however_they_are_asked_for():
    with background(os.getpid, lambda: np.arange(1 << 20), lambda: 3) as results:
        assert results.of(2) == 3
        assert results.of(0) not in (None, os.getpid())
        assert (results.of(1) == np.arange(1 << 20)).all()
        assert len(results.all()) == 3
    with background() as results:
        assert results.all() == []


def test_a_task_that_fails_has_no_result_and_the_next_one_does():
    with background(failing, lambda: 1) as results:
        assert results.all() == [None, 1]


@pytest.mark.parametrize("end", [killed, working])
def test_tasks_of_a_process_that_ends_have_no_result(end):
    with background(lambda: 1, end, lambda: 2, seconds=0.3) as results:
        assert results.all() == [1, None, None]


def test_a_task_may_run_others_aside():
    def outer() -> list:
        with background(killed) as inner, background(lambda: 2, nice=0) as other:
            return [*inner.all(), *other.all()]

    with background(outer) as results:
        assert results.of(0) == [None, 2]


def test_a_process_that_is_not_waited_for_ends_with_the_context():
    started = time.monotonic()
    with pytest.raises(KeyError), background(lambda: time.sleep(60)):
        raise KeyError
    assert time.monotonic() - started < 30


def test_results_are_ready_once_all_are_there():
    reads, writes = os.pipe()
    with background(lambda: 1, lambda: os.read(reads, 1)) as results:
        assert results.of(0) == 1 and not results.ready() and not results.taken
        os.write(writes, b"2")
        while not results.ready():
            time.sleep(0.01)
        assert results.taken and results.all() == [1, b"2"]


def test_the_process_leaves_cores_to_others():
    with background(lambda: os.nice(0)) as results:
        assert results.of(0) > os.nice(0) or os.nice(0) > 9


def test_a_result_that_comes_too_late_is_not_the_next_one(monkeypatch):
    monkeypatch.setattr("passfit.support.background.PATIENCE", 0.01)
    with background(lambda: time.sleep(0.5), lambda: 2, seconds=10) as results:
        assert results.of(0) is None
        time.sleep(1)
        assert results.of(1) is None
