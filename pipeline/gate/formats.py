"""Verdicts as text for people, Markdown, JUnit XML, GitHub annotations, and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree

from ..graph.sizes import format_bytes
from .verdicts import COUNTED, Verdict

#: what XML 1.0 cannot hold, not even escaped
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
HEADER = ("model", "target", "what", "used", "limit", "left", "")


@dataclass(frozen=True)
class Report:
    """Every verdict of one run of the gate, what else should be known, and the revision it was compared with."""

    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...]
    against: str | None = None

    @property
    def failures(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.ok)

    @property
    def ok(self) -> bool:
        return bool(self.verdicts) and not self.failures

    @property
    def summary(self) -> str:
        failed, total = len(self.failures), len(self.verdicts)
        return f"{failed} of {total} checks failed" if failed else f"all {total} checks hold"


def text(report: Report) -> str:
    """Aligned columns without colour: the same on a terminal and in a pipe."""
    rows = [HEADER, *(_row(verdict) for verdict in report.verdicts)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]
    lines = ["  ".join(_aligned(cell, width, i) for i, (cell, width) in enumerate(zip(row, widths))) for row in rows]
    lines += ["", *(f"FAIL  {_who(verdict)}: {verdict.why}" for verdict in report.failures)]
    lines += [f"note  {warning}" for warning in report.warnings]
    lines += [f"{name} = {counted}" for name, counted in COUNTED.items()]
    lines.append(report.summary)
    return "\n".join(line.rstrip() for line in lines)


def markdown(report: Report) -> str:
    """A table, the failures above it."""
    mark = "✅" if report.ok else "❌"
    lines = [f"### {mark} passfit gate: {report.summary}", ""]
    lines += [f"- **{_md(_who(verdict))}**: {_md(verdict.why)}" for verdict in report.failures]
    lines += ["", "| model | target | what | used | limit | left | |", "| --- | --- | --- | ---: | ---: | ---: | --- |"]
    lines += ["| " + " | ".join(map(_md, _row(verdict))) + " |" for verdict in report.verdicts]
    lines += ["", *(f"- {_md(warning)}" for warning in report.warnings)]
    lines += ["", "; ".join(f"{name} = {counted}" for name, counted in COUNTED.items())]
    return "\n".join(lines)


def junit(report: Report) -> str:
    """One test case for each verdict; the warnings are the suite's output."""
    counts = {"tests": str(len(report.verdicts)), "failures": str(len(report.failures)), "errors": "0"}
    root = ElementTree.Element("testsuites", {"name": "passfit gate", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "passfit gate", **counts})
    for verdict in report.verdicts:
        name = {"classname": f"{verdict.model}.{verdict.target}", "name": _check(verdict)}
        case = ElementTree.SubElement(suite, "testcase", {key: NOT_XML.sub("?", value) for key, value in name.items()})
        if verdict.ok:
            continue
        why = NOT_XML.sub("?", verdict.why)
        failure = ElementTree.SubElement(case, "failure", {"type": verdict.limit_kind, "message": why})
        failure.text = "\n".join([why, *(f"{quantity} = {counted}" for quantity, counted in COUNTED.items())])
    if report.warnings:
        ElementTree.SubElement(suite, "system-out").text = NOT_XML.sub("?", "\n".join(report.warnings))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def github(report: Report) -> str:
    """Workflow commands: one error for each failure, one warning for each remark, then the summary."""
    lines = [
        f"::error title={_property(f'{_who(verdict)}: {_check(verdict)}')}::{_message(verdict.why)}"
        for verdict in report.failures
    ]
    lines += [f"::warning title=passfit gate::{_message(warning)}" for warning in report.warnings]
    return "\n".join([*lines, report.summary])


def as_json(report: Report) -> str:
    """Everything, sizes in bytes."""
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
        }
        for verdict in report.verdicts
    ]
    data = {"ok": report.ok, "against": report.against, "verdicts": verdicts, "warnings": list(report.warnings)}
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
    return "result" if verdict.limit_kind == "data" else f"{verdict.quantity} {verdict.limit_kind}"


def _row(verdict: Verdict) -> tuple[str, ...]:
    if verdict.used is None or verdict.limit is None or verdict.margin is None:
        sizes: tuple[str, ...] = ("no data", "", "")
    else:
        sizes = tuple(map(format_bytes, (verdict.used, verdict.limit, verdict.margin)))
    return (verdict.model, verdict.target, _check(verdict), *sizes, "ok" if verdict.ok else "FAIL")


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if 3 <= column <= 5 else cell.ljust(width)


def _md(cell: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", cell).replace("\n", " ")


def _message(value: str) -> str:
    """The text of a workflow command (actions/toolkit, core/src/command.ts, escapeData)."""
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    """A property of a workflow command (actions/toolkit, core/src/command.ts, escapeProperty)."""
    return _message(value).replace(":", "%3A").replace(",", "%2C")
