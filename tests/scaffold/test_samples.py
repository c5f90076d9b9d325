"""Samples of a model bring the stages that read them, and these watch what they read."""

from __future__ import annotations

from pathlib import Path

import pytest

from passfit.errors import ConfigError
from passfit.params.params import ModelParams, load_params
from passfit.scaffold import add_to_repo, check_models, init_repo, remove_from_repo, render_dvc_yaml
from passfit.support.yaml_file import read_yaml

from .test_add import texts
from .test_init import repo, write_model  # noqa: F401, a fixture


@pytest.fixture
def made(repo):  # noqa: F811
    """Make a repo with models a and b, and samples, of which passfit knows none."""
    for name in ("a", "b"):
        write_model(repo / "models" / f"{name}.onnx")
    for file in ("data/test.npz", "data/train.npz", "data/x.npy", "data/x.labels.npy", "read.py"):
        (repo / file).parent.mkdir(exist_ok=True)
        (repo / file).write_bytes(b"samples")
    init_repo(repo, ["models/a.onnx"], ["x86-64"], {})
    return repo


def stages(repo: Path) -> dict:  # noqa: F811
    return read_yaml(repo / "dvc.yaml")["stages"]


def declare(repo: Path, entry: str) -> None:  # noqa: F811
    """Write an entry under the model a in params.yaml by hand."""
    text = (repo / "params.yaml").read_text()
    (repo / "params.yaml").write_text(
        text.replace("    source: models/a.onnx\n", f"    source: models/a.onnx\n    {entry}\n")
    )


def check(repo: Path) -> None:  # noqa: F811
    check_models(load_params(repo / "params.yaml").models, repo / "dvc.yaml")


def test_adding_samples_gives_what_init_would_have_written(made):
    assert "evaluate-a" not in stages(made) and "out/evaluate" not in stages(made)["track"]["deps"]
    add_to_repo(made, ["models/b.onnx"], data="data/test.npz")
    assert [path.name for path in add_to_repo(made, ["models/a.onnx"], data="data/test.npz")] == [
        "dvc.yaml",
        "params.yaml",
    ]
    assert {name: model.data.source for name, model in load_params(made / "params.yaml").models.items()} == {
        "a": "data/test.npz",
        "b": "data/test.npz",
    }
    assert add_to_repo(made, ["models/a.onnx"], data="data/test.npz") == [] == add_to_repo(made, ["models/a.onnx"])
    check(made)
    found = stages(made)
    init_repo(made, ["models/a.onnx", "models/b.onnx"], ["x86-64"], {}, force=True, data="data/test.npz")
    assert (
        stages(made) == found and "out/evaluate" in found["track"]["deps"] and "out/evaluate" in found["report"]["deps"]
    )
    written = texts(made)
    init_repo(made, ["models/a.onnx"], ["x86-64"], {}, force=True, data="data/test.npz")
    add_to_repo(made, ["models/b.onnx"], data="data/test.npz")
    assert texts(made) == written


def test_removing_a_model_takes_its_stages_and_the_last_one_what_reads_them(made):
    add_to_repo(made, ["models/b.onnx"])
    without = texts(made)
    add_to_repo(made, ["models/b.onnx"], data="data/test.npz")
    (made / "accuracies" / "b").mkdir(parents=True)
    assert remove_from_repo(made, ["b"]).left == [Path("accuracies/b")]
    add_to_repo(made, ["models/b.onnx"])
    assert texts(made) == without


@pytest.mark.parametrize(
    ("data", "watched"),
    [
        ("data/test.npz", ["data/test.npz"]),
        ("data", ["data"]),
        ("data/x.npy", ["data/x.npy", "data/x.labels.npy"]),
        ("read.py:samples", ["read.py"]),
        ("{source: data/test.npz, metric: 'read.py:score'}", ["data/test.npz", "read.py"]),
        ("{source: data/test.npz, metric: f1, calibration: data/train.npz}", ["data/test.npz"]),
    ],
)
def test_an_evaluation_watches_all_that_it_reads_of_the_users(made, data, watched):
    declare(made, f"data: {data}")
    with pytest.raises(ConfigError, match=r"no stage evaluate-a\. Run `passfit add models/a\.onnx --name a`"):
        check(made)
    add_to_repo(made, ["models/a.onnx"], name="a")
    check(made)
    assert stages(made)["evaluate-a"]["deps"] == [
        *watched,
        "out/compile/a/${item.target}",
        "out/models/a/given.onnx",
        "out/settings/a/${item.target}/evaluate.json",
        "out/toolchain.json",
    ]


