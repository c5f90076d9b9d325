"""Metrics by name equal scikit-learn's; the form of a task follows from outputs and labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from passfit.data.boxes import mean_average_precision, overlaps, read_detections, same_top_box
from passfit.data.decisions import Task, find_task
from passfit.data.metrics import find_metric
from passfit.errors import ConfigError


def value(name: str | None, outputs: dict[str, np.ndarray], labels: list) -> float:
    return find_metric(name, find_task(outputs, labels)).compute(outputs, labels)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 20), count=st.integers(5, 40), classes=st.integers(2, 6))
def test_metrics_of_classes_equal_scikit_learns(seed: int, count: int, classes: int):
    random = np.random.default_rng(seed)
    scores = random.normal(size=(count, 1, classes)).astype(np.float32)
    truths = np.concatenate([np.arange(classes), random.integers(0, classes, count)])[:count]
    labels, rows, decided = truths.tolist(), scores[:, 0].astype(np.float64), scores[:, 0].argmax(1)
    outputs = {"y": scores}
    assert value(None, outputs, labels) == value("accuracy", outputs, labels) == metrics.accuracy_score(truths, decided)
    assert value("f1", outputs, labels) == metrics.f1_score(truths, decided, average="macro", zero_division=0)
    assert value("mean-iou", outputs, labels) == metrics.jaccard_score(
        truths, decided, average="macro", zero_division=0
    )
    order = np.argsort(-rows, axis=1)[:, :2]
    assert value("top-2", outputs, labels) == pytest.approx(np.mean((order == truths[:, None]).any(1)))
    if count >= classes:
        likely = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
        expected = [metrics.roc_auc_score(truths == kind, likely[:, kind]) for kind in range(classes)]
        assert value("auc", outputs, labels) == pytest.approx(np.mean(expected))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1 << 20), count=st.integers(4, 30))
def test_metrics_of_numbers_and_scores_equal_scikit_learns(seed: int, count: int):
    random = np.random.default_rng(seed)
    found = random.normal(size=(count, 1, 3)).astype(np.float32)
    truths = [random.normal(size=3) for _ in range(count)]
    flat = np.concatenate(truths), found.reshape(-1).astype(np.float64)
    assert value(None, {"y": found}, truths) == pytest.approx(metrics.mean_absolute_error(*flat))
    assert value("mean-squared-error", {"y": found}, truths) == pytest.approx(metrics.mean_squared_error(*flat))
    assert value("r2", {"y": found}, truths) == pytest.approx(metrics.r2_score(*flat))
    labels = [0, 1, *random.integers(0, 2, count - 2).tolist()]
    for scores, threshold in ((found[:, :, :1], 0.0), (1 / (1 + np.exp(-found[:, :, :1])), 0.5)):
        decided = scores.reshape(-1) > threshold
        assert find_task({"y": scores}, labels).threshold == (threshold if scores.min() < 0 or threshold else 0.5)
        assert value("accuracy", {"y": scores}, labels) == pytest.approx(metrics.accuracy_score(labels, decided))
        assert value("auc", {"y": scores}, labels) == pytest.approx(metrics.roc_auc_score(labels, scores.reshape(-1)))


@pytest.mark.parametrize(
    ("shape", "dtype", "label", "kind", "axis"),
    [
        ((5,), "float32", 3, "class", 1),
        ((1, 5), "float32", 3, "class", 2),
        ((1, 5, 1, 1), "int8", 3, "class", 2),
        ((1,), "int64", 7, "class", 0),
        ((1, 1), "float32", 1, "threshold", -1),
        ((1, 1), "float32", 7, "value", -1),
        ((1, 1), "float32", 0.5, "value", -1),
        ((1, 5, 8, 8), "float32", np.zeros((8, 8), int), "class", 2),
        ((1, 8, 8, 5), "float32", np.zeros((8, 8), int), "class", 4),
        ((1, 8, 8), "uint8", np.zeros((8, 8), int), "class", 0),
        ((1, 4), "float32", np.array([0, 1, 1, 0]), "threshold", -1),
        ((4, 5), "float32", np.array([0, 1, 4, 0]), "class", 2),
        ((1, 4), "float32", np.array([0, 0, 1, 0]), "class", 2),
        ((1, 5), "float32", 3.0, "class", 2),
        ((1, 5), "float32", None, "class", 2),
        ((1, 5, 5), "float32", None, "value", -1),
        ((1, 1), "float32", None, "threshold", -1),
    ],
)
def test_the_task_follows_from_output_and_label(shape, dtype, label, kind, axis):
    outputs = {"y": np.random.default_rng(0).normal(0, 9, (3, *shape)).astype(dtype)}
    task = find_task(outputs, [label] * 3)
    assert (task.kind, task.axis) == (kind, axis)
    decisions = task.decisions(outputs)
    expected = (
        1 if task.one_hot else shape[0] * shape[1] * shape[2] if kind == "value" and label is None else np.size(label)
    )
    assert len(decisions) == 3 * expected
    if label is not None:
        truths = task.truths([label] * 3)
        assert len(truths) == len(decisions) and (truths.dtype == np.int64) == (kind != "value" or type(label) is int)
    if task.one_hot:
        assert truths.tolist() == [2, 2, 2]


def test_scores_decide_next_to_a_decision():
    outputs = {"label": np.zeros((2, 1), np.int64), "scores": np.float32([[[0.1, 0.9]], [[0.8, 0.2]]])}
    task = find_task(outputs, [1, 0])
    assert task.output == "scores" and find_metric("top-1", task).compute(outputs, [1, 0]) == 1.0


@pytest.mark.parametrize(
    ("outputs", "labels", "metric", "match"),
    [
        ({"y": np.zeros((2, 5))}, [7, 1], None, "No output fits the labels"),
        (
            {"y": np.zeros((2, 5))},
            [np.zeros(3), np.zeros(3)],
            None,
            r"labels are float64\[3\] from 0 to 0, outputs are 'y' \[5\]",
        ),
        ({"y": np.zeros((2, 5))}, [1, np.zeros(2, int)], None, "labels of different forms"),
        ({"y": np.zeros((2, 5))}, [1, -1], None, r"labels are int64\[\] from -1 to 1"),
        ({"y": np.zeros((2, 5))}, [1, 2], "acuracy", "no metric 'acuracy'. Did you mean 'accuracy'"),
        ({"y": np.zeros((2, 5))}, [1, 2], "top-0", "no metric 'top-0'"),
        ({"y": np.zeros((2, 5))}, [1, 2], "map@0.5", "does not fit"),
        (
            {"y": np.zeros((2, 1))},
            [1.5, 2.5],
            "f1",
            "does not fit outputs and labels of this form. Those that do: mean-abs",
        ),
        ({"y": np.zeros((2, 5))}, [1, 1], "auc", "labels of two classes"),
        ({"y": np.zeros((2, 1), int)}, [1, 2], "top-3", "needs scores of classes"),
    ],
)
def test_what_does_not_fit_is_refused(outputs, labels, metric, match):
    with pytest.raises(ConfigError, match=match) as error:
        value(metric, outputs, labels)
    assert error.value.hint


def test_the_direction_is_known_by_name(tmp_path):
    task = Task("value", "y")
    assert find_metric("r2", task).higher_is_better and not find_metric(None, task).higher_is_better
    (tmp_path / "own.py").write_text(
        "def score(outputs, labels):\n    return float((outputs['y'][:, 0] == labels).mean())\n\n\n"
        "def loss(outputs, labels):\n    return 1 / 0\n\n\ndef text(outputs, labels):\n    return float('nan')\n"
    )
    own, loss, text = (find_metric(f"{tmp_path}/own.py:{name}", task) for name in ("score", "loss", "text"))
    outputs = {"y": np.array([[1], [2], [3], [4]])}
    assert own.higher_is_better and not loss.higher_is_better
    assert own.compute(outputs, [1, 2, 0, 4]) == 0.75
    with pytest.raises(ConfigError, match="own.py', line 6: ZeroDivisionError"):
        loss.compute(outputs, [1, 2, 3, 4])
    with pytest.raises(ConfigError, match="returned nan"):
        text.compute(outputs, [1, 2, 3, 4])


BOX = np.array([0.0, 0, 10, 10])


def forms(boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Return detections of one sample in each form that outputs may have."""
    wide = np.zeros((len(boxes), 4), np.float32)
    wide[np.arange(len(boxes)), classes] = scores
    given = {"b": boxes[None, None].astype(np.float32), "s": scores[None].astype(np.float32)}
    joined = np.concatenate([boxes, scores[:, None], classes[:, None]], axis=1).astype(np.float32)
    return [
        {**given, "detection_classes": classes[None].astype(np.float32)},
        {**given, "k": classes[None], "num": np.array([[len(boxes)]], np.float32)},
        {"b": given["b"], "s": wide[None]},
        {"all": joined[None]},
    ]


