from __future__ import annotations

import os

import onnx
import pytest
from onnx import TensorProto, helper

from passfit.artifacts.origin import import_options
from passfit.errors import ConfigError, ModelError, OutputError, TargetError
from passfit.frontend.source.import_options import ImportOptions
from passfit.params.params import load_params
from passfit.scaffold import add_to_repo, init_repo
from passfit.support.yaml_file import read_yaml

from ..models import model_of
from .test_init import repo, write_model  # noqa: F401, a fixture

FILES = ("params.yaml", "dvc.yaml")
ODD_NAMES = ("1", "null", "1e5", "true", "0x1f", "no", "2026-11-22", "0o7", "1-2", "010")


def texts(repo):  # noqa: F811
    return [(repo / file).read_text() for file in FILES]


@pytest.fixture
def made(repo):  # noqa: F811
    """Make a repo after `passfit init` with one model, and two more models that it does not know."""
    for name, shape in (("a", (1, 8)), ("b", ("n", 8)), ("c", (1, 8))):
        write_model(repo / "models" / f"{name}.onnx", shape, name)
    init_repo(repo, ["models/a.onnx"], ["x86-64"], {})
    return repo


def test_adding_gives_what_init_would_have_written(made):
    written = add_to_repo(made, ["models/b.onnx", "models/c.onnx"], ["rpi4"], {"b": (1, 8)})
    assert [path.name for path in written] == ["dvc.yaml", "params.yaml"]
    found = texts(made)
    init_repo(made, ["models/a.onnx", "models/b.onnx", "models/c.onnx"], ["x86-64", "rpi4"], {"b": (1, 8)}, force=True)
    assert found == texts(made)


def test_models_from_packages_are_fetched_as_init_does_it(made, monkeypatch):
    packages = {f"pypi:pack==1.0!in/{name}.onnx": made / "models" / f"{name}.onnx" for name in ("c", "a")}
    real = add_to_repo.__globals__["declare"].__globals__["resolve_source"]
    monkeypatch.setattr("passfit.scaffold.declare.resolve_source", lambda source: packages.get(source) or real(source))
    first, second = packages
    add_to_repo(made, [first])
    add_to_repo(made, [second], name="d")
    found = texts(made)
    assert read_yaml(made / "dvc.yaml")["stages"]["fetch"]["foreach"] == ["c", "d"]
    (made / "params.yaml").unlink(), (made / "dvc.yaml").unlink()
    init_repo(made, ["models/a.onnx", first], ["x86-64"], {})
    add_to_repo(made, [second], name="d")
    assert found == texts(made)


def test_adding_twice_changes_nothing(made):
    arguments = (["models/b.onnx"], ["rpi4", "rpi4"], {"b": (1, 8)})
    assert add_to_repo(made, *arguments)
    before = texts(made)
    assert add_to_repo(made, *arguments) == [] == add_to_repo(made, ["models/b.onnx"])
    assert texts(made) == before


def test_comments_and_edits_stay(made):
    params = (made / "params.yaml").read_text()
    params = params.replace("  a:\n", "  # the best one\n  a:  # ours\n").replace("ram: null", "ram: 1MiB  ")
    (made / "params.yaml").write_text(params)
    add_to_repo(made, ["models/c.onnx"], ["rpi4"])
    text = (made / "params.yaml").read_text()
    added = ("  c:\n    source: models/c.onnx\n", "  rpi4: {budget: {ram: null, flash: null}}\n")
    for part in added:
        assert text.count(part) == 1
        text = text.replace(part, "")
    assert text == params


def test_the_edit_that_is_missing_is_made(made):
    before = texts(made)
    add_to_repo(made, ["models/c.onnx"])
    after = texts(made)
    for n, file in enumerate(FILES):
        (made / file).write_text(before[n])
        assert [path.name for path in add_to_repo(made, ["models/c.onnx"])] == [file]
        assert texts(made) == after


def test_a_declared_model_keeps_its_name_and_may_have_a_second_one(made):
    before = texts(made)
    assert add_to_repo(made, ["models/a.onnx"]) == []
    add_to_repo(made, ["models/a.onnx"], name="other")
    assert load_params(made / "params.yaml").models["other"].source == "models/a.onnx"
    (made / "params.yaml").write_text(before[0].replace("  a:\n", "  renamed:\n"))
    (made / "dvc.yaml").write_text(before[1].replace("  a: models", "  renamed: models"))
    assert add_to_repo(made, ["models/a.onnx"]) == []


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_that_yaml_could_read_as_something_else_stays_text(repo, name):  # noqa: F811
    import yaml

    write_model(repo / f"{name}.onnx")
    write_model(repo / "a.onnx")
    init_repo(repo, [f"{name}.onnx"], ["x86-64"], {})
    first = texts(repo)
    init_repo(repo, ["a.onnx"], ["x86-64"], {}, force=True)
    add_to_repo(repo, [f"{name}.onnx"])
    assert list(load_params(repo / "params.yaml").models) == ["a", name]
    for text in (*first, *texts(repo)):  # of YAML 1.1 too, as other tools read it
        data = yaml.safe_load(text)
        models = data["models"] if "models" in data else data["stages"]["import"]["foreach"]
        assert name in models and all(isinstance(key, str) for key in models)


