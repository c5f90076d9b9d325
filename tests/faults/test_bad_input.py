"""Run a few mutated files of every kind; `benchmarks/bad_input.py` runs thousands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from ..conftest import ModelRepo
from ..odd_models.graphs import small_cnn
from ..profiles import examples
from .bad_input import FINE, KINDS, fill
from .mutate_model import mutate_model
from .mutate_text import mutate_text

_ROOT = Path(__file__).parents[2]


@pytest.mark.fault(
    "bad input",
    "mutated models, params.yaml, dvc.yaml, dvc.lock, pyproject.toml and results: fields, words, lines, bytes",
    "exit code 2 with one line, or a result; no traceback, no other files, within 60 s and 4 GiB",
)
@pytest.mark.slow
def test_mutated_files_are_read_or_refused_in_one_line(make_repo: Callable[..., ModelRepo], tmp_path: Path) -> None:
    repo = fill(make_repo(tmp_path / "repo"))
    (tmp_path / "scratch").mkdir()
    # in a process of its own: this one may have threads, which a fork would lack
    command = [sys.executable, "-m", "tests.faults.bad_input", repo, tmp_path / "scratch", "0", str(examples(12))]
    done = subprocess.run([*map(str, command)], cwd=_ROOT, capture_output=True, text=True)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert {outcome["kind"] for outcome in outcomes} == set(KINDS), done.stderr
    assert [outcome for outcome in outcomes if outcome["verdict"] not in FINE] == []


def test_mutations_are_the_same_each_time_and_change_the_file() -> None:
    text, model = b'{"a": [1, 2.5, "b"], "c": {"d": null}}', small_cnn().SerializeToString()
    for mutate in (
        lambda random: mutate_text(text, ".json", random),
        lambda random: mutate_text(text, ".yaml", random),
        lambda random: mutate_text(b'[a]\nb = 1\nc = ["d"]\n', ".toml", random),
        lambda random: mutate_model(model, random),
    ):
        made = [mutate(Random(seed)) for seed in range(40)]
        assert made == [mutate(Random(seed)) for seed in range(40)]
        assert len(set(made)) > 30
