"""The gate as a command sees it: files in, text and exit code out."""

from __future__ import annotations

import json

import pytest

from passfit.errors import ConfigError, PassfitError
from passfit.gate import run_gate

from .samples import KIB, MIB


def test_everything_in_budget_passes(repo):
    repo.footprint()
    result = run_gate(repo.path)
    assert result.exit_code == 0
    assert "all 3 checks hold" in result.text


def test_over_budget_fails_with_the_distance(repo):
    repo.footprint(ram=619 * KIB)
    result = run_gate(repo.path)
    assert result.exit_code == 1
    assert "FAIL  a @ x86-64: ram over budget by 19.0 KiB (619.0 KiB of 600.0 KiB)" in result.text


def test_capacity_is_checked_without_a_budget(repo):
    repo.params("models: {a: {source: a}}\ntargets: {x86-64: }")
    repo.footprint(ram=1 << 50)
    result = run_gate(repo.path)
    assert result.exit_code == 1 and "over the device's capacity" in result.text


def test_no_data_at_all_is_two(repo):
    result = run_gate(repo.path)
    assert result.exit_code == 2
    assert "no data" in result.text and "dvc repro" in result.text


def test_one_declared_pair_without_data_fails(repo):
    repo.params("models: {a: {source: a}, b: {source: b}}\ntargets: {x86-64: }")
    repo.footprint("a")
    result = run_gate(repo.path)
    assert result.exit_code == 1
    assert "FAIL  b @ x86-64: no data" in result.text


def test_nothing_declared_does_not_pass(repo):
    repo.params("models: {a: {source: a}}")
    with pytest.raises(ConfigError, match="no model × target is declared"):
        run_gate(repo.path)


def test_an_unknown_target_is_refused(repo):
    repo.params("models: {a: {source: a}}\ntargets: {x86-65: }")
    with pytest.raises(ConfigError, match="Did you mean 'x86-64'"):
        run_gate(repo.path)


def test_an_unknown_format_is_refused(repo):
    with pytest.raises(ConfigError, match="Did you mean 'junit'"):
        run_gate(repo.path, format="junt")


def test_max_growth_needs_a_revision(repo):
    with pytest.raises(ConfigError, match="--against"):
        run_gate(repo.path, max_growth="5%")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "should be an object"),
        ('{"model": "a", "target": "x86-64"}', "start is missing"),
    ],
)
def test_a_malformed_footprint_is_refused(repo, text, said):
    repo.footprint().write_text(text)
    with pytest.raises(PassfitError) as caught:
        run_gate(repo.path)
    assert said in str(caught.value) and "out/compile/a/x86-64/footprint.json" in str(caught.value)


def test_a_footprint_of_something_else_is_stale(repo):
    repo.params("models: {a: {source: a}, b: {source: b}}\ntargets: {x86-64: }")
    text = repo.footprint("a").read_text()
    repo.footprint("b").write_text(text)
    with pytest.raises(PassfitError, match="is about a @ x86-64, not b @ x86-64: it is stale"):
        run_gate(repo.path)


def test_a_size_that_is_no_integer_is_refused(repo):
    place = repo.footprint()
    data = json.loads(place.read_text())
    data["best"]["ram"] = "500"
    place.write_text(json.dumps(data))
    with pytest.raises(PassfitError, match=r"best\.ram should be a valid integer"):
        run_gate(repo.path)


class TestAgainst:
    """Growth since a git revision."""

    def test_more_than_allowed_fails(self, repo):
        repo.footprint(ram=500 * KIB)
        repo.commit("v1")
        repo.footprint(ram=540 * KIB)
        assert run_gate(repo.path, against="v1", max_growth="10%").exit_code == 0
        assert run_gate(repo.path, against="v1", max_growth="40KiB").exit_code == 0
        result = run_gate(repo.path, against="v1")
        assert result.exit_code == 1
        assert "ram over 500.0 KiB + 5% by 15.0 KiB (540.0 KiB of 525.0 KiB)" in result.text
        assert run_gate(repo.path, against="v1", max_growth="39KiB").exit_code == 1

    def test_it_is_read_from_git_and_not_from_the_folder(self, repo):
        repo.footprint(flash=MIB)
        repo.commit("v1")
        repo.footprint(flash=2 * MIB)
        repo.commit("v2")
        assert run_gate(repo.path, against="v1").exit_code == 1
        assert run_gate(repo.path, against="v2").exit_code == 0
        assert run_gate(repo.path, against="HEAD~1").exit_code == 1

    def test_git_may_hold_the_copy_only(self, repo):
        (repo.path / ".gitignore").write_text("/out/\n")
        repo.keep(ram=500 * KIB)
        repo.git("init", "--quiet")
        repo.git("add", ".gitignore", "params.yaml", "footprints")
        repo.git("commit", "--quiet", "--message", "v1")
        repo.footprint(ram=540 * KIB)
        repo.keep(ram=540 * KIB)
        result = run_gate(repo.path, against="HEAD")
        assert result.exit_code == 1 and "over 500.0 KiB + 5% by 15.0 KiB" in result.text

    def test_a_repo_inside_a_git_repository(self, repo, tmp_path_factory):
        top = tmp_path_factory.mktemp("top")
        inner = type(repo)(top / "models")
        inner.path.mkdir()
        inner.params((repo.path / "params.yaml").read_text())
        inner.footprint(ram=500 * KIB)
        outer = type(repo)(top)
        outer.commit("v1")
        inner.footprint(ram=590 * KIB)
        assert run_gate(inner.path, against="v1").exit_code == 1

    def test_a_missing_revision_is_a_warning(self, repo):
        repo.footprint()
        repo.commit("v1")
        result = run_gate(repo.path, against="v0")
        assert result.exit_code == 0
        assert "note  growth not checked: git has no revision v0" in result.text

    def test_a_revision_without_the_result_is_a_warning(self, repo):
        repo.commit("v1")
        repo.footprint()
        result = run_gate(repo.path, against="v1")
        assert result.exit_code == 0
        assert "footprints/a/x86-64.json is not in git at v1" in result.text

    def test_a_revision_with_an_unreadable_result_is_a_warning(self, repo):
        repo.footprint().write_text("{")
        repo.commit("v1")
        repo.footprint()
        result = run_gate(repo.path, against="v1")
        assert result.exit_code == 0 and "not JSON" in result.text

    @pytest.mark.parametrize("revision", ["--output=x", "-p", ""])
    def test_a_revision_that_is_an_option_is_refused(self, repo, revision):
        repo.footprint()
        repo.commit("v1")
        with pytest.raises(ConfigError, match="is not a git revision"):
            run_gate(repo.path, against=revision)
        assert not (repo.path / "x").exists()

    def test_outside_git_it_is_refused(self, repo, monkeypatch):
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(repo.path.parent))
        repo.footprint()
        with pytest.raises(ConfigError, match="is not in a git repository"):
            run_gate(repo.path, against="HEAD")


class TestStepSummary:
    """$GITHUB_STEP_SUMMARY."""

    def test_the_github_format_appends_the_table(self, repo, monkeypatch):
        repo.footprint()
        summary = repo.path / "summary.md"
        summary.write_text("before\n")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
        run_gate(repo.path, format="github")
        assert summary.read_text().startswith("before\n### ✅ passfit gate: all 3 checks hold")

    def test_other_formats_leave_it_alone(self, repo, monkeypatch):
        repo.footprint()
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(repo.path / "summary.md"))
        run_gate(repo.path, format="md")
        assert not (repo.path / "summary.md").exists()
