import pytest

from passfit.errors import ConfigError
from passfit.stages.report import report

from ..report.results import EFFECTS
from ..tracking.samples import Repo


def test_the_page_of_all_results_is_written_the_same_each_time(tmp_path, monkeypatch):
    repo = Repo(tmp_path)
    repo.result("a", "rpi4")
    repo.result("b", "x86-64")
    for model in "ab":
        repo.write(f"profile/{model}/effects.json", EFFECTS)
    monkeypatch.chdir(tmp_path)
    said = report(repo.params)
    written = (tmp_path / "out" / "report" / "index.html").read_bytes()
    assert (
        said.startswith("out/report/index.html: ")
        and b"a @ rpi4" in written
        and b"a @ x86-64: there is no result" in written
    )
    report(repo.params)
    assert (tmp_path / "out" / "report" / "index.html").read_bytes() == written


def test_a_file_that_was_changed_by_hand_is_named(tmp_path, monkeypatch):
    repo = Repo(tmp_path)
    repo.result("a", "rpi4")
    repo.write("profile/a/effects.json", {"target": "t", "passes": [], "pairs": [{"first": "a"}]})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"effects\.json': pairs is not a list of objects with alone, delta"):
        report(repo.params)
