"""`init --merge` in a repo of an owner's own stages: every line of theirs stays, in order, and ours are all there."""

from __future__ import annotations

from pathlib import Path

import pytest

from passfit.errors import ConfigError
from passfit.params.params import load_params
from passfit.scaffold import add_to_repo, check_models, init_repo, remove_from_repo
from passfit.support.yaml_file import read_yaml

from .test_init import files, repo, write_model

__all__ = ["repo"]

STAGES = {
    "as DVC writes it": "stages:\n  train:\n    cmd: python train.py\n    outs:\n    - models/a.onnx\n",
    "wide, with comments": "# how we train\nstages:\n    train:  # weekly\n        cmd: make\n    # deploy: later\n\n# reviews\nmetrics:\n  - metrics.json\n",
    "not last": "stages:\n  train:\n    cmd: make\n\n\nplots:\n  - curves.csv\nvars:\n  - where: models\n",
    "without an end of the line": "stages:\n  train: {cmd: make}",
    "of Windows": "stages:\r\n  train:\r\n    cmd: make\r\nmetrics:\r\n  - m.json\r\n",
    "without stages": "metrics:\n  - m.json\n",
    "with none": "stages:\n",
    "with files of values": "vars:\n- conf/base.toml:lr\n- params.yaml\n- gone.yaml\nstages:\n  train: {cmd: make}\n",
    "empty": "",
    "a comment": "# to come\n",
}
PARAMS = {
    "flat": "epochs: 3   # more is worse\nmodel: resnet\ntrain: {lr: 0.1}\n",
    "without an end of the line": "# ours\nepochs: 3",
    "of Windows": "epochs: 3\r\nlr: 1e-3\r\n",
    "like ours": "model: a\ntarget: b\nboards:\n  ours: {base: rpi4, description: ours}\n",
    "empty": "",
    "numbers": "1: a\nnull: b\n",
}
VARIABLES = "lr = 0.1\ntune = 3\n[models]\nresnet = 1\n"


@pytest.mark.parametrize(
    ("stages", "params"),
    [(text, PARAMS["flat"]) for text in STAGES.values()]
    + [(STAGES["as DVC writes it"], text) for name, text in PARAMS.items() if name != "like ours"]
    + [(None, PARAMS["flat"]), (STAGES["not last"], None)],
    ids=[*STAGES, *(f"params {name}" for name in PARAMS if name != "like ours"), "no dvc.yaml", "no params.yaml"],
)
def test_every_line_stays_in_order_and_add_and_remove_work_there(repo: Path, stages: str | None, params: str | None):
    write_model(repo / "models" / "a.onnx")
    write_model(repo / "models" / "b.onnx")
    (repo / "conf").mkdir()
    (repo / "conf" / "base.toml").write_text(VARIABLES)
    theirs = {"dvc.yaml": stages, "params.yaml": params}
    for name, text in theirs.items():
        if text is not None:
            (repo / name).write_bytes(text.encode())
    owned = {name: read_yaml(repo / name) or {} for name, text in theirs.items() if text is not None}
    shown: list[str] = []
    init_repo(repo, ["models/a.onnx"], ["x86-64"], merge=True, show=shown.append)
    assert len(shown) == len(owned)
    for name in owned:
        merged = (repo / name).read_bytes().decode().splitlines()
        lines = iter(merged)
        assert all(line in lines for line in theirs[name].splitlines())
        data = read_yaml(repo / name)
        if name == "params.yaml":
            assert data == owned[name] | {
                key: data[key]
                for key in ("models", "targets", "search", "tune", "profile", "executor", "verify", "track")
            }
        else:
            kept = {key: value for key, value in owned[name].items() if key != "stages"}
            assert {key: value for key, value in data.items() if key != "stages"} == kept
            inside = owned[name].get("stages") or {}
            assert {key: data["stages"][key] for key in inside} == inside
            assert {"toolchain", "import", "compile", "report"} < data["stages"].keys()
    loaded = load_params(repo / "params.yaml")
    assert list(loaded.models) == ["a"] and loaded.models["a"].source == "models/a.onnx"

    before = {name: (repo / name).read_bytes() for name in theirs}
    add_to_repo(repo, ["models/b.onnx"], ["rpi4"])
    check_models(load_params(repo / "params.yaml").models, repo / "dvc.yaml")
    assert list(load_params(repo / "params.yaml").targets) == ["x86-64", "rpi4"]
    remove_from_repo(repo, ["b"], ["rpi4"])
    assert {name: (repo / name).read_bytes() for name in theirs} == before


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("dvc.yaml", "stages:\n  import: {cmd: make}\n  report: {cmd: make}\n", "a stage 'import' and 'report' already"),
        ("dvc.yaml", "stages:\n  train:\n    cmd: make\n    outs: [out]\n", "the stage 'train' owns 'out'"),
        ("dvc.yaml", "stages:\n  a:\n    foreach: [x]\n    do: {cmd: b, metrics: [footprints/: {cache: false}]}\n", "'footprints'"),
        ("dvc.yaml", "stages:\n  a:\n    cmd: b\n    outs: [out/compile/a]\n", "the stage 'a' owns 'out/compile/a'"),
        ("dvc.yaml", "vars:\n  - config.yaml\n  - {epochs: 3, models: [a]}\n", "a value under vars 'models' already"),
        ("dvc.yaml", "vars:\n  - conf/base.toml\n", "a value under vars (in 'conf/base.toml') 'models' and 'tune' already"),
        ("dvc.yaml", "vars:\n  - conf/base.toml:lr,tune\n", "a value under vars (in 'conf/base.toml') 'tune' already"),
        (
            "dvc.yaml",
            "stages:\n  a:\n    wdir: conf\n    cmd: b\n    vars: [base.toml]\n",
            "under stages.a.vars (in 'base.toml') 'models'",
        ),
        ("dvc.yaml", "stages: train\n", "its stages are not a table"),
        ("dvc.yaml", "vars: 3\n", "its vars not a list"),
        ("dvc.yaml", "- 3\n", "nothing can be appended to stages"),
        ("dvc.yaml", "stages: {train: {cmd: make}}\n", "nothing can be appended to stages as it is written"),
        ("params.yaml", "models: [resnet]\nepochs: 3\n", "a section 'models' already"),
        ("params.yaml", PARAMS["like ours"], "a section 'boards' already"),
        ("params.yaml", "board: x\n", "board is unknown"),
        ("params.yaml", "epochs: 3\n...\n", "nothing can be appended to it as it is written"),
        ("params.yaml", "- 3\n", "nothing can be appended to it as it is written"),
    ],
)  # fmt: skip
def test_what_cannot_be_merged_is_named_and_nothing_is_written(repo: Path, file: str, text: str, said: str):
    write_model(repo / "a.onnx")
    (repo / "conf").mkdir()
    (repo / "conf" / "base.toml").write_text(VARIABLES)
    (repo / file).write_text(text)
    for merge in (True, False):
        with pytest.raises(ConfigError) as refused:
            init_repo(repo, ["a.onnx"], ["x86-64"], merge=merge)
        assert said in refused.value.what and refused.value.hint
        assert (repo / file).read_text() == text and files(repo) == {"a.onnx", "conf", file}
    assert "--folder passfit" in refused.value.hint and "--merge" not in refused.value.hint


def test_a_second_merge_says_how_to_add(repo: Path):
    write_model(repo / "a.onnx")
    init_repo(repo, ["a.onnx"], ["x86-64"], merge=True)
    with pytest.raises(ConfigError, match="passfit's stages already.*passfit add"):
        init_repo(repo, ["a.onnx"], ["x86-64"], merge=True)
