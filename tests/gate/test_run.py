"""Test the gate from files to text and exit code."""

from __future__ import annotations

import json

import pytest

from passfit.artifacts.failures import record_failure
from passfit.artifacts.git import check_revision
from passfit.errors import ConfigError
from passfit.gate import judge_repo, run_gate, why_refused
from passfit.gate.formats import FORMATS
from passfit.params.params import load_params
from passfit.targets.catalogue import get_target

from .samples import KIB, MIB, PARAMS


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


def test_a_failure_knows_its_line_from_the_root_of_git(repo):
    repo.params(PARAMS)
    repo.footprint(ram=619 * KIB)
    (repo.path.parent / ".git").mkdir(exist_ok=True)
    line = PARAMS.splitlines().index("  x86-64: {budget: {ram: 600KiB}}") + 1
    assert (
        f"::error file={repo.path.name}/params.yaml,line={line},title=a @ x86-64"
        in run_gate(repo.path, format="github").text
    )


def test_a_result_without_data_is_annotated_at_its_model(repo):
    line = PARAMS.splitlines().index("  a: {source: a.onnx}") + 1
    assert f"params.yaml,line={line},title=a @ x86-64%3A result::no data" in run_gate(repo.path, format="github").text


def test_capacity_is_checked_without_a_budget(repo):
    repo.params("models: {a: {source: a}}\ntargets: {x86-64: }")
    repo.footprint(ram=1 << 50)
    result = run_gate(repo.path)
    assert result.exit_code == 1 and "over the device's capacity" in result.text


def test_no_data_at_all_is_two(repo):
    result = run_gate(repo.path)
    assert result.exit_code == 2
    assert "no data" in result.text and "dvc repro" in result.text


def test_a_clone_without_data_is_told_to_pull_it_and_what_does_not_wait_for_it(repo):
    repo.params(PARAMS.replace("models:", "models:\n  b: {source: b.onnx}"))
    repo.keep()
    repo.footprint("b")
    (repo.path / "dvc.yaml").write_text("stages: {}")
    text = run_gate(repo.path).text
    assert "out/compile/a/x86-64/footprint.json. Get it with `dvc pull`; without a remote, run `dvc repro`." in text
    assert "`passfit track` and `passfit report` take those that are there" in text


def test_a_missing_or_stale_result_names_the_stage_that_failed(repo):
    record_failure(repo.path, "import_model", "The operator 'Loop' is refused.", "a")
    assert (
        "no data: there is no out/compile/a/x86-64/footprint.json: stage import failed: The operator 'Loop' is refused."
        in run_gate(repo.path).text
    )
    repo.footprint()
    assert "all 3 checks hold" in run_gate(repo.path).text
    (repo.path / "a.onnx").write_bytes(b"another model")
    assert (
        "Run `dvc repro`. The last run of stage import failed: The operator 'Loop' is refused."
        in run_gate(repo.path).text
    )


def test_one_declared_pair_without_data_is_two_even_where_another_is_over_budget(repo):
    repo.params("models: {a: {source: a}, b: {source: b}}\ntargets: {x86-64: }")
    repo.footprint("a", ram=1 << 50)
    result = run_gate(repo.path)
    assert result.exit_code == 2
    assert "ERROR b @ x86-64: no data" in result.text and "FAIL  a @ x86-64: ram over" in result.text


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
    result = run_gate(repo.path)
    assert result.exit_code == 2
    assert "ERROR a @ x86-64: 'out/compile/a/x86-64/footprint.json': " in result.text and said in result.text


def test_a_footprint_of_something_else_is_stale(repo):
    repo.params("models: {a: {source: a}, b: {source: b}}\ntargets: {x86-64: }")
    text = repo.footprint("a").read_text()
    repo.footprint("b").write_text(text)
    result = run_gate(repo.path)
    assert result.exit_code == 2 and "is about a @ x86-64, not b @ x86-64: it is stale" in result.text


def test_a_size_that_is_no_integer_is_refused(repo):
    place = repo.footprint()
    data = json.loads(place.read_text())
    data["best"]["ram"] = "500"
    place.write_text(json.dumps(data))
    result = run_gate(repo.path)
    assert result.exit_code == 2 and "best.ram should be a valid integer" in result.text


def test_a_sum_over_capacity_refuses_every_model_of_the_target(repo):
    repo.params("models: {a: {source: a}, b: {source: b}}\ntargets: {rpi4: , x86-64: }")
    half = get_target("rpi4").ram // 2
    for target in ("rpi4", "x86-64"):
        repo.footprint("a", target, ram=half)
        repo.footprint("b", target, ram=half + 1)
    result = run_gate(repo.path)
    assert (
        result.exit_code == 1 and "FAIL  all models @ rpi4: sum of ram over the device's capacity by 1 B" in result.text
    )
    refused = why_refused(repo.path, load_params(repo.path / "params.yaml"))
    assert [pair for pair, why in refused.items() if why] == [("a", "rpi4"), ("b", "rpi4")]


