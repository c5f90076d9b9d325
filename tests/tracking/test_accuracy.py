"""Accuracy on samples in a real MLflow store, linked to a dataset that is a source and a digest."""

from __future__ import annotations

import json

import pytest

from passfit.data.accuracy import Score, report_fields
from passfit.tracking.record import read_record

from ..report.results import accuracy
from .test_track import client, runs

pytestmark = pytest.mark.slow

PARAMS = """
models: {a: {source: a.onnx, data: test.npz}}
targets: {rpi4: {budget: {accuracy: 0.9}}}
track: {experiment: tests}
"""


@pytest.fixture
def evaluated(repo):
    (repo.path / "params.yaml").write_text(PARAMS)
    (repo.path / "test.npz").write_bytes(b"samples")
    repo.result("a", "rpi4")
    found = accuracy(0.93, "a", "rpi4", original=Score(1000, 0.95))
    repo.evaluated = report_fields(found) | {"data": report_fields(found)["data"] | {"source": "test.npz"}}
    repo.write("evaluate/a/rpi4/accuracy.json", repo.evaluated)
    return repo


def test_the_metric_of_run_and_model_is_linked_to_the_samples(evaluated):
    assert evaluated.track().warnings == ()
    (run,) = runs(evaluated)
    names = [each.name for each in read_record(evaluated.path, evaluated.params, "a", "rpi4").figures]
    assert names[0] == "best/ram_kib" and {"accuracy", "accuracy_loss", "agreement"} <= set(names)
    assert {name: run.data.metrics[name] for name in ("accuracy", "accuracy_loss", "agreement")} == {
        "accuracy": 0.93,
        "accuracy_loss": 0.02,
        "agreement": 1,
    }
    (used,) = run.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == ("test.npz", "a" * 36)
    assert (
        json.loads(used.dataset.source) == {"uri": "test.npz"} and json.loads(used.dataset.profile)["num_rows"] == 1000
    )
    assert [(tag.key, tag.value) for tag in used.tags] == [("mlflow.data.context", "evaluation")]
    found = client(evaluated).search_logged_models([run.info.experiment_id], "metrics.accuracy > 0.9")
    (metric,) = [each for each in found[0].metrics if each.key == "accuracy"]
    assert (metric.value, metric.dataset_name, metric.dataset_digest) == (0.93, "test.npz", "a" * 36)
    assert "accuracy.json" in {each.path for each in client(evaluated).list_artifacts(run.info.run_id)}
    assert "On samples: accuracy 0.93" in run.data.tags["mlflow.note.content"]
    assert [each.new for each in evaluated.track().runs] == [False]


def test_an_accuracy_of_another_library_is_not_logged(evaluated):
    place = evaluated.path / "out/evaluate/a/rpi4/accuracy.json"
    evaluated.result("a", "rpi4", ram=700)
    found = read_record(evaluated.path, evaluated.params, "a", "rpi4")
    assert place.is_file() and found.accuracy is None and "accuracy" not in [each.name for each in found.figures]


def test_another_accuracy_is_another_run(evaluated):
    first = read_record(evaluated.path, evaluated.params, "a", "rpi4").content
    evaluated.write("evaluate/a/rpi4/accuracy.json", evaluated.evaluated | {"metric": "f1 (my%own)"})
    second = read_record(evaluated.path, evaluated.params, "a", "rpi4")
    assert second.content != first and "f1 _my_own_" in [each.name for each in second.figures]
