"""`passfit compare` and `passfit report` on folders and revisions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from passfit.memory import write_plan, write_report

from ..gate.samples import Repo
from ..report.results import result
from ..strategies import chain


def write(folder: Path, *sizes: int, model: str = "m") -> Path:
    """Write the result folder of a chain of these sizes."""
    made = result(chain(*sizes), model)
    folder.mkdir(parents=True)
    write_plan(made.saved, folder / "plan.json")
    write_report(made.footprint, folder / "footprint.json")
    (folder / "sequence.json").write_text(json.dumps({"passes": list(made.passes), "exact": True, "catalogue": "1"}))
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "one", 64, 512, 256, 64), write(tmp_path / "two", 64, 512, 1024, 64)


def test_two_folders_as_text_markdown_and_json(passfit: Callable, folders):
    text, md, data = (passfit("compare", "one", "two", "--format", each).out for each in ("text", "md", "json"))
    assert "m @ t: one → two" in text and "b2" in text and "node1" in text
    assert "| b2 | 256 B | 1.0 KiB | +768 B | node1 |" in md
    found = json.loads(data)
    assert found["comparisons"][0]["buffers"][0]["name"] == "b2" and found["not_compared"] == []


def test_a_revision_beside_the_results_here(passfit: Callable, tmp_path: Path):
    repo = Repo(tmp_path)
    repo.keep(ram=2048)
    repo.keep("gone", ram=2048)
    repo.commit("then")
    folder = write(tmp_path / "out" / "compile" / "a" / "x86-64", 64, 512, model="a")
    file = folder / "footprint.json"
    file.write_text(file.read_text().replace('"target": "t"', '"target": "x86-64"'))
    done = passfit("compare", "then")
    assert done.code == 0 and "a @ x86-64: then → now" in done.out
    assert "there is no plan.json of the result before" in done.out
    assert "gone @ x86-64: only then has it" in done.out


def test_unchanged_pairs_are_one_line_and_with_all_a_table_each(passfit: Callable, tmp_path: Path):
    for side, last in (("one", 256), ("two", 1024)):
        for model in "abc":
            write(
                tmp_path / side / "out" / "compile" / model / "t", 64, 512, last if model == "b" else 256, model=model
            )
    (tmp_path / "two/out/compile/c/t/plan.json").unlink()
    text, md, everything = (
        passfit("compare", "one", "two", *more).out for more in ((), ("--format", "md"), ("--all",))
    )
    assert "b @ t: one → two" in text and "a @ t" not in text
    assert text.splitlines()[-2:] == [
        "2 pairs unchanged: `passfit compare --all` shows all",
        "not compared in 1 of them: buffers: there is no plan.json of the result after",
    ]
    assert "- 2 pairs unchanged" in md and md.count("###") == 1
    assert everything.count("one → two") == 3 and "unchanged" not in everything
    data = passfit("compare", "one", "two", "--format", "json").out
    assert len(json.loads(data)["comparisons"]) == 3, "JSON has all pairs"
    assert passfit("compare", "one", "one").out.startswith("3 pairs unchanged")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "'nowhere' is neither a folder, nor the id of an MLflow run, nor a git revision with results"),
        (("empty", "one"), "'empty' has no results: neither footprint.json nor out/compile/. Run `dvc repro` there"),
        (("0" * 32, "one"), "there is no MLflow store"),
        (("one", "two", "--format", "xml"), "--format xml: there is no such format. Known: json, md, text."),
        (("repo", "one"), "have no model and target in common"),
        (("--", "-x", "one"), "is not a git revision"),
    ],
)
def test_bad_input_is_one_line_with_a_next_step(refused: Callable, folders, tmp_path: Path, arguments, said: str):
    (tmp_path / "empty").mkdir()
    for model in "ab":
        write(tmp_path / "repo" / "out" / "compile" / model / "t", 64, 64, model=model)
    assert said in refused("compare", *arguments)


def test_a_report_of_folders_needs_no_repo(passfit: Callable, folders, tmp_path: Path):
    done = passfit("report", "one", "two", "--out", "pages/r.html")
    assert done.out == "wrote pages/r.html\n"
    assert (tmp_path / "pages" / "r.html").read_text().count("<h2>m @ t</h2>") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "params.yaml"),
        (("missing",), "'missing' has no footprint.json. Give a folder that `passfit compile --out` wrote."),
        (("one", "--against", "main"), "--against compares the results of a repo, not of folders."),
    ],
)
def test_a_report_of_nothing_is_refused(refused: Callable, folders, arguments, said: str):
    assert said in refused("report", *arguments)
