"""Format verdicts as text, Markdown, JUnit XML, GitHub annotations and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree

from ..report.markdown import escaped
from .amounts import format_amount, format_growth
from .verdict import Pair, Verdict
from .verdicts import COUNTED

#: characters outside of XML 1.0, even escaped
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: failures, and causes, of a comment of one screen
MOST = 10
HEADER = ("model", "target", "what", "used", "limit", "left", "")


@dataclass(frozen=True)
class Report:
    """Hold the verdicts of one gate run, its warnings, and the revision compared with.

    `information` changes no verdict. `file` is params.yaml as git names it. Each of `problems` says why a check of all pairs
    was impossible, with the next step. `causes` explains failures; None where that was not asked for. `every` asks text and Markdown for all rows.
    """

    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...]
    against: str | None = None
    problems: tuple[str, ...] = ()
    information: tuple[str, ...] = ()
    file: str = "params.yaml"
    causes: tuple[str, ...] | None = None
    every: bool = False

    @property
    def shown(self) -> tuple[Verdict, ...]:
        """Return the rows of the table: all failures, and of a pair without any its tightest limit."""
        if self.every:
            return self.verdicts
        tightest: dict[Pair, Verdict] = {}
        for verdict in sorted(self.verdicts, key=lambda each: (each.ok, -each.strain)):
            tightest.setdefault((verdict.model, verdict.target), verdict)
        return tuple(each for each in self.verdicts if not each.ok or each is tightest[each.model, each.target])

    @property
    def left_out(self) -> tuple[str, ...]:
        """Say how many rows hold and are not shown; empty if none."""
        if not (left := len(self.verdicts) - len(self.shown)):
            return ()
        return (f"{left} more {'rows hold' if left > 1 else 'row holds'}: `passfit gate --all` shows all",)

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """Collect the failed verdicts and the unchecked ones."""
        return tuple(verdict for verdict in self.verdicts if not verdict.ok)

    @property
    def errors(self) -> int:
        """Count the impossible checks."""
        return len(self.problems) + sum(not verdict.checked for verdict in self.failures)

    @property
    def ok(self) -> bool:
        return bool(self.verdicts) and not self.failures and not self.problems

    @property
    def exit_code(self) -> int:
        """Return 0: all limits hold; 1: one is exceeded; 2, which wins: a check was impossible."""
        if self.errors or not self.verdicts:
            return 2
        return 0 if self.ok else 1

    @property
    def summary(self) -> str:
        total = len(self.verdicts) + len(self.problems)
        failed = len(self.failures) + len(self.problems) - self.errors
        if not total or self.ok:
            return f"all {total} checks hold" if total else "nothing was checked"
        if not self.errors:
            return f"{failed} of {total} checks failed"
        if not failed:
            return f"{self.errors} of {total} checks could not be made"
        return f"{failed} of {total} checks failed, {self.errors} could not be made"


def text(report: Report) -> str:
    """Format aligned columns without colour, alike on a terminal and in a pipe."""
    rows = [HEADER, *(_row(verdict) for verdict in report.shown)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]
    lines = ["  ".join(_align(cell, width, i) for i, (cell, width) in enumerate(zip(row, widths))) for row in rows]
    lines += [*report.left_out, "", *(f"ERROR {problem}" for problem in report.problems)]
    lines += [f"{_word(verdict):5} {_who(verdict)}: {verdict.why}" for verdict in report.failures]
    lines += [f"why   {cause}" for cause in report.causes or ()]
    lines += [f"note  {warning}" for warning in (*report.warnings, *report.information)]
    lines += [f"{name} = {counted}" for name, counted in COUNTED.items()]
    lines.append(report.summary)
    return "\n".join(line.rstrip() for line in lines)


def markdown(report: Report) -> str:
    """Format the failures, then a table of verdicts; with causes in one screen, the table of all folded."""
    mark = "✅" if report.ok else "❌"
    lines = [f"### {mark} passfit gate: {report.summary}", ""]
    lines += [f"- **error**: {escaped(problem)}" for problem in report.problems]
    folded = report.causes is not None
    table = report.verdicts if folded else report.shown
    shown = report.failures[:MOST] if folded else report.failures
    lines += [f"- **{escaped(_who(verdict))}**: {escaped(verdict.why)}" for verdict in shown]
    lines += [f"- {len(report.failures) - len(shown)} more"] if len(shown) < len(report.failures) else []
    lines += ["", *(f"- {escaped(cause)}" for cause in report.causes[:MOST])] if report.causes else []
    lines += ["", f"<details><summary>all {len(report.verdicts)} checks</summary>"] if folded else []
    lines += ["", "| model | target | what | used | limit | left | |", "| --- | --- | --- | ---: | ---: | ---: | --- |"]
    lines += ["| " + " | ".join(map(escaped, _row(verdict))) + " |" for verdict in table]
    lines += ["", *report.left_out] if report.left_out and not folded else []
    lines += ["", *(f"- {escaped(remark)}" for remark in (*report.warnings, *report.information))]
    lines += ["", "; ".join(f"{name} = {counted}" for name, counted in COUNTED.items())]
    lines += ["", "</details>"] if folded else []
    return "\n".join(lines)


def junit(report: Report) -> str:
    """Format one test case per verdict and problem; warnings are the suite's output.

    An impossible check is an <error>, an exceeded limit a <failure>.
    """
    failed = len(report.failures) + len(report.problems) - report.errors
    total = len(report.verdicts) + len(report.problems)
    counts = {"tests": str(total), "failures": str(failed), "errors": str(report.errors)}
    root = ElementTree.Element("testsuites", {"name": "passfit gate", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "passfit gate", **counts})
    for problem in report.problems:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "passfit", "name": "gate"})
        ElementTree.SubElement(case, "error", {"type": "gate", "message": NOT_XML.sub("?", problem)})
    for verdict in report.verdicts:
        name = {"classname": f"{verdict.model}.{verdict.target}", "name": _check(verdict)}
        case = ElementTree.SubElement(suite, "testcase", {key: NOT_XML.sub("?", value) for key, value in name.items()})
        if verdict.ok:
            continue
        why = NOT_XML.sub("?", verdict.why)
        kind = "failure" if verdict.checked else "error"
        failure = ElementTree.SubElement(case, kind, {"type": verdict.limit_kind, "message": why})
        failure.text = "\n".join([why, *(f"{quantity} = {counted}" for quantity, counted in COUNTED.items())])
    if remarks := (*(report.causes or ()), *report.warnings, *report.information):
        ElementTree.SubElement(suite, "system-out").text = NOT_XML.sub("?", "\n".join(remarks))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def github(report: Report) -> str:
    """Format workflow commands: an error per failure, a warning per remark, then the summary."""
    lines = [f"::error title=passfit gate::{_message(problem)}" for problem in report.problems]
    lines += [
        f"::error {_place_of(report, verdict)}title={_property(f'{_who(verdict)}: {_check(verdict)}')}::{_message(verdict.why)}"
        for verdict in report.failures
    ]
    lines += [f"::notice title=passfit gate, why::{_message(cause)}" for cause in report.causes or ()]
    lines += [f"::warning title=passfit gate::{_message(warning)}" for warning in report.warnings]
    lines += [f"::notice title=passfit gate::{_message(remark)}" for remark in report.information]
    return "\n".join([*lines, report.summary])


def as_json(report: Report) -> str:
    """Format the whole report as JSON, sizes in bytes, latencies in milliseconds."""
    verdicts = [
        {
            "model": verdict.model,
            "target": verdict.target,
            "quantity": verdict.quantity,
            "limit_kind": verdict.limit_kind,
            "used": verdict.used,
            "limit": verdict.limit,
            "margin": verdict.margin,
            "ok": verdict.ok,
            "why": verdict.why,
            **(
                {}
                if verdict.base is None or verdict.used is None
                else {"base": verdict.base, "change": verdict.used - verdict.base}
            ),
            **({} if verdict.line is None else {"file": report.file, "line": verdict.line}),
        }
        for verdict in report.verdicts
    ]
    data = {
        "ok": report.ok,
        "exit_code": report.exit_code,
        "against": report.against,
        "problems": list(report.problems),
        "verdicts": verdicts,
        "warnings": list(report.warnings),
        "information": list(report.information),
        **({} if report.causes is None else {"causes": list(report.causes)}),
    }
    return json.dumps(data | {"counted": COUNTED}, indent=2, ensure_ascii=False)


FORMATS: dict[str, Callable[[Report], str]] = {
    "text": text,
    "md": markdown,
    "junit": junit,
    "github": github,
    "json": as_json,
}


def _who(verdict: Verdict) -> str:
    return f"{verdict.model} @ {verdict.target}"


def _check(verdict: Verdict) -> str:
    if verdict.quantity == "accuracy" and verdict.limit_kind == "growth":
        return "accuracy change"
    if verdict.quantity != "result":
        return f"{verdict.quantity} {verdict.limit_kind}"
    return "growth" if verdict.limit_kind == "growth" else "result"


def _place_of(report: Report, verdict: Verdict) -> str:
    return "" if verdict.line is None else f"file={_property(report.file)},line={verdict.line},"


def _word(verdict: Verdict) -> str:
    if verdict.ok:
        return "ok"
    return "FAIL" if verdict.checked else "ERROR"


def _row(verdict: Verdict) -> tuple[str, ...]:
    if verdict.used is None or verdict.limit is None or verdict.margin is None:
        sizes: tuple[str, ...] = (kind if (kind := verdict.limit_kind) in ("stale", "altered") else "no data", "", "")
    else:
        sizes = tuple(format_amount(verdict.quantity, each) for each in (verdict.used, verdict.limit, verdict.margin))
    grown = (
        ""
        if verdict.base is None or verdict.used is None
        else f" ({format_growth(verdict.quantity, verdict.base, verdict.used)})"
    )
    return (verdict.model, verdict.target, _check(verdict) + grown, *sizes, _word(verdict))


def _align(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if 3 <= column <= 5 else cell.ljust(width)


def _message(value: str) -> str:
    """Escape the message of a workflow command (actions/toolkit, core/src/command.ts, escapeData)."""
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    """Escape a property of a workflow command (actions/toolkit, core/src/command.ts, escapeProperty)."""
    return _message(value).replace(":", "%3A").replace(",", "%2C")