@pytest.mark.parametrize(
    ("models", "targets", "options", "error", "message"),
    [
        ([], [], {}, ConfigError, "--target"),
        (["models/none.onnx"], [], {}, ModelError, "none.onnx"),
        (["models/c.onnx"], [], {"shapes": {"q": (1,)}}, ModelError, "input 'q'"),
        (["models/c.onnx"], [], {"outputs": ["yy"]}, ModelError, "output 'yy'.*Did you mean 'y'"),
        (["models/a.onnx"], [], {"outputs": ["y"]}, ConfigError, "--output would change it"),
        (["models/a.onnx"], [], {"shapes": {"a": (2, 8)}}, ConfigError, "would change it"),
        (["models/c.onnx"], [], {"name": "a"}, ConfigError, "another model: 'models/a.onnx'.*--name"),
        (["models/c.onnx"], [], {"name": "No Name"}, ConfigError, "a-z"),
        (["models/c.onnx", "models/a.onnx"], [], {"name": "d"}, ConfigError, "one by one"),
        (["../outside.onnx"], [], {}, ConfigError, "outside of the repo"),
        (["models/c.onnx"], ["rpi-4"], {}, TargetError, "rpi4"),
    ],
)
def test_bad_input_is_one_clear_error_and_writes_nothing(made, models, targets, options, error, message):
    write_model(made.parent / "outside.onnx")
    before = texts(made)
    with pytest.raises(error, match=message):
        add_to_repo(made, models, targets, **options)
    assert texts(made) == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("dvc.yaml", "    foreach:\n      a: models/a.onnx\n", "    foreach: ${files}\n"),
        ("dvc.yaml", "  import:\n", "  imports:\n"),
        ("dvc.yaml", "a: models/a.onnx", "c: models/a.onnx"),
        (
            "params.yaml",
            "models:\n  a:\n    source: models/a.onnx\n",
            "models: {a: {source: models/a.onnx} # here\n  }\n",
        ),
    ],
)
def test_a_file_that_cannot_be_edited_is_refused_with_the_line_to_add(made, file, old, new):
    path = made / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    before = texts(made)
    with pytest.raises(ConfigError, match=rf"{file}.*\bc: "):
        add_to_repo(made, ["models/c.onnx"])
    assert texts(made) == before


def test_both_files_change_or_none(made, monkeypatch):
    before = texts(made)
    real = os.replace

    def fail(new, path):
        if str(path).endswith("params.yaml"):
            raise OSError(28, "No space left on device", str(path))
        real(new, path)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OutputError, match="No space"):
        add_to_repo(made, ["models/c.onnx"])
    assert texts(made) == before


@pytest.mark.parametrize("file", FILES)
def test_without_the_files_of_init_it_names_init(made, file):
    (made / file).unlink()
    with pytest.raises(ConfigError, match="passfit init"):
        add_to_repo(made, ["models/c.onnx"])


def test_forms_of_inputs_and_outputs_are_declared(made):
    forms = {"inputs": {"c": "int16,std=4"}, "outputs": {"y": "int8,scale=0.1,zero-point=-3"}}
    assert add_to_repo(made, ["models/c.onnx"], **forms)
    declared = load_params(made / "params.yaml").models["c"]
    assert import_options(declared) == ImportOptions(inputs=declared.inputs, outputs=declared.outputs)
    assert import_options(declared).record() == ImportOptions(**forms).record()
    assert add_to_repo(made, ["models/c.onnx"], **forms) == []
    for other, says in (
        ({"inputs": {"c": "int16"}}, "--input c"),
        ({"outputs": {"y": "argmax"}}, "--output"),
        ({"io": "int8"}, "--io"),
    ):
        with pytest.raises(ConfigError, match=f"{says} would change it"):
            add_to_repo(made, ["models/c.onnx"], **other)
    with pytest.raises(ModelError, match="an input 'd'"):
        add_to_repo(made, ["models/b.onnx"], shapes={"b": (1, 8)}, inputs={"d": "int8"})


def test_bounds_are_declared_where_there_is_such_a_result(made):
    nodes = [helper.make_node("NonZero", ["x"], ["places"])]
    onnx.save(
        model_of(nodes, {"x": (1, 8)}, {"places": (2, None)}, dtypes={"places": TensorProto.INT64}),
        made / "models" / "d.onnx",
    )
    bounds = {"bounds": {"places": 3}}
    assert add_to_repo(made, ["models/c.onnx", "models/d.onnx"], **bounds)
    declared = load_params(made / "params.yaml").models
    assert (declared["c"].bounds, declared["d"].bounds) == ({}, {"places": 3})
    assert add_to_repo(made, ["models/d.onnx"], **bounds) == []
    with pytest.raises(ConfigError, match="--bound places would change it.*models.d.bounds"):
        add_to_repo(made, ["models/d.onnx"], bounds={"places": 4})
    (made / "models" / "e.onnx").write_bytes((made / "models" / "c.onnx").read_bytes())
    for name, says in (("rows", "No model has a result 'rows'"), ("y", "The data decide no length 'y'")):
        with pytest.raises(ModelError, match=says):
            add_to_repo(made, ["models/e.onnx"], bounds={name: 3})