def test_the_limit_most_in_use_may_be_any(repo):
    repo.params("models: {a: {source: a}}\ntargets: {x86-64: {budget: {ram: 600KiB, latency: 2ms}}}")
    repo.footprint(ram=400 * KIB)
    params = load_params(repo.path / "params.yaml")
    found = judge_repo(repo.path, params)["a", "x86-64"]
    assert (found.why, found.tightest, found.strain) == ("", "latency 1.50 ms of 2.00 ms", 0.75)
    repo.footprint(ram=700 * KIB)
    found = judge_repo(repo.path, params)["a", "x86-64"]
    assert found.tightest == "ram 700.0 KiB of 600.0 KiB" and found.why.startswith("ram over budget by 100.0 KiB")


class TestAgainst:
    """Test growth since a git revision."""

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

    def test_growth_that_is_accepted_passes_with_its_reason_and_later_growth_fails_again(self, repo):
        repo.footprint(ram=500 * KIB)
        repo.commit("v1")
        accepted = f"{{budget: {{ram: 600KiB}}, accepted-growth: {{a: {{ram: {540 * KIB}, reason: a wider head}}}}}}"
        repo.params(PARAMS.replace("{budget: {ram: 600KiB}}", accepted))
        repo.footprint(ram=540 * KIB)
        result = run_gate(repo.path, against="v1")
        assert result.exit_code == 0 and "ram growth (500.0 KiB +8.0%)" in result.text
        assert "note  a @ x86-64: growth of ram from 500.0 KiB to 540.0 KiB is accepted: a wider head" in result.text
        repo.footprint(ram=540 * KIB + 1)
        result = run_gate(repo.path, against="v1", format="github")
        assert result.exit_code == 1 and "540.0 KiB are accepted" not in result.text, "a byte more shows"
        assert f"{540 * KIB:,} B are accepted" in result.text and "::error file=params.yaml,line=" in result.text

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

    @pytest.mark.parametrize("format", sorted(FORMATS))
    def test_a_missing_revision_is_an_error_in_every_format(self, repo, format):
        repo.footprint()
        repo.commit("v1")
        result = run_gate(repo.path, against="v0", format=format)
        assert result.exit_code == 2
        assert "growth not checked: git has no revision v0 here. Did you mean 'v1'?" in result.text.replace("\\", "")

    def test_a_revision_that_declares_the_pair_and_lacks_its_result_is_an_error(self, repo):
        repo.commit("v1")
        repo.footprint()
        result = run_gate(repo.path, against="v1")
        assert result.exit_code == 2
        assert (
            "ERROR a @ x86-64: growth not checked: v1 declares a @ x86-64, but footprints/a/x86-64.json" in result.text
        )

    def test_a_pair_that_is_new_since_the_revision_is_a_note(self, repo):
        repo.footprint()
        repo.commit("v1")
        repo.params("models: {a: {source: a.onnx}, b: {source: b.onnx}}\ntargets: {x86-64: , rpi4: }")
        for model, target in (("b", "x86-64"), ("a", "rpi4"), ("b", "rpi4"), ("a", "x86-64")):
            repo.footprint(model, target)
        result = run_gate(repo.path, against="v1")
        assert result.exit_code == 0
        assert result.text.count("growth not checked: new since v1") == 3

    def test_a_revision_before_passfit_has_no_past(self, repo):
        (repo.path / "params.yaml").unlink()
        (repo.path / "README").write_text("soon")
        repo.commit("v1")
        repo.params(PARAMS)
        repo.footprint()
        assert run_gate(repo.path, against="v1").exit_code == 0

    def test_params_of_the_revision_that_cannot_be_read_are_an_error(self, repo):
        repo.params("models: [")
        repo.commit("v1")
        repo.params(PARAMS)
        repo.footprint()
        result = run_gate(repo.path, against="v1")
        assert result.exit_code == 2 and "v1:params.yaml" in result.text

    def test_a_revision_with_an_unreadable_result_is_an_error(self, repo):
        repo.footprint().write_text("{")
        repo.commit("v1")
        repo.footprint()
        result = run_gate(repo.path, against="v1")
        assert result.exit_code == 2 and "not JSON" in result.text

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
        with pytest.raises(ConfigError, match="^'.*' is not in a git repository. Run this in one, or give a folder"):
            check_revision(repo.path, "HEAD", "")


class TestStepSummary:
    """Test $GITHUB_STEP_SUMMARY."""

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
