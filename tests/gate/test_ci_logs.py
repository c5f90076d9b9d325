"""docs/ci-logs.md shows what the gate prints in CI: each block is what it prints here, byte by byte."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from passfit.gate import run_gate
from passfit.memory import write_plan

from ..report.results import saved
from ..strategies import chain
from .samples import PARAMS, Repo

PAGE = Path(__file__).parents[2] / "docs" / "ci-logs.md"
KIB = 1024
#: sizes of the buffers of a chain before and after a change, and a budget of ram, by section of the page
CASES = {
    "A change that passes": ((64, 300 * KIB, 200 * KIB, 64), (64, 300 * KIB, 210 * KIB, 64), "600KiB"),
    "A growth": ((64, 300 * KIB, 200 * KIB, 64), (64, 300 * KIB, 260 * KIB, 64), "600KiB"),
    "A budget that is exceeded": ((64, 300 * KIB, 200 * KIB, 64), (64, 300 * KIB, 200 * KIB, 64), "400KiB"),
}


def log_and_comment(repo: Repo, before: tuple[int, ...], after: tuple[int, ...], budget: str) -> tuple[str, str, int]:
    """Return what the steps Gate and Comment of the workflow get from the gate, and its exit code."""

    def add(sizes: tuple[int, ...]) -> None:
        plan = saved(chain(*sizes))
        write_plan(plan, repo.footprint(ram=plan.plan.arena).with_name("plan.json"))
        repo.keep(ram=plan.plan.arena)

    add(before)
    repo.commit("main")
    repo.params(PARAMS.replace("600KiB", budget))
    add(after)
    log = run_gate(repo.path, against="main", format="github")
    return log.text, run_gate(repo.path, against="main", format="md", explain=True).text, log.exit_code


@pytest.mark.parametrize("section", CASES)
def test_the_page_shows_the_log_and_the_comment(repo, section):
    log, comment, code = log_and_comment(repo, *CASES[section])
    assert code == (section != "A change that passes")
    text = PAGE.read_text(encoding="utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    assert re.findall(r"^```(\w+)\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL) == [
        ("text", log),
        ("markdown", comment),
    ]


def test_the_page_has_no_other_section():
    assert re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE) == list(CASES)
