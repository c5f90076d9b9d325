"""Check the documents: links, paths, commands, options, passes, parameters, examples, the map, figures beside results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
DOCUMENTS = [README, CONTRIBUTING, ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = (
    "ci-gate",
    "exporting",
    "latency-and-tuning",
    "memory-model",
    "microcontrollers",
    "operators",
    "packages",
    "passes",
    "python-api",
    "quantised-models",
    "release-0.2.0",
    "reliability",
    "report",
    "results",
    "samples",
    "search",
    "splits",
    "tutorial",
)

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"\b(?:pipeline|tests|benchmarks)/[\w./-]*\w")
_SPAN = re.compile(r"`([^`\n]+)`")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:^\$ |^|\bbin/|&& )passfit ((?:bench )?[a-z]+)\b([^#|;&]*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_PASS = re.compile(r"([a-z][a-z-]+)\{([^{}]*)\}")
_YAML = re.compile(r"(\w+): \{.*\}")
#: a commit as a source: only pages of results have one, which links lead to
_COMMIT = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
_DECIMAL = re.compile(r"(?<![\w.,-])\d+\.\d+(?![\w.])")
#: names with options in braces that are not passes: schedules of kernels, see kernels/schedule/choices.py
_CHOICES = {"tile"}


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


@cache
def files_of_the_tree() -> frozenset[str]:
    rooms = ("pipeline", "stages", "tests", "benchmarks")
    return frozenset(f"/{file.relative_to(ROOT).as_posix()}" for room in rooms for file in (ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_named_module_exists(document):
    """Of a module its name, or the end of its path, may be given."""
    for span in _SPAN.findall(prose(document)):
        if re.fullmatch(r"[\w/]+\.py", span):
            assert any(file.endswith(f"/{span}") for file in files_of_the_tree()), span


@cache
def options_of_commands() -> dict[str, frozenset[str]]:
    """Return the options of every command; those of the program itself by the name ""."""
    import typer

    from passfit.cli.app import app

    program = typer.main.get_command(app)
    commands = {"": program, **program.commands}
    bench = commands.pop("bench")
    commands |= {f"bench {name}": command for name, command in bench.commands.items()}
    return {
        name: frozenset(option for each in command.params for option in (*each.opts, *each.secondary_opts))
        for name, command in commands.items()
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_command_has_its_options(document):
    known = options_of_commands()
    text = document.read_text(encoding="utf-8")
    blocks = [block.replace("\\\n", " ") for _, block in _BLOCK.findall(text)]
    for line in [*_SPAN.findall(prose(document)), *"\n".join(blocks).split("\n")]:
        for command, arguments in _COMMAND.findall(line):
            assert command in known, line
            assert set(_OPTION.findall(arguments)) <= known[command] | known[""] | {"--help"}, line


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_option_is_one_of_a_command(document):
    known = options_of_commands()
    every = frozenset().union(*known.values())
    for span in _SPAN.findall(prose(document)):
        first, _, rest = span.partition(" ")
        if first.startswith("--"):
            assert first in every, span
        elif first in known:
            assert set(_OPTION.findall(rest)) <= known[first], span
        elif script := re.search(r"benchmarks/\w+\.py", span):
            code = (ROOT / script[0]).read_text(encoding="utf-8")
            assert all(f'"{option}"' in code for option in _OPTION.findall(span)), span


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_pass_has_its_options(document):
    from passfit.passes.sequence.catalogue import CATALOGUE

    text = document.read_text(encoding="utf-8")
    for name, options in [found for span in _SPAN.findall(text) for found in _PASS.findall(span)]:
        if name not in _CHOICES:
            given = {option.partition("=")[0] for option in options.split(",")} - {"…", ""}
            assert name in CATALOGUE, name
            assert given <= {field.name for field in fields(CATALOGUE[name])}, f"{name}{{{options}}}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_piece_of_params_is_one(document):
    """Check whole sections, in blocks of YAML and in the text: unknown keys and wrong values."""
    from ruamel.yaml import YAML

    from passfit.params.params import Params, params_of

    pieces = [block for language, block in _BLOCK.findall(document.read_text(encoding="utf-8")) if language == "yaml"]
    pieces += [span for span in _SPAN.findall(prose(document)) if _YAML.fullmatch(span)]
    for piece in pieces:
        data = YAML(typ="safe").load(piece)
        if isinstance(data, dict) and data and set(data) <= set(Params.model_fields):
            for target in data.get("targets", {}).values():
                for model in [*target.get("budgets", {}), *target.get("accepted-growth", {})]:
                    data.setdefault("models", {}).setdefault(model, {"source": "model.onnx"})
            params_of(data, document)


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_a_figure_beside_a_page_of_results_is_there(document):
    """Check decimals of paragraphs that link results; a table belongs to the paragraph that ends with a colon above it."""
    if document in (README, ROOT / "docs" / "results.md"):
        return  # written from the results
    text = re.sub(r":\n\n\|", ":\n|", prose(document))
    assert not _COMMIT.findall(text), "name a page of results, not a commit"
    titles = {}
    for page in (ROOT / "benchmarks" / "results").glob("*.md"):
        content = page.read_text(encoding="utf-8")
        titles |= {page.name: content, **dict.fromkeys(anchors(page), content)}
    for block in text.split("\n\n"):
        links = [re.split("[/#]", link)[-1] for link in _LINK.findall(block) if "results" in link]
        if links:
            shown = "".join(titles.get(link, "") for link in links)
            missing = [number for number in _DECIMAL.findall(block) if number not in _DECIMAL.findall(shown)]
            assert missing == [], block


@pytest.mark.parametrize("form", ["bug", "feature"])
def test_a_form_for_issues_has_what_github_reads(form):
    """Check the keys of GitHub's schema for issue forms: a name, a description, and questions with labels."""
    from ruamel.yaml import YAML

    data = YAML(typ="safe").load(ROOT / ".github" / "ISSUE_TEMPLATE" / f"{form}.yml")
    assert data["name"] and data["description"]
    questions = [each for each in data["body"] if each["type"] != "markdown"]
    assert all(each["type"] in ("input", "textarea", "dropdown", "checkboxes") for each in questions)
    assert all(each["attributes"]["label"] for each in questions)
    identities = [each["id"] for each in questions]
    assert len(identities) == len(set(identities)) > 0 and "version" in identities


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


def test_every_schedule_rule_has_a_row():
    """Check the modules whose rules kernels/schedule asks; folders that the page names stand for what they hold."""
    code = (ROOT / "pipeline" / "kernels" / "schedule" / "candidates.py").read_text(encoding="utf-8")
    modules = {name.replace(".", "/") for name in re.findall(r"^from \.\.rules\.([\w.]+) import", code, re.MULTILINE)}
    text = CONTRIBUTING.read_text(encoding="utf-8")
    assert len(modules) >= 15
    for module in modules - {"rule"}:
        assert f"{module}.py`" in text or f"rules/{module.rpartition('/')[0]}/`" in text, module


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
