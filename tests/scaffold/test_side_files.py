"""Side files of models are dependencies in dvc.yaml, of any name, folder and number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from passfit.errors import ConfigError
from passfit.params.params import load_params
from passfit.scaffold import add_to_repo, check_watched, init_repo, render_dvc_yaml
from passfit.scaffold.dvc_file import watched_files
from passfit.support.yaml_file import read_yaml

from ..frontend.source.test_side_files import outside, save_split
from ..models import model_of
from .test_init import repo, write_model  # noqa: F401, a fixture


def stages(repo: Path) -> dict:  # noqa: F811
    return read_yaml(repo / "dvc.yaml")["stages"]


def save_in(path: Path, *locations: str) -> Path:
    """Save a model with one weight in each of the files."""
    for location in locations:
        (path.parent / location).parent.mkdir(parents=True, exist_ok=True)
        (path.parent / location).write_bytes(bytes(16))
    tensors = [outside(f"w{i}", np.zeros(4, np.float32), location) for i, location in enumerate(locations)]
    nodes = [helper.make_node("Sum", ["x", *(tensor.name for tensor in tensors)], ["y"])]
    onnx.save(model_of(nodes, {"x": [4]}, {"y": [4]}, tensors), path)
    return path


def test_init_watches_them_all(repo):  # noqa: F811
    (repo / "models").mkdir()
    write_model(repo / "models" / "a.onnx")
    save_in(repo / "models" / "b.onnx", "b.onnx.data", "weights/of b", "./weights/../c")
    init_repo(repo, ["models/a.onnx", "models/b.onnx"], ["x86-64"], {})
    found = stages(repo)
    assert found["import"]["foreach"] == {"a": "models/a.onnx"}
    files = ["models/b.onnx", "models/b.onnx.data", "models/c", "models/weights/of b"]
    assert sorted(found["import-b"]["deps"]) == [*files, "out/settings/b/import.json", "out/toolchain.json"]
    assert found["import-b"]["cmd"] == "python -m passfit.stages.import_model b 'models/b.onnx'"
    shared = found["import"]["do"]
    assert found["import-b"]["outs"] == [each.replace("${key}", "b") for each in shared["outs"]]
    check_watched("b", "models/b.onnx", repo / "dvc.yaml")


def test_models_that_all_have_some_leave_an_empty_section(repo):  # noqa: F811
    save_split(repo / "b.onnx", location="w")
    init_repo(repo, ["b.onnx"], ["x86-64"], {})
    assert stages(repo)["import"]["foreach"] == {}
    write_model(repo / "a.onnx")
    add_to_repo(repo, ["a.onnx"])
    assert stages(repo)["import"]["foreach"] == {"a": "a.onnx"}
    assert list(load_params(repo / "params.yaml").models) == ["b", "a"]


def test_adding_gives_what_init_would_have_written(repo):  # noqa: F811
    write_model(repo / "a.onnx")
    for name in ("b", "c"):
        save_split(repo / f"{name}.onnx", location=f"{name}.data")
    init_repo(repo, ["a.onnx"], ["x86-64"], {})
    add_to_repo(repo, ["b.onnx", "c.onnx"])
    found = [(repo / file).read_text() for file in ("params.yaml", "dvc.yaml")]
    assert add_to_repo(repo, ["b.onnx", "c.onnx"]) == []
    init_repo(repo, ["a.onnx", "b.onnx", "c.onnx"], ["x86-64"], {}, force=True)
    assert found == [(repo / file).read_text() for file in ("params.yaml", "dvc.yaml")]


@pytest.mark.parametrize("others", [[], ["0"], ["z"]])
def test_an_older_repo_is_told_the_command_that_adds_them(repo, others):  # noqa: F811
    """And a model exported in another way than at `init`."""
    for name in others:
        write_model(repo / f"{name}.onnx")
    save_split(repo / "models" / "b.onnx", location="b.data")
    models = {name: f"{name}.onnx" for name in others} | {"b": "models/b.onnx"}
    init_repo(repo, list(models.values()), ["x86-64"], {})
    (repo / "dvc.yaml").write_text(
        render_dvc_yaml(dict(sorted(load_params(repo / "params.yaml").models.items())), ["x86-64"])
    )
    with pytest.raises(
        ConfigError, match=r"'models/b.data', which dvc.yaml does not watch.*`passfit add models/b.onnx --name b`"
    ):
        check_watched("b", "models/b.onnx", repo / "dvc.yaml")
    assert [path.name for path in add_to_repo(repo, ["models/b.onnx"], name="b")] == ["dvc.yaml"]
    check_watched("b", "models/b.onnx", repo / "dvc.yaml")
    assert stages(repo)["import"]["foreach"] == {name: f"{name}.onnx" for name in others}
    assert stages(repo)["import-b"]["deps"] == [
        "models/b.onnx",
        "models/b.data",
        "out/settings/b/import.json",
        "out/toolchain.json",
    ]


def test_one_more_side_file_is_added_to_the_stage_of_the_model(repo):  # noqa: F811
    save_in(repo / "b.onnx", "one")
    init_repo(repo, ["b.onnx"], ["x86-64"], {})
    save_in(repo / "b.onnx", "one", "two words")
    with pytest.raises(ConfigError, match="two words"):
        check_watched("b", "b.onnx", repo / "dvc.yaml")
    add_to_repo(repo, ["b.onnx"])
    assert stages(repo)["import-b"]["deps"] == [
        "b.onnx",
        "one",
        "out/settings/b/import.json",
        "out/toolchain.json",
        "two words",
    ]
    check_watched("b", "b.onnx", repo / "dvc.yaml")


@pytest.mark.parametrize("dep", ["models/b.data", "models", "models/", "${item}.data", "models/${key}.data"])
def test_what_is_watched_in_another_way_is_enough(repo, dep):  # noqa: F811
    save_in(repo / "models" / "b.onnx", "b.data" if "item" not in dep else "b.onnx.data")
    (repo / "dvc.yaml").write_text(
        f"stages: {{import: {{foreach: {{b: models/b.onnx}}, do: {{deps: ['${{item}}', '{dep}']}}}}}}\n"
    )
    check_watched("b", "models/b.onnx", repo / "dvc.yaml")


def test_a_dvc_yaml_that_imports_otherwise_is_not_judged(repo):  # noqa: F811
    save_in(repo / "b.onnx", "w")
    (repo / "dvc.yaml").write_text("stages: {mine: {cmd: make}}\n")
    check_watched("b", "b.onnx", repo / "dvc.yaml")
    assert watched_files(read_yaml(repo / "dvc.yaml"), "b") is None


def test_a_model_that_dvc_linked_from_its_cache_keeps_its_own_path(repo):  # noqa: F811
    cached = repo / ".dvc" / "cache" / "files" / "md5" / "ab" / ("c" * 30)
    write_model(cached)
    (repo / "models").mkdir()
    (repo / "models" / "a.onnx").symlink_to(cached)
    init_repo(repo, ["models/a.onnx"], ["x86-64"], {})
    assert load_params(repo / "params.yaml").models["a"].source == "models/a.onnx"
