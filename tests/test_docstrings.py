"""How the docstrings of the package open: with a verb in the imperative, and the noun of the field, in few words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: of all docstrings, how many may open otherwise
MOST = 0.03
WORDS = 18
_CLAUSE = re.compile(r"\b(what|where|that of|those)\b", re.IGNORECASE)
#: first words of a function's docstring that begin a noun phrase or a clause
_NO_VERB = re.compile(
    r"`|(The|A|An|This|These|Whether|How|When|Why|All|Each|Every|Some|Its|Their|Of|One|Two|No|None|As|For|From|In|By|At"
    r"|With|Without|Bytes|Numbers|Names|Steps|Kernels|Tensors|Buffers|Results|Values|True|False)\b(?!-)"
)


def opening(docstring: str) -> str:
    """Return the first sentence, without what follows a colon or a semicolon."""
    return " ".join(re.split(r"(?<=[.;:])\s|\n\s*\n", docstring.strip())[0].split())


def offence(docstring: str, function: bool) -> str:
    """Return in words how the opening breaks the rule; empty where it keeps it."""
    said = opening(docstring)
    if clause := _CLAUSE.search(re.sub(r"`[^`]*`", "", said)):
        return f"'{clause[0]}'"
    if len(said.split()) > WORDS:
        return f"{len(said.split())} words"
    if function and _NO_VERB.match(said):
        return "no verb"
    return ""


def docstrings(root: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield the place of each docstring, its text, and whether it is a function's; a property is named like a field."""
    for file in sorted(file for top in ("pipeline", "stages", "benchmarks") for file in (root / top).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    line = getattr(node, "lineno", 1)
                    is_property = any(
                        isinstance(each, ast.Name) and each.id in ("property", "cached_property")
                        for each in getattr(node, "decorator_list", ())
                    )
                    function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property
                    yield f"{file.relative_to(root)}:{line}", text, function


@pytest.mark.parametrize(
    ("docstring", "function", "expected"),
    [
        ("Return the largest buffer.", True, ""),
        ("The largest buffer.", True, "no verb"),
        ("The largest buffer.", False, ""),
        ("Whether it fits.", True, "no verb"),
        ("`name` in C.", True, "no verb"),
        ("Name the kernels after their operators.", True, ""),
        ("Return what fits.", True, "'what'"),
        ("Fuse where it pays.", False, "'where'"),
        ("Return the offset. Which one is said by what follows.", True, ""),
        ("Fuse: what remains is a kernel of its own.", True, ""),
        ("Return `where` of numpy.", True, ""),
        ("Return " + "very " * 17 + "much.", True, "19 words"),
        ("In-place variants of a kernel.", True, ""),
    ],
)
def test_the_rule(docstring: str, function: bool, expected: str):
    assert offence(docstring, function) == expected


def test_few_docstrings_open_otherwise():
    places = list(docstrings(ROOT))
    found = [f"{place}: {why}: {opening(text)}" for place, text, function in places if (why := offence(text, function))]
    assert len(found) <= MOST * len(places), f"{len(found)} of {len(places)}:\n" + "\n".join(found)