def test_other_samples_in_params_are_watched_after_one_command(made):
    add_to_repo(made, ["models/a.onnx"], data="data/test.npz")
    text = (made / "params.yaml").read_text()
    (made / "params.yaml").write_text(text.replace("data/test.npz", "data/train.npz"))
    with pytest.raises(ConfigError, match=r"evaluate-a of dvc\.yaml does not watch 'data/train\.npz'"):
        check(made)
    add_to_repo(made, ["models/a.onnx"])
    check(made)
    assert "data/test.npz" not in stages(made)["evaluate-a"]["deps"]


def test_a_quantised_model_is_imported_from_what_its_stage_makes(made):
    declare(made, "data: {source: data/test.npz, calibration: data/train.npz}\n    quantize: {}")
    with pytest.raises(ConfigError, match="no stage quantize-a"):
        check(made)
    add_to_repo(made, ["models/a.onnx"])
    check(made)
    found = stages(made)
    assert found["quantize-a"]["deps"] == [
        "models/a.onnx",
        "data/test.npz",
        "data/train.npz",
        "out/settings/a/quantize.json",
        "out/toolchain.json",
    ]
    assert found["quantize-a"]["cmd"] == "python -m passfit.stages.quantize a 'models/a.onnx'"
    assert found["import"]["foreach"] == {"a": "out/quantize/a/model.onnx"}
    assert "models/a.onnx" in found["evaluate-a"]["deps"]  # the float file is evaluated too
    params = load_params(made / "params.yaml")
    rendered = made / "rendered.yaml"
    rendered.write_text(render_dvc_yaml(params.models, params.targets, repo=made))
    assert read_yaml(rendered)["stages"] == found
    text = (made / "params.yaml").read_text()
    (made / "params.yaml").write_text(text.replace("    quantize: {}\n", ""))
    add_to_repo(made, ["models/a.onnx"])
    declare(made, "quantize: {}")  # again, where the evaluation is there
    add_to_repo(made, ["models/a.onnx"])
    assert stages(made) == found
    (made / "params.yaml").write_text(text.replace("    quantize: {}\n", ""))
    add_to_repo(made, ["models/a.onnx"])
    assert stages(made)["import"]["foreach"] == {"a": "models/a.onnx"} and "quantize-a" not in stages(made)


def test_asking_for_a_form_gives_what_the_entry_in_params_would(made):
    add_to_repo(made, ["models/a.onnx"], data="data/test.npz")
    add_to_repo(made, ["models/a.onnx"], name="a", quantize="int8")
    add_to_repo(made, ["models/a.onnx"], name="a-int4", data="data/test.npz", quantize="int4-weights")
    check(made)
    declared = load_params(made / "params.yaml").models
    assert {name: model.quantize.form for name, model in declared.items()} == {"a": "int8", "a-int4": "int4-weights"}
    assert add_to_repo(made, ["models/a.onnx"], name="a", data="data/test.npz", quantize="int8") == []
    assert {"quantize-a", "quantize-a-int4", "evaluate-a", "evaluate-a-int4"} <= set(stages(made))
    written, found = texts(made), stages(made)
    with pytest.raises(ConfigError, match=r"quantised in another form already: int8.*models\.a\.quantize"):
        add_to_repo(made, ["models/a.onnx"], name="a", quantize="float16")
    assert texts(made) == written
    init_repo(made, ["models/a.onnx"], ["x86-64"], {}, force=True, data="data/test.npz", quantize="int8")
    add_to_repo(made, ["models/a.onnx"], name="a-int4", data="data/test.npz", quantize="int4-weights")
    assert load_params(made / "params.yaml").models == declared and stages(made) == found


