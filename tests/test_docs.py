"""Check the documents: links, paths, examples, the map, and figures beside their files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
DOCUMENTS = [README, CONTRIBUTING, *sorted((ROOT / "docs").glob("*.md"))]
PAGES = (
    "ci-gate",
    "latency-and-tuning",
    "memory-model",
    "microcontrollers",
    "passes",
    "report",
    "results",
    "search",
    "splits",
    "tutorial",
)

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"\b(?:pipeline|tests|benchmarks)/[\w./-]*\w")


def names(documents: list[Path]) -> list[str]:
    return [document.relative_to(ROOT).as_posix() for document in documents]


def prose(document: Path) -> str:
    """Return the text outside of fenced blocks."""
    return _FENCED.sub("", document.read_text(encoding="utf-8"))


def anchors(document: Path) -> set[str]:
    """Return the anchors GitHub gives the headings."""
    found: set[str] = set()
    for title in re.findall(r"^#+ (.+)$", prose(document), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        number = 0
        while (unique := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(unique)
    return found


def examples() -> Iterator[tuple[str, str]]:
    """Yield the (file, text) of every example in CONTRIBUTING; its first line names the file."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    yield from re.findall(r"^```\w+\n# (\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_readme_is_one_screen():
    assert README.stat().st_size <= 5000


def test_every_page_is_there_and_says_for_whom():
    for name in PAGES:
        title, _, first = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split("\n")[:3]
        assert title.startswith("# ") and first.startswith("For "), name


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_relative_link_leads_to_a_file_and_a_heading(document):
    for link in _LINK.findall(prose(document)):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (document.parent / place).resolve() if place else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_named_path_exists(document):
    for name in _PATH.findall(document.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), name


def test_every_room_is_on_the_map():
    rooms = {folder.name for folder in (ROOT / "pipeline").iterdir() if (folder / "__init__.py").is_file()}
    listed = set(re.findall(r"^\| +\d+ \| `pipeline/(\w+)/`", CONTRIBUTING.read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == rooms


def test_the_map_has_the_layers_of_the_import_contract():
    tomli = pytest.importorskip("tomli")
    contract = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][
        0
    ]
    wanted = [
        (str(number), room.strip().removeprefix("passfit."))
        for number, layer in enumerate(contract["layers"], start=1)
        for room in layer.split("|")
    ]
    rows = re.findall(
        r"^\| +(\d+) \| `(?:pipeline/)?(\w+)(?:/|\.py)`", CONTRIBUTING.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(rows) == sorted(wanted)


def test_examples_are_lines_of_the_tree():
    found = list(examples())
    assert len(found) >= 8
    for file, text in found:
        lines = {line.strip() for line in (ROOT / file).read_text(encoding="utf-8").split("\n")}
        for line in filter(None, map(str.strip, text.split("\n"))):
            assert "…" in line or line in lines, f"{file}: {line}"


@pytest.fixture
def results_page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import results_page

    return results_page


def test_the_rows_of_the_readme_are_those_of_the_results(results_page):
    rows = results_page.README_ROW.findall(README.read_text(encoding="utf-8"))
    assert len(rows) == 6
    assert results_page.written()[README] == README.read_text(encoding="utf-8"), "run benchmarks/results_page.py"


def test_the_page_of_results_is_up_to_date(results_page):
    text = results_page.page()
    assert results_page.PAGE.read_text(encoding="utf-8") == text, "run benchmarks/results_page.py"
    assert [file for file in results_page.RESULTS.glob("*.md") if file.name not in text] == []
