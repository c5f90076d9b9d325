from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import ConfigError
from passfit.params.params import ModelParams, Params, SearchParams, load_params
from passfit.scaffold import asked_stages, imported_file, render_dvc_yaml, render_params_yaml

ROOT = Path(__file__).parents[2]
PYPI = "pypi:some-package==1.0!inside/it.onnx"
TEXT = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1).filter(str.strip)


def models(**sources: str) -> dict[str, ModelParams]:
    return {name: ModelParams(source=source) for name, source in sources.items()}


def test_the_projects_own_dvc_yaml_is_the_template_filled_with_its_params():
    params = load_params(ROOT / "params.yaml")
    expected = render_dvc_yaml(params.models, params.targets, repo=ROOT, asked=asked_stages(params))
    assert (ROOT / "dvc.yaml").read_text() == expected


def test_the_projects_own_models_and_samples_come_from_packages_or_a_stage():
    made = {
        f"demo/{out}" for out in yaml.safe_load((ROOT / "demo" / "dvc.yaml").read_text())["stages"]["digits"]["outs"]
    }
    declared = load_params(ROOT / "params.yaml").models.values()
    read = {model.source for model in declared if not model.source.startswith("pypi:")}
    read |= {file for model in declared if model.data for file in (model.data.source, model.data.calibration) if file}
    assert read == made
    ignored = (ROOT / "demo" / ".gitignore").read_text().split()
    assert {f"demo{line}" for line in ignored} == made, "DVC would write this file while it runs"


@given(source=TEXT, input_name=TEXT, shape=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_params_yaml_reads_back_as_what_was_written(tmp_path_factory, source, input_name, shape):
    model = ModelParams(source=source, shapes={input_name: shape})
    path = tmp_path_factory.mktemp("params") / "params.yaml"
    path.write_text(render_params_yaml({"m": model}, ["x86-64", "rpi4"]), encoding="utf-8")
    assert load_params(path).models == {"m": model}
    assert list(load_params(path).targets) == ["x86-64", "rpi4"]


def test_params_yaml_writes_the_defaults_out():
    sections = yaml.safe_load(render_params_yaml({"m": ModelParams(source="m.onnx")}, ["x86-64"]))
    assert set(sections) == set(Params.model_fields) - {"boards"}, (
        "DVC's stages name every other section: each must be there"
    )
    assert sections["search"]["max-extra-compute"] == SearchParams().max_extra_compute


def test_only_models_from_packages_are_fetched():
    files = yaml.safe_load(render_dvc_yaml(models(a="models/a.onnx"), ["x86-64"]))["stages"]
    assert "fetch" not in files
    assert files["import"]["foreach"] == {"a": "models/a.onnx"}
    mixed = yaml.safe_load(render_dvc_yaml(models(a="models/a.onnx", b=PYPI), ["x86-64"]))["stages"]
    assert mixed["fetch"]["foreach"] == ["b"]
    assert mixed["import"]["foreach"] == {"a": "models/a.onnx", "b": "out/fetch/b.onnx"}
    assert imported_file("b", ModelParams(source=PYPI)) == mixed["fetch"]["do"]["outs"][0].replace("${item}", "b")


@pytest.mark.parametrize("path", ["it's.onnx", "a$b.onnx", "a\\b.onnx", "a\nb.onnx"])
def test_a_path_the_shell_or_dvc_would_misread_is_refused(path):
    with pytest.raises(ConfigError, match="Rename the file"):
        render_dvc_yaml(models(m=path), ["x86-64"])


@pytest.mark.parametrize("path", ["my model.onnx", "a#b.onnx", "a: b.onnx", "true", "ünï.onnx", "- x.onnx"])
def test_odd_but_harmless_paths_survive(path):
    assert yaml.safe_load(render_dvc_yaml(models(m=path), ["x86-64"]))["stages"]["import"]["foreach"] == {"m": path}
