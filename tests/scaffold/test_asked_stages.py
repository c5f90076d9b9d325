"""The stages `tune` and `kernels` are in dvc.yaml once params.yaml asks for them: `add` puts them in, `toolchain` says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from passfit.errors import ConfigError
from passfit.params.params import load_params
from passfit.scaffold import add_to_repo, asked_stages, check_asked, init_repo, render_dvc_yaml
from passfit.support.yaml_file import parse_yaml, read_yaml

from .test_init import repo, write_model  # noqa: F401, a fixture

ASKED = {
    "tune": [("seconds: 0,", "seconds: 9,")],
    "tune of a target": [("x86-64: {", "x86-64: {tune: {seconds: 9}, ")],
    "kernels": [("kernels: false", "kernels: true")],
    "both": [("seconds: 0,", "seconds: 9,"), ("kernels: false", "kernels: true")],
    "cells": [("executor: null", "executor: local")],
    "cells and kernels": [("executor: null", "executor: local"), ("kernels: false", "kernels: true")],
}


@pytest.fixture
def made(repo: Path) -> Path:  # noqa: F811
    write_model(repo / "a.onnx")
    init_repo(repo, ["a.onnx"], ["x86-64", "rpi4"])
    return repo


def ask(repo: Path, changes: list[tuple[str, str]]) -> None:  # noqa: F811
    text = (repo / "params.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (repo / "params.yaml").write_text(text)


def unordered(stages: dict[str, Any]) -> dict[str, Any]:
    return {name: body | {"deps": sorted(body.get("deps", ()))} for name, body in stages.items()}


def test_a_fresh_repo_has_no_stage_that_does_nothing(made: Path):
    stages = read_yaml(made / "dvc.yaml")["stages"]
    assert not {"tune", "kernels"} & stages.keys() and "tuning.json" not in (made / "dvc.yaml").read_text()
    check_asked(load_params(made / "params.yaml"), made / "dvc.yaml")


@pytest.mark.parametrize("changes", ASKED.values(), ids=ASKED)
def test_what_params_asks_for_is_added_by_the_command_that_the_refusal_names(made: Path, changes):
    ask(made, changes)
    params = load_params(made / "params.yaml")
    with pytest.raises(ConfigError, match="has no stage") as refused:
        check_asked(params, made / "dvc.yaml")
    assert refused.value.hint == "Run `passfit add --target x86-64`, which adds it."
    assert add_to_repo(made, targets=["x86-64"]) == [made / "dvc.yaml"]
    check_asked(params, made / "dvc.yaml")
    rendered = render_dvc_yaml(params.models, params.targets, repo=made, asked=asked_stages(params))
    expected = parse_yaml(rendered, made / "dvc.yaml")["stages"]
    assert unordered(read_yaml(made / "dvc.yaml")["stages"]) == unordered(expected)
    assert add_to_repo(made, targets=["x86-64"]) == []


def test_kernels_that_are_timed_already_read_a_tuning_that_is_asked_for_later(made: Path):
    for changes in (ASKED["kernels"], ASKED["tune"]):
        ask(made, changes)
        add_to_repo(made, targets=["x86-64"])
    one_by_one = read_yaml(made / "dvc.yaml")["stages"]
    params = load_params(made / "params.yaml")
    rendered = render_dvc_yaml(params.models, params.targets, repo=made, asked=asked_stages(params))
    assert unordered(one_by_one) == unordered(parse_yaml(rendered, made / "dvc.yaml")["stages"])


def test_a_dvc_yaml_that_has_them_keeps_them_where_params_asks_for_neither(made: Path):
    params = load_params(made / "params.yaml")
    older = render_dvc_yaml(params.models, params.targets, repo=made, asked=("tune", "kernels"))
    (made / "dvc.yaml").write_text(older)
    check_asked(params, made / "dvc.yaml")
    write_model(made / "b.onnx")
    add_to_repo(made, ["b.onnx"])
    assert {"tune", "kernels"} <= read_yaml(made / "dvc.yaml")["stages"].keys()


def test_a_dvc_yaml_that_compiles_in_another_way_is_left_alone(made: Path):
    ask(made, ASKED["both"])
    (made / "dvc.yaml").write_text("stages:\n  train: {cmd: make}\n")
    check_asked(load_params(made / "params.yaml"), made / "dvc.yaml")
    assert add_to_repo(made, targets=["x86-64"]) == []


def test_cells_stand_for_the_stages_of_each_cell(made: Path):
    ask(made, ASKED["cells"])
    add_to_repo(made, targets=["mps2-an386"])
    stages = read_yaml(made / "dvc.yaml")["stages"]
    assert "cells" in stages and not {"optimize", "compile", "footprint"} & stages.keys()
    before = (made / "dvc.yaml").read_text()
    add_to_repo(made, targets=["visionfive2"])
    assert (made / "dvc.yaml").read_text() == before


@pytest.mark.parametrize("first", ["kernels", "both"])
def test_cells_replace_a_tuning_that_is_there_and_all_that_reads_it(made: Path, first: str):
    ask(made, ASKED[first])
    add_to_repo(made, targets=["x86-64"])
    if first == "both":
        ask(made, [("seconds: 9,", "seconds: 0,")])
    ask(made, ASKED["cells"])
    add_to_repo(made, targets=["x86-64"])
    params = load_params(made / "params.yaml")
    rendered = render_dvc_yaml(params.models, params.targets, repo=made, asked=asked_stages(params))
    stages = read_yaml(made / "dvc.yaml")["stages"]
    assert unordered(stages) == unordered(parse_yaml(rendered, made / "dvc.yaml")["stages"])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (ASKED["tune"], "tune.seconds"),
        ([("until: minimum,", "until: minimum, max-latency: 2x,")], "search.max-latency"),
    ],
)
def test_cells_side_by_side_and_what_measures_exclude_each_other(made: Path, changes, named: str):
    ask(made, [*ASKED["cells"], *changes])
    with pytest.raises(ConfigError, match=f"for {named}: cells side by side would disturb its measurements"):
        check_asked(load_params(made / "params.yaml"), made / "dvc.yaml")
