"""Progress that nobody sees on a terminal: plain lines, few, and the last report counts."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import time

from hypothesis import given
from hypothesis import strategies as st

from passfit.report import progress
from passfit.report.progress import EVERY, PlainLines, console_progress, said


def test_a_report_in_words():
    assert said("running", 0, 0, "") == "running"
    assert said("timing", 2, 5, "") == "timing: 2 of 5"
    assert said("searching, states looked at", 120, 0, "best ram 165.0 KiB") == (
        "searching, states looked at: 120, best ram 165.0 KiB"
    )


@given(pauses=st.lists(st.floats(0, 30), max_size=40))
def test_lines_are_few_and_none_is_long_in_coming(pauses):
    now, lines = [0.0], []
    shown = PlainLines(lambda line: lines.append((now[0], line)), lambda: now[0])
    for done, pause in enumerate(pauses, 1):
        now[0] += pause
        shown("searching", done, 0, "")
    times = [when for when, _ in lines]
    assert all(later - earlier >= EVERY for earlier, later in zip([0.0, *times], times))
    assert len(lines) >= (1 if sum(pauses) >= EVERY else 0)
    assert now[0] - max(times, default=0.0) < EVERY + max(pauses, default=0)


def test_without_a_terminal_it_moves_while_nothing_is_reported(monkeypatch):
    heard = io.StringIO()
    monkeypatch.setattr("sys.stderr", heard)
    monkeypatch.setattr(progress, "EVERY", 0.5)
    with console_progress() as shown:
        shown("compiling", 0, 0)
        until = time.monotonic() + 60
        while heard.getvalue().count("compiling (") < 2 and time.monotonic() < until:
            time.sleep(0.1)
    lines = heard.getvalue().splitlines()
    assert len(lines) >= 2 and all(line.startswith("compiling (") for line in lines)
    assert "\x1b" not in heard.getvalue()


def test_what_is_quickly_done_says_nothing(capsys):
    with console_progress() as shown:
        for done in range(100):
            shown("searching", done, 100, "")
    assert capsys.readouterr() == ("", "")


def test_what_is_printed_beside_a_bar_goes_where_output_goes():
    code = "from passfit.report.progress import console_progress\nwith console_progress(): print('row')"
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, check=True)
    finally:
        os.close(theirs), os.close(ours)
    assert done.stdout == b"row\n"
