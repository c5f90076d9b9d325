"""The ledger counts lines of code by room."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from .ledger import ROOT, code_lines, room, table

SOURCE = '''"""A module."""

import os
from pathlib import (
    Path,
)

#: a comment
LIMIT = (
    1,
)


def name(path):  # a comment at its end
    """Return a name.

    It is short.
    """
    return """a
    text"""
'''


def test_code_lines_leave_out_blanks_comments_docstrings_and_imports():
    assert code_lines(SOURCE) == 3 + 1 + 2
    assert code_lines("") == code_lines("# alone\n") == code_lines('"""Alone."""\n') == 0


@pytest.mark.parametrize(
    "path, expected",
    [
        ("pipeline/kernels/rules/tiles/tile_size.py", "pipeline/kernels/rules"),
        ("pipeline/kernels/__init__.py", "pipeline/kernels"),
        ("pipeline/memory/order/beam.py", "pipeline/memory"),
        ("pipeline/api.py", "pipeline"),
        ("tests/memory/test_liveness.py", "tests"),
    ],
)
def test_rooms_are_folders_of_the_package(path, expected):
    assert room(path) == expected


def test_sums_are_those_of_the_rooms():
    lines = table(Counter({"pipeline/a": 5, "tests": 2}), Counter({"pipeline/a": 3, "pipeline/b": 4})).splitlines()
    assert [line.split("  ")[-1] for line in lines[:3]] == ["pipeline/a", "tests", "pipeline/b"]
    assert lines[3].split() == ["+2", "5", "→", "7", "pipeline,", "all"]


def test_an_unknown_base_is_refused_in_a_line():
    command = [sys.executable, "-m", "tests.ledger", "no-such-revision"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "make ledger BASE=" in done.stderr and "Traceback" not in done.stderr
