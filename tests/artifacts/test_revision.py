import json
from pathlib import Path

import pytest

from passfit.artifacts.git import git_files
from passfit.artifacts.html_report import repo_pages
from passfit.artifacts.read_results import read_repo, results_in
from passfit.artifacts.revision import earlier_results, history, results_at_revision
from passfit.errors import ConfigError
from passfit.memory import read_report, write_plan
from passfit.memory.files.footprint_file import text_for_git
from passfit.params.params import load_params
from passfit.report.html.charts import history_rows

from ..gate.samples import PARAMS, Repo, accuracy
from ..report.results import saved
from ..strategies import chain

PAIR = ("a", "x86-64")


@pytest.fixture(params=["", "below"])
def repo(tmp_path: Path, request: pytest.FixtureRequest) -> Repo:
    """Return a repo, at the top of its git repository or in a folder of it."""
    folder = tmp_path / request.param
    folder.mkdir(exist_ok=True)
    made = Repo(folder)
    made.params(PARAMS)
    if request.param:
        Repo(tmp_path).git("init", "--quiet")
    return made


def test_the_history_is_in_order_of_time_with_the_footprints_of_each_commit(repo: Repo):
    for tag, ram in (("one", 1000), ("two", 2000)):
        repo.keep(ram=ram)
        repo.commit(tag)
    repo.params(PARAMS + "\n# no footprint changes\n")
    repo.commit("three")
    found = history(repo.path, [PAIR, ("gone", "x86-64")])
    assert [(each.subject, {pair: report.best.ram for pair, report in each.footprints.items()}) for each in found] == [
        ("one", {PAIR: 1000}), ("two", {PAIR: 2000}),
    ]  # fmt: skip


def test_a_footprint_of_an_older_passfit_is_left_out(repo: Repo):
    repo.write(repo.path / "footprints" / "a" / "x86-64.json", {"old": 1})
    repo.commit("old")
    assert [each.footprints for each in history(repo.path, [PAIR])] == [{}]


def test_accuracies_of_a_revision_are_the_copies_in_git(repo: Repo):
    repo.keep()
    repo.accuracy(0.9)
    repo.commit("one")
    repo.accuracy(0.8)
    repo.commit("two")
    assert [results_at_revision(repo.path, each)[PAIR].accuracy.value for each in ("one", "two")] == [0.9, 0.8]
    (repo.path / "accuracies/a/x86-64.json").write_text("{}")
    repo.commit("broken")
    assert results_at_revision(repo.path, "broken")[PAIR].accuracy is None


def test_a_commit_that_changed_only_an_accuracy_is_part_of_the_past(repo: Repo):
    repo.params(PARAMS.replace("a.onnx", "a.onnx, data: test.npz"))
    repo.samples("test.npz")
    for value in (0.9, 0.8):
        repo.keep()
        repo.accuracy(value)
        repo.commit(str(value))
    repo.footprint()
    repo.accuracy(0.8)
    results = read_repo(repo.path, load_params(repo.path / "params.yaml"))
    assert [each.accuracies[PAIR].value for each in results.history] == [0.9, 0.8]
    name, earlier = earlier_results(repo.path, results)[PAIR]
    assert name.endswith("(0.9)") and earlier.accuracy.value == 0.9
    rows = history_rows(results.history, results.results[0])
    assert [each["accuracy"] for each in rows][:2] == ["0.9", "0.8"] and len({each["ram"] for each in rows}) == 1


