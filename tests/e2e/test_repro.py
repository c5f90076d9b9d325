"""`passfit init` and `dvc repro` in a model repo: two tiny models, two targets."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from ..results import reproducible

pytestmark = pytest.mark.slow

MODELS = ("first", "second-net")
TARGETS = ("x86-64", "rpi4")
PAIRS = [(model, target) for model in MODELS for target in TARGETS]


@pytest.fixture(scope="module")
def built(tmp_path_factory, make_repo, save_tiny_cnn):
    """A repo after its first `dvc repro`. Tests that change it take a copy: `repo`."""
    repo = make_repo(tmp_path_factory.mktemp("e2e") / "repo")
    save_tiny_cnn(repo.root / "models" / "first.onnx")
    save_tiny_cnn(repo.root / "models" / "Second_Net.onnx", channels=6, seed=1)
    models = [word for name in ("first", "Second_Net") for word in ("--model", f"models/{name}.onnx")]
    repo.passfit("init", *models, *(word for target in TARGETS for word in ("--target", target)))
    ran = repo.repro()
    assert {f"{stage}@{model}-{target}" for stage in ("compile", "footprint") for model, target in PAIRS} < ran
    return repo


@pytest.fixture
def repo(built, tmp_path):
    shutil.copytree(built.root, tmp_path / "repo", symlinks=True)
    return type(built)(tmp_path / "repo", built.python)


def digests(folder: Path) -> dict[str, str]:
    files = sorted(f for f in folder.rglob("*") if f.is_file())
    return {f.relative_to(folder).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


@pytest.mark.parametrize(("model", "target"), PAIRS)
def test_every_model_becomes_a_verified_library_on_every_target(built, model, target):
    out = built.root / "out" / "compile" / model / target
    assert len(list(out.glob("lib*.a"))) == len(list(out.glob("*.h"))) == 1
    assert (out / "manifest.json").is_file()
    footprint = json.loads((out / "footprint.json").read_text())
    assert (footprint["model"], footprint["target"]) == (model, target)
    measured = footprint["measured"]
    if target == "x86-64":
        assert measured["ran"], measured["how"]
    if measured["ran"]:
        assert measured["max_rel_error"] <= 1e-4
    else:
        assert "qemu" in measured["how"], "says what to install"
    assert footprint["best"]["ram"] <= footprint["baseline"]["ram"]


def test_the_gate_passes(built):
    text = built.passfit("gate")
    assert all(model in text for model in MODELS) and all(target in text for target in TARGETS)


@pytest.mark.parametrize(
    "place",
    [
        "out/compile/first/x86-64/footprint.json", "out/compile/first/x86-64/libfirst.a", "out/compile/first/x86-64/first.h",
        "out/compile/first/x86-64/manifest.json", "out/models/first/origin.json", "out/optimize/first/x86-64/search.json",
        "footprints/first/x86-64.json",
    ],
)  # fmt: skip
def test_a_file_changed_by_hand_does_not_pass_the_gate(built, place):
    file = built.root / place
    content = file.read_bytes()
    # another figure, or another layout of JSON that says the same
    changed = re.sub(rb'"ram": (\d)', rb'"ram": 1\1', content)
    changed = changed if changed != content else content + b"\n"
    file.chmod(0o644)
    file.write_bytes(changed)
    try:
        text = built.passfit("gate", expect=2)
    finally:
        file.write_bytes(content)
    assert f"ERROR first @ x86-64: altered: {place.rpartition('/')[0]}" in text and "dvc repro" in text
    assert text.count("\nERROR") == (len(TARGETS) if "origin" in place else 1)


def test_champion_is_of_the_release_and_no_experiment_moves_it(repo):
    from mlflow import MlflowClient

    from passfit.tracking.registry import registered_aliases

    client = MlflowClient(f"sqlite:///{repo.root}/mlflow.db")

    def aliases() -> set[str]:
        return {name for model in MODELS for name in registered_aliases(client, model)}

    shutil.rmtree(repo.root / "mlartifacts")  # it names files of the repo this is a copy of
    (repo.root / "mlflow.db").unlink()
    repo.run("git", "add", ".")
    repo.run("git", "commit", "-qm", "release")
    for where in ((), ("--temp",)):
        said = repo.run(
            repo.python,
            "-m",
            "dvc",
            "exp",
            "run",
            "--name",
            f"try{len(where)}",
            "--set-param",
            f"track.experiment=try{len(where)}",
            *where,
        )
        assert said.count(f"not registered: it is of the experiment 'try{len(where)}'") == len(PAIRS)
        assert aliases() == set()
    said = repo.passfit("track", "--register", expect=1)  # of what an experiment left in the workspace
    assert "it is of the experiment 'try0'" in said and aliases() == set()
    repo.run("git", "commit", "-qam", "apply")
    assert "not registered" not in repo.passfit("track", "--register")
    assert aliases() == {"champion", *(f"champion-{target}" for target in TARGETS)}


def test_a_second_repro_runs_nothing_but_the_look_at_versions(repo):
    before = digests(repo.root / "out")
    assert repo.repro() == {"toolchain"}
    assert digests(repo.root / "out") == before


def test_the_metrics_in_git_are_figures_that_every_run_repeats(built):
    metrics = json.loads(built.run(built.python, "-m", "dvc", "metrics", "show", "--json"))[""]["data"]
    assert metrics.keys() == {f"footprints/{model}/{target}.json" for model, target in PAIRS}
    kept = metrics["footprints/first/x86-64.json"]["data"]
    assert kept["best"]["ram"] > 0 and set(kept["measured"]) <= {"ran", "how", "stack", "instructions", "verified_by"}


def test_kernels_are_timed_for_the_report_on_demand_and_once_and_dvc_draws_the_declared_plots(repo):
    repo.run("git", "add", ".")
    repo.run("git", "commit", "-qm", "first")
    repo.edit("params.yaml", "kernels: false", "kernels: true")
    said = repo.run(repo.python, "-m", "dvc", "repro", expect=255)
    assert f"dvc.yaml has no stage kernels. Run `passfit add --target {TARGETS[0]}`" in said
    repo.passfit("add", "--target", TARGETS[0])
    timed = {f"kernels@{model}-{target}" for model, target in PAIRS}
    assert repo.repro() == timed | {"toolchain", "track", "report"}
    found = json.loads((repo.root / "out/profile/first/x86-64/kernels.json").read_text())
    if found["kernels"]:  # this machine runs it
        assert "the mark is the least time by the roofline" in (repo.root / "out/report/index.html").read_text()
    assert repo.repro() == {"toolchain"}
    drawn = json.loads(repo.run(repo.python, "-m", "dvc", "plots", "diff", "HEAD", "--json"))["data"]
    plots = {name.partition("plots/")[2] for name in drawn}
    kinds = {f"{kind}/{model}/{target}.json" for kind in ("time", "history") for model, target in PAIRS}
    assert plots == kinds | {"ram.json"}
    assert all(set(each["revisions"]) == {"workspace", "HEAD"} for found in drawn.values() for each in found)


def test_a_budget_reruns_the_search_but_no_compilation_of_the_same_choice_and_everything_that_judges_follows(repo):
    # what no plan fits is the least ram at any price: the same choice only without a limit of time
    repo.edit("params.yaml", "max-slowdown: 1.25", "max-slowdown: null")
    repo.repro()
    before = digests(repo.root / "out" / "compile")
    repo.edit("params.yaml", "rpi4: {budget: {ram: null", "rpi4: {budget: {ram: 1KiB")
    said = repo.run(repo.python, "-m", "dvc", "repro")
    ran = set(re.findall(r"^Running stage '(.+?)'", said, re.MULTILINE))
    assert ran == {"toolchain", "track", "report"} | {
        f"{stage}@{model}-rpi4" for model in MODELS for stage in ("optimize", "footprint")
    }
    assert digests(repo.root / "out" / "compile") == before
    for model in MODELS:
        kept = json.loads((repo.root / "footprints" / model / "rpi4.json").read_text())
        assert (kept["budget"]["ram"], kept["fits"]) == (1024, False)
        assert f"{model} @ rpi4: does NOT fit: ram " in said
    assert "runs in MLflow: 4, new: 2" in said
    assert "over budget" in repo.passfit("gate", expect=1)


def test_what_was_edited_is_stale_until_it_is_made_again(repo):
    repo.edit("params.yaml", "tolerance: 1.0e-04", "tolerance: 1.0e-03")
    text = repo.passfit("gate", expect=2)
    assert text.count("stale: verify.tolerance changed") == len(PAIRS)
    model, target = PAIRS[0]
    ran = repo.repro(f"footprint@{model}-{target}")
    expected = {f"{stage}@{model}-{target}" for stage in ("compile", "footprint")}
    assert expected <= ran and not [stage for stage in ran if stage.startswith(("optimize", "import", "profile"))]
    text = repo.passfit("gate", expect=2)
    assert text.count("stale: verify.tolerance changed") == len(PAIRS) - 1 and f"ERROR {model} @ {target}" not in text


def test_another_version_of_the_compiler_reruns_everything(repo):
    lock = (repo.root / "dvc.lock").read_text()
    versions = (repo.root / "out" / "toolchain.json").read_bytes()
    old = hashlib.md5(versions).hexdigest()
    assert old in lock
    (repo.root / "dvc.lock").write_text(lock.replace(old, "f" * 32))
    text = repo.run(repo.python, "-m", "dvc", "status")
    assert all(f"{stage}@{m}-{t}" in text for stage in ("optimize", "compile") for m, t in PAIRS)
    assert all(f"{stage}@{m}" in text for stage in ("import", "profile") for m in MODELS)


def test_compiling_again_gives_the_same_bytes(repo):
    out = repo.root / "out" / "compile" / "first" / "x86-64"
    before = reproducible(out)
    repo.cold().repro("--single-item", "--force", "compile@first-x86-64")  # hashes of strings are others
    assert reproducible(out) == before


def test_git_sees_the_footprints_and_nothing_of_the_results(built):
    status = built.run("git", "status", "--porcelain", "--untracked-files=all")
    seen = {line.split()[-1] for line in status.splitlines()}
    assert {f"footprints/{model}/{target}.json" for model, target in PAIRS} <= seen
    assert not [path for path in seen if path.startswith(("out/", "ml"))]


def test_a_model_without_an_entry_in_dvc_yaml_is_explained(repo):
    repo.edit("params.yaml", "source: models/first.onnx", "source: models/other.onnx")
    shutil.copy(repo.root / "models" / "first.onnx", repo.root / "models" / "other.onnx")
    text = repo.run(repo.python, "-m", "passfit.stages.import_model", "first", "models/first.onnx", expect=2)
    assert "stages.import.foreach" in text and "Traceback" not in text