@pytest.mark.parametrize("form", range(4))
def test_detections_are_scored_by_overlap(form):
    boxes = np.stack([BOX, BOX + 1, BOX + 50, BOX + 100])
    outputs = forms(boxes, np.array([0.9, 0.8, 0.7, 0.6]), np.array([1, 1, 1, 2]))[form]
    # class 1: a hit, a second box on the same object, a miss of the two objects; class 2: no object near
    labels = [np.array([[1, *BOX], [1, *(BOX + 50)], [2, *(BOX + 300)], [-1, 0, 0, 0, 0]])]
    task = find_task(outputs, labels)
    assert task.kind == "boxes"
    # precision falls 1, 1/2, 2/3 at recalls 1/2, 1/2, 1: its envelope is 1 up to 1/2, then 2/3
    assert find_metric(None, task).compute(outputs, labels) == pytest.approx((0.5 + 0.5 * 2 / 3 + 0) / 2)


def test_overlap_is_intersection_over_union():
    assert overlaps(BOX, np.array([BOX, BOX + 5, BOX + 20, BOX * 0])).tolist() == pytest.approx([1, 25 / 175, 0, 0])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 20), count=st.integers(1, 6))
def test_a_detector_that_gives_the_labels_is_perfect(seed: int, count: int):
    random = np.random.default_rng(seed)
    corners = random.random((count, 2)) * 100 + 200 * np.arange(count)[:, None]
    boxes, classes = np.concatenate([corners, corners + 5], axis=1), random.integers(0, 3, count)
    outputs = forms(boxes, random.random(count) + 0.1, classes)[1]
    task = find_task(outputs, [None])
    assert task.boxes is not None
    (found,) = read_detections(outputs, task.boxes)
    assert mean_average_precision([found], [np.column_stack([classes, boxes])]) == 1.0
    assert same_top_box(found, found) and (np.diff(found.scores) <= 0).all()