def test_only_an_accuracy_of_what_is_there_is_read_and_a_broken_one_hides_no_footprint(repo: Repo):
    repo.params(PARAMS.replace("a.onnx", "a.onnx, data: test.npz"))
    repo.samples("test.npz")
    repo.footprint()
    repo.accuracy(0.9)
    params = load_params(repo.path / "params.yaml")
    (found,) = read_repo(repo.path, params).results
    assert found.accuracy == accuracy(0.9) and results_in(repo.path)[PAIR].accuracy == accuracy(0.9)
    repo.footprint()
    (found,) = read_repo(repo.path, params).results
    assert found.accuracy is None and "changed since it was evaluated" in found.why_unevaluated
    repo.accuracy().write_text("{")
    (found,) = read_repo(repo.path, params).results
    assert found.accuracy is None and "accuracy.json" in found.why_unevaluated
    with pytest.raises(ConfigError, match="accuracy.json"):
        results_in(repo.path)


def test_results_of_a_repo_that_commits_them_have_their_plans(repo: Repo):
    place = repo.footprint(ram=768)
    write_plan(saved(chain(64, 512, 256, 64)), place.with_name("plan.json"))
    place.with_name("sequence.json").write_text(json.dumps({"passes": ["legalize"]}))
    repo.commit("all")
    found = results_at_revision(repo.path, "all")[PAIR]
    assert found.saved is not None and found.saved.plan.arena == 768 and found.passes == ("legalize",)


def test_a_report_compares_with_the_plan_of_the_last_result_that_differs(repo: Repo):
    write_plan(saved(chain(64, 512, 256, 64)), repo.footprint(ram=768).with_name("plan.json"))
    repo.keep(ram=768)
    repo.commit("then")
    write_plan(saved(chain(64, 512, 64, 64)), repo.footprint(ram=640).with_name("plan.json"))
    name, found = earlier_results(repo.path, read_repo(repo.path, load_params(repo.path / "params.yaml")))[PAIR]
    assert name.endswith(" (then)") and found.saved is not None and found.saved.plan.arena == 768
    assert "no plan.json of the result before" not in "".join(
        repo_pages(repo.path, load_params(repo.path / "params.yaml"), repo.path / "r.html").values()
    )


def test_times_and_errors_are_those_of_the_library_where_it_can_be_read(repo: Repo):
    place = repo.footprint(latency_ms=2.5, max_rel_error=1e-6)
    (kept := repo.path / "footprints/a/x86-64.json").parent.mkdir(parents=True)
    kept.write_text(text_for_git(read_report(place)))
    repo.commit("both")
    assert results_at_revision(repo.path, "both")[PAIR].footprint == read_report(place)
    place.unlink()
    repo.commit("copy-alone")
    found = results_at_revision(repo.path, "HEAD")[PAIR].footprint
    assert found.best == read_report(kept).best and found.measured.latency_ms is None


def test_a_copy_of_an_earlier_passfit_has_its_times_still(repo: Repo):
    repo.keep(latency_ms=2.5)
    repo.commit("earlier")
    assert results_at_revision(repo.path, "earlier")[PAIR].footprint.measured.latency_ms == 2.5


def test_a_revision_without_results_is_refused(repo: Repo):
    repo.commit("nothing")
    with pytest.raises(ConfigError, match="nothing has no footprints/ in git. Commit `footprints/`"):
        results_at_revision(repo.path, "nothing")
    with pytest.raises(ConfigError, match="git has no revision nothin here. Did you mean 'nothing'"):
        results_at_revision(repo.path, "nothin")


def test_missing_files_are_left_out_and_others_are_whole(repo: Repo):
    (repo.path / "x").write_text("a\nblob 3\nb\n\u00fc")
    (repo.path / "empty").write_text("")
    repo.commit("files")
    places = [("files", "x"), ("files", "none"), ("none", "x"), ("files", "empty"), ("files", "a\nb")]
    assert git_files(repo.path, places) == {("files", "x"): "a\nblob 3\nb\n\u00fc", ("files", "empty"): ""}


def test_the_same_results_have_one_title_in_any_folder(repo: Repo):
    repo.footprint()
    found = read_repo(repo.path, load_params(repo.path / "params.yaml"))
    assert (found.title, found.history, [each.name for each in found.results]) == ("a", (), ["a @ x86-64"])
