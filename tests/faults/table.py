"""Make docs/reliability.md from the marks `fault(name, injection, outcome)` of tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reliability.md"
_OPENING = """# Faults, and what becomes of them

For people who rely on passfit in CI: what goes wrong around a run, and what passfit does then. Each row is a mark of a test;
`python -m pytest -m fault` runs them, and `python -m tests.faults` writes this page.

| fault | injected | what happens | test |
| --- | --- | --- | --- |
"""


@dataclass(frozen=True, order=True)
class Fault:
    """Row of the table; `test` is the path of its file below the root, and its name."""

    name: str
    injection: str
    outcome: str
    test: tuple[str, str]


def faults() -> list[Fault]:
    """List the faults of all tests, sorted."""
    return sorted(fault for file in TESTS.rglob("test_*.py") for fault in _marks(file))


def page() -> str:
    """Write the page."""
    return _OPENING + "".join(f"| {' | '.join(astuple(fault)[:3])} | {_link(*fault.test)} |\n" for fault in faults())


def _link(file: str, test: str) -> str:
    return f"[{test.removeprefix('test_').replace('_', ' ')}](../{file})"


def _marks(file: Path) -> Iterator[Fault]:
    text = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "mark.fault(" in text else ():
        for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault":
                name, injection, outcome = (ast.literal_eval(word) for word in mark.args)
                yield Fault(name, injection, outcome, (file.relative_to(TESTS.parent).as_posix(), node.name))