@pytest.mark.parametrize("shape", [(3, 4), (3, 1)])
def test_scores_that_are_nan_decide_nothing(shape):
    scores = np.full(shape, np.nan)
    scores[0] = 0.0
    labels = [0, 0, 0]
    task = find_task({"y": scores}, labels)
    assert task.decisions({"y": scores}).tolist() == [0, -1, -1]
    assert find_metric("accuracy", task).compute({"y": scores}, labels) == pytest.approx(1 / 3)


def test_ranks_of_classes_decide_by_the_first():
    outputs = {"top": np.int32([[[7, 2, 1]], [[4, 9, 0]], [[3, 5, 6]]])}
    labels = [7, 9, 0]
    task = find_task(outputs, labels)
    assert (task.kind, task.decisions(outputs).tolist()) == ("ranks", [7, 4, 3])
    assert [value(name, outputs, labels) for name in ("accuracy", "top-2", "top-3")] == pytest.approx(
        [1 / 3, 2 / 3, 2 / 3]
    )
    for name in ("top-4", "auc"):
        with pytest.raises(ConfigError, match="needs scores of classes"):
            value(name, outputs, labels)


def test_a_function_sees_no_batch_axis_of_one(tmp_path):
    """[samples, 1, classes] against labels would broadcast to a wrong number."""
    file = tmp_path / "mine.py"
    file.write_text("def score(outputs, labels):\n    return float((outputs['y'].argmax(-1) == labels).mean())\n")
    outputs = {"y": np.eye(4, dtype=np.float32)[:, None, :]}
    metric = find_metric(f"{file}:score", Task("class", "y"))
    assert metric.compute(outputs, [0, 1, 2, 0]) == 0.75