def test_other_samples_for_calibration_are_asked_for_by_option(made):
    add_to_repo(made, ["models/a.onnx"], data="data/test.npz", calibration="data/train.npz", quantize="int8")
    check(made)
    written, found = texts(made), stages(made)
    assert "data/train.npz" in found["quantize-a"]["deps"] and "data/train.npz" not in found["evaluate-a"]["deps"]
    assert add_to_repo(made, ["models/a.onnx"], data="data/test.npz") == []
    again = {"data": "data/test.npz", "calibration": "data/train.npz", "quantize": "int8"}
    assert add_to_repo(made, ["models/a.onnx"], **again) == []
    with pytest.raises(ConfigError, match=r"other data already: 'data/train\.npz'.*models\.a\.data"):
        add_to_repo(made, ["models/a.onnx"], data="data/test.npz", calibration="data/test.npz")
    for wrong, said in (
        (None, "--calibration needs samples.*Give --data"),
        ("data/test.npz", "--calibration 'no.npz' is"),
    ):
        with pytest.raises(ConfigError, match=said):
            add_to_repo(made, ["models/a.onnx"], data=wrong, calibration="no.npz")
    assert texts(made) == written

    init_repo(made, ["models/a.onnx"], ["x86-64"], {}, force=True, **again)
    declared = load_params(made / "params.yaml").models["a"].data
    assert (declared.source, declared.calibration) == ("data/test.npz", "data/train.npz") and stages(made) == found


@pytest.mark.parametrize(
    ("data", "form", "said"),
    [
        (None, "int8", "--quantize int8 needs samples.*Give --data"),
        ("data/test.npz", "int9", "--quantize int9 is unknown.*int8"),
    ],
)
def test_a_form_without_samples_or_of_another_name_is_refused(made, data, form, said):
    before = texts(made)
    for run in (
        lambda: add_to_repo(made, ["models/a.onnx"], data=data, quantize=form),
        lambda: add_to_repo(made, ["models/b.onnx"], data=data, quantize=form),
        lambda: init_repo(made, ["models/b.onnx"], ["x86-64"], {}, force=True, data=data, quantize=form),
    ):
        with pytest.raises(ConfigError, match=said):
            run()
    assert texts(made) == before


def test_weights_in_side_files_are_watched_by_the_quantisation():
    model = ModelParams(source="a.onnx", data={"source": "d.npz"}, quantize={})
    text = render_dvc_yaml({"a": model}, ["x86-64"], {"a": ["a.data"]})
    assert "      - a.data\n" in text and "import-a:" not in text and "a: out/quantize/a/model.onnx" in text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("none.npz", "--data 'none.npz' is missing.*`dvc pull`"),
        ("pypi:a==1!b.npz", "no part of a package"),
        ("none.py:samples", "--data 'none.py' is missing"),
        ("../outside.npz", "outside of the repo.*`dvc add`"),
    ],
)
def test_bad_sources_are_one_error_and_nothing_is_written(made, data, said):
    (made.parent / "outside.npz").write_bytes(b"")
    before = texts(made)
    for run in (
        lambda: add_to_repo(made, ["models/b.onnx"], data=data),
        lambda: init_repo(made, ["models/b.onnx"], ["x86-64"], {}, force=True, data=data),
    ):
        with pytest.raises(ConfigError, match=said):
            run()
    assert texts(made) == before


def test_other_data_than_declared_are_refused(made):
    add_to_repo(made, ["models/a.onnx"], data="data/test.npz")
    with pytest.raises(ConfigError, match=r"other data already: 'data/test\.npz'\. Change models\.a\.data"):
        add_to_repo(made, ["models/a.onnx"], data="data/train.npz")


def test_a_function_in_a_folder_of_its_own_is_named_from_there(made):
    (made / "edge").mkdir()
    init_repo(made / "edge", ["models/a.onnx"], ["x86-64"], {}, data="read.py:samples")
    assert load_params(made / "edge" / "params.yaml").models["a"].data.source == "../read.py:samples"
