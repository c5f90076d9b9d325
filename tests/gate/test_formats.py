"""Test the formats: all hold the same verdicts, and no text can break out of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.gate.formats import FORMATS, Report
from passfit.gate.verdict import Verdict

NASTY = "50%, <b>&\"'\r\n::error title=x::y | `z` ]]> \x00\x1b"
GOOD = Verdict("a", "rpi4", "ram", "budget", 500, 600, True, "ram 100 B below budget")
BAD = Verdict("a", "rpi4", "flash", "capacity", 700, 600, False, "flash over the device's capacity by 100 B")
EMPTY = Verdict("b", "rpi4", "result", "data", None, None, False, "no data: nothing there")
STALE = Verdict("c", "rpi4", "result", "stale", None, None, False, "stale: the model changed")
REPORT = Report(
    (GOOD, BAD, EMPTY, STALE),
    ("a @ rpi4: not executed (no emulator)",),
    "main",
    ("growth not checked: no revision v0",),
)

texts = st.text(max_size=30)
any_verdict = st.builds(
    Verdict, texts, texts, st.just("ram"), st.just("budget"), st.integers(), st.integers(), st.booleans(), texts
)


@given(verdicts=st.lists(any_verdict, max_size=4), warnings=st.lists(texts, max_size=2))
def test_junit_is_well_formed_with_one_case_for_each_verdict(verdicts, warnings):
    report = Report(tuple(verdicts), tuple(warnings))
    root = ElementTree.fromstring(FORMATS["junit"](report).encode("utf-8"))
    assert len(root.findall("./testsuite/testcase")) == len(verdicts)
    assert len(root.findall("./testsuite/testcase/failure")) == sum(not verdict.ok for verdict in verdicts)
    suite = root.find("testsuite")
    assert suite.get("failures") == str(sum(not verdict.ok for verdict in verdicts))


def test_junit_tells_the_cause():
    root = ElementTree.fromstring(FORMATS["junit"](REPORT))
    failures = {failure.get("type"): failure.get("message") for failure in root.iter("failure")}
    errors = {error.get("type"): error.get("message") for error in root.iter("error")}
    assert failures == {"capacity": BAD.why}
    assert errors == {"gate": REPORT.problems[0], "data": EMPTY.why, "stale": STALE.why}
    counts = {key: root.get(key) for key in ("tests", "failures", "errors")}
    assert counts == {"tests": "5", "failures": "1", "errors": "3"}
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == ["gate", "ram budget", "flash capacity", "result", "result"]
    assert "not executed" in root.findtext("testsuite/system-out")


@given(verdict=any_verdict)
def test_a_github_command_is_one_line_and_escaped(verdict):
    report = Report((verdict,), ())
    lines = FORMATS["github"](report).split("\n")
    assert len(lines) == (1 if verdict.ok else 2)
    assert "\r" not in "".join(lines)
    if not verdict.ok:
        title, message = lines[0].removeprefix("::error title=").split("::", 1)
        assert not set(title) & set(":,\r\n")
        unescaped = message.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
        assert unescaped == verdict.why


def test_github_escapes_by_the_book():
    report = Report((Verdict("a", "t", "ram", "budget", 2, 1, False, NASTY),), (NASTY,))
    error, warning, _ = FORMATS["github"](report).split("\n")
    assert error.startswith("::error title=a @ t%3A ram budget::50%25, <b>&\"'%0D%0A::error title=x::y")
    assert warning.startswith("::warning title=passfit gate::50%25, ")


def test_markdown_cells_cannot_break_the_table():
    report = Report((Verdict("a|b", "t\nu", "ram", "budget", 2, 1, False, NASTY),), ())
    rows = [line for line in FORMATS["md"](report).splitlines() if line.startswith("|")]
    assert len(rows) == 3
    assert all(row.replace("\\|", "").count("|") == 8 for row in rows)


def test_json_holds_bytes():
    data = json.loads(FORMATS["json"](REPORT))
    assert data["ok"] is False and data["against"] == "main"
    assert [v["margin"] for v in data["verdicts"]] == [100, -100, None, None]
    assert (data["exit_code"], data["problems"]) == (2, list(REPORT.problems))
    assert data["counted"]["flash"] == "weights + code"


def test_text_is_aligned_and_says_what_is_counted():
    lines = FORMATS["text"](REPORT).splitlines()
    assert len({line.index("rpi4") for line in lines[1:4]} | {lines[0].index("target")}) == 1
    assert "ram = arena + workspace + measured stack (+ weights, " in "\n".join(lines)
    assert lines[-1] == "1 of 5 checks failed, 3 could not be made"
    assert "\x1b" not in "".join(lines)


def row(quantity: str, kind: str, used: float, limit: float, ok: bool = True, **more) -> Verdict:
    return Verdict("m", "t", quantity, kind, used, limit, ok, quantity, **more)


@pytest.mark.parametrize("name", ["text", "md"])
def test_a_table_has_failures_and_the_tightest_row_of_each_pair_and_with_all_every_row(name):
    rows = (
        GOOD,
        replace(GOOD, quantity="stack", used=599),
        BAD,
        EMPTY,
        row("ram", "budget", 5, 10),
        row("flash", "capacity", 7, 10),
    )
    shown = [
        each
        for each in FORMATS[name](Report(rows, ())).splitlines()
        if re.search(r"(budget|capacity|no data)\b.*( ok| FAIL| ERROR)", each)
    ]
    assert [next(each for each in ("flash", "result", "ram", "stack") if each in line) for line in shown] == [
        "flash",
        "result",
        "flash",
    ]
    assert "3 more rows hold: `passfit gate --all` shows all" in FORMATS[name](Report(rows, ()))
    everything = FORMATS[name](Report(rows, (), every=True))
    assert "more row" not in everything and everything.count("budget") >= 3
    assert FORMATS["json"](Report(rows, ())) == FORMATS["json"](Report(rows, (), every=True))
    assert FORMATS["junit"](Report(rows, ())) == FORMATS["junit"](Report(rows, (), every=True))


@given(verdicts=st.lists(any_verdict, max_size=6))
def test_no_pair_and_no_failure_is_left_out_of_a_table(verdicts):
    report = Report(tuple(verdicts), ())
    assert set(report.failures) <= set(report.shown)
    assert {(each.model, each.target) for each in report.shown} == {(each.model, each.target) for each in verdicts}


@pytest.mark.parametrize(
    ("rows", "tightest"),
    [
        ([row("ram", "budget", 700, 1000), row("ram", "measured", 990, 1000)], "budget"),
        ([row("ram", "budget", 700, 1000), row("flash", "growth", 1000, 1050, base=1000)], "budget"),
        ([row("ram", "budget", 700, 1000), row("flash", "growth", 1049, 1050, base=1000)], "growth"),
        ([row("ram", "budget", 700, 1000), row("agreement", "data", 1.0, 0.99, least=True)], "budget"),
        ([row("ram", "budget", 700, 1000), row("accuracy", "data", 0.921, 0.92, least=True)], "data"),
        ([row("ram", "budget", 700, 1000), row("score", "data", 30.0, 25.0, least=True)], "data"),
        ([row("ram", "budget", 0, 0), row("flash", "capacity", 999, 1000)], "budget"),
    ],
)  # fmt: skip
def test_the_tightest_limit_is_the_one_most_in_use(rows, tightest):
    """Of growth the allowed one counts, of an accuracy the errors allowed, and measured ram is no limit."""
    (shown,) = Report(tuple(rows), ()).shown
    assert shown.limit_kind == tightest


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_shows_every_failure(name):
    said = FORMATS[name](REPORT)
    for failure in REPORT.failures:
        assert failure.why in said.replace("\\", "")
    for problem in REPORT.problems:
        assert problem in said.replace("\\", "")


@given(verdicts=st.lists(any_verdict, max_size=4), problems=st.lists(texts, max_size=2))
def test_what_could_not_be_checked_wins_over_what_failed(verdicts, problems):
    report = Report(tuple(verdicts), (), problems=tuple(problems))
    if problems or not verdicts:
        assert report.exit_code == 2
    else:
        assert report.exit_code == (0 if all(verdict.ok for verdict in verdicts) else 1)
    assert Report((*verdicts, EMPTY), ()).exit_code == 2


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_nothing_is_never_a_pass(name):
    empty = Report((), ())
    assert not empty.ok
    assert "✅" not in FORMATS[name](empty)


def test_a_failure_is_annotated_at_its_line_and_growth_shows_base_and_change():
    grown = Verdict("a", "rpi4", "ram", "growth", 600, 525, False, "ram over", base=500, line=7)
    report = Report((grown,), (), file="edge/params.yaml")
    assert FORMATS["github"](report).startswith(
        "::error file=edge/params.yaml,line=7,title=a @ rpi4%3A ram growth::ram over"
    )
    assert "ram growth (500 B +20.0%)" in FORMATS["text"](report)
    (found,) = json.loads(FORMATS["json"](report))["verdicts"]
    assert (found["base"], found["change"], found["file"], found["line"]) == (500, 100, "edge/params.yaml", 7)


def test_latency_and_instructions_are_no_sizes():
    rows = (
        Verdict("a", "t", "latency", "budget", 1.25, 20.0, True, ""),
        Verdict("a", "t", "instructions", "budget", 1200, 5000, True, ""),
    )
    said = FORMATS["text"](Report(rows, (), every=True))
    assert "1.25 ms  20.00 ms  18.75 ms" in said and "1,200     5,000     3,800" in said
