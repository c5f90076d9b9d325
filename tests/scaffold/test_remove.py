"""`remove` takes out what `add` put in, and nothing else."""

from __future__ import annotations

import pytest

from passfit.errors import ConfigError, ModelError
from passfit.scaffold import add_to_repo, remove_from_repo

from .test_add import made, texts  # noqa: F401, a fixture
from .test_init import repo  # noqa: F401, a fixture


def test_removing_undoes_adding(made):  # noqa: F811
    before = texts(made)
    add_to_repo(made, ["models/b.onnx"], ["rpi4", "rpi-zero2"], {"b": (1, 8)})
    assert texts(made) != before
    written, left = remove_from_repo(made, ["b"], ["rpi-zero2", "rpi4"])
    assert [path.name for path in written] == ["dvc.yaml", "params.yaml"] and left == []
    assert texts(made) == before


def test_packaged_models_lose_their_download(made, monkeypatch):  # noqa: F811
    before, package = texts(made), {f"pypi:pack==1.0!in/{name}.onnx": made / "models" / f"{name}.onnx" for name in "ca"}
    monkeypatch.setattr("passfit.scaffold.declare.resolve_source", lambda source: package.get(source, source))
    first, second = package
    add_to_repo(made, [first])
    one = texts(made)
    add_to_repo(made, [second], name="d")
    remove_from_repo(made, ["d"])
    assert texts(made) == one
    remove_from_repo(made, [first])
    assert texts(made) == before


def test_models_go_by_file_too_with_their_budgets_and_what_is_left_is_named(made, monkeypatch):  # noqa: F811
    add_to_repo(made, ["models/c.onnx"])
    params = (made / "params.yaml").read_text()
    found = params.replace(
        "{ram: null, flash: null}}",
        "{ram: null, flash: null}, budgets: {a: {ram: 1KiB}, c: {ram: 2KiB}}, accepted-growth: {c: {ram: 3KiB, reason: wider}}}",
    )
    assert found != params
    (made / "params.yaml").write_text(found)
    (made / "footprints" / "c").mkdir(parents=True)
    (made / "footprints" / "c" / "x86-64.json").write_text("{}")
    _, left = remove_from_repo(made, ["models/c.onnx"])
    assert [str(place) for place in left] == ["footprints/c"]
    assert "budgets: {a: {ram: 1KiB}}" in (made / "params.yaml").read_text()


@pytest.mark.parametrize(
    ("models", "targets", "message"),
    [
        ([], [], "Nothing was named"),
        (["nobody"], [], "'nobody' is not a model of params.yaml"),
        ([], ["rpi9"], "no target 'rpi9'"),
        (["a"], [], "'a' is the last model"),
        ([], ["x86-64"], "'x86-64' is the last target"),
    ],
)
def test_what_cannot_be_removed_is_said_and_nothing_is_written(made, models, targets, message):  # noqa: F811
    before = texts(made)
    with pytest.raises(ConfigError, match=message):
        remove_from_repo(made, models, targets)
    assert texts(made) == before


def test_the_target_of_the_stage_profile_stays(made):  # noqa: F811
    add_to_repo(made, [], ["rpi4"])
    with pytest.raises(ConfigError, match="the stage profile runs on 'x86-64'"):
        remove_from_repo(made, [], ["x86-64"])


def test_adding_refuses_what_import_refuses(made):  # noqa: F811
    from onnx import TensorProto, helper

    before = texts(made)
    node = helper.make_node("Unknown", ["x"], ["y"], domain="nobody")
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("nobody", 1)], ir_version=9
    )
    (made / "models" / "odd.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="nobody"):
        add_to_repo(made, ["models/odd.onnx"])
    assert texts(made) == before
