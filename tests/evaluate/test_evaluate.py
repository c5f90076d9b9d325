"""Evaluate the file and the executed library on real labelled digits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from passfit import api
from passfit.artifacts.places import accuracy_file, compile_dir, kept_accuracy
from passfit.data.accuracy import parse_accuracy
from passfit.data.decisions import Task
from passfit.data.samples import InputForm, read_samples
from passfit.errors import ConfigError
from passfit.evaluate.evaluate_libraries import open_evaluation
from passfit.evaluate.evaluation import Evaluation
from passfit.evaluate.open_result import open_result
from passfit.evaluate.run_samples import run_model
from passfit.evaluate.settings import EvaluateSettings
from passfit.evaluate.worst import worst_samples
from passfit.params.params import load_params
from passfit.search.settings import SearchSettings
from passfit.stages.evaluate import evaluate
from passfit.targets import Runner, get_target, how_to_run

from ..digits import load_digits, quantised_model, save_digits, train_network
from ..models import model_of

pytestmark = pytest.mark.slow
HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
QUICK = SearchSettings(evaluations=1, max_extra_compute=None, workers=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the network in floats and quantised, its digits, and the library of each."""
    place = tmp_path_factory.mktemp("digits")
    for name, model in (("float", train_network()), ("int8", quantised_model())):
        onnx.save(model, place / f"{name}.onnx")
        api.compile_model(place / f"{name}.onnx", HOST, out=place / name, search=QUICK)
    save_digits(place)
    return place


@native
@pytest.mark.parametrize("name", ["x86-64", "rpi4", "mps2-an386"])
def test_the_executed_library_decides_as_the_quantised_file_on_every_sample(folder: Path, name: str):
    target = get_target(name)
    if how_to_run(target).command is None:
        pytest.skip(how_to_run(target).how)
    settings = EvaluateSettings(emulated=16) if target.bare else EvaluateSettings()
    (report,) = api.evaluate(
        folder / "int8.onnx", [target], folder / "digits.npz", original=folder / "float.onnx",
        result=folder / "int8" if name == "x86-64" else None, search=QUICK, settings=settings,
    )  # fmt: skip
    library = report.library
    assert (report.metric, report.higher_is_better, report.data.samples, report.data.labelled) == (
        "accuracy",
        True,
        597,
        597,
    )
    assert library.samples == {"x86-64": 597, "rpi4": 64, "mps2-an386": 16}[name]
    assert (library.value, library.agreement, library.max_rel_error) == (library.reference, 1.0, 0.0) and library.within
    assert report.original is not None and min(report.original.value, report.reference.value, library.value) > 0.8
    assert sum(each.samples for each in report.classes) == library.samples and len(report.classes) == 10
    right = sum(each.samples * each.library for each in report.classes)
    assert right == pytest.approx(library.value * library.samples)


@native
def test_accuracy_is_the_fraction_of_right_labels(folder: Path):
    (report,) = api.evaluate(folder / "float.onnx", [HOST], folder / "digits.npz", result=folder / "float")
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / "float.onnx")
    pictures, labels = (each[1200:] for each in load_digits())
    decided = [int(session.run(None, {"x": picture[None]})[0].argmax()) for picture in pictures]
    assert report.reference.value == pytest.approx(np.mean(decided == labels), abs=1e-12)
    assert report.library.value == report.reference.value and report.library.max_rel_error < 1e-5
    wrong = {str(place) for place, (one, label) in enumerate(zip(decided, labels)) if one != label}
    assert {each.sample for each in report.worst} <= wrong and report.worst[0].error > 0


def integer_ports(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a quantised model without the QuantizeLinear of its input and the DequantizeLinear of its output."""
    graph = model.graph
    first = next(node for node in graph.node if node.input[0] == "x")
    last = next(node for node in graph.node if "y" in node.output)
    graph.input[0].name, graph.output[0].name = first.output[0], last.input[0]
    for value in (graph.input[0], graph.output[0]):
        value.type.tensor_type.elem_type = onnx.TensorProto.INT8
    graph.node.remove(first)
    graph.node.remove(last)
    return model


@native
def test_float_samples_reach_a_library_of_integers_as_the_file_quantises_them(folder: Path, tmp_path: Path):
    onnx.save(integer_ports(quantised_model()), tmp_path / "ports.onnx")
    remarks: list[str] = []
    np.savez(tmp_path / "x.npz", any=load_digits()[0][1200:], labels=load_digits()[1][1200:])
    (report,) = api.evaluate(tmp_path / "ports.onnx", [HOST], tmp_path / "x.npz", search=QUICK, remark=remarks.append)
    (float_ports,) = api.evaluate(folder / "int8.onnx", [HOST], folder / "digits.npz", result=folder / "int8")
    assert report.reference == float_ports.reference and report.library.value == float_ports.library.value
    assert report.library.agreement == 1.0 and "float32 is quantised by" in remarks[0]


def opened_evaluation(folder: Path, name: str = "float", **settings) -> Evaluation:
    return open_evaluation(folder / f"{name}.onnx", folder / "digits.npz", EvaluateSettings(**settings))


@native
def test_another_library_is_found_out(folder: Path):
    evaluation = opened_evaluation(folder, samples=50)
    remarks: list[str] = []
    report = evaluation.report(open_result(folder / "int8"), "float", HOST, remarks.append)
    assert not report.library.within and report.library.max_rel_error > 1e-3
    assert "differ in output 'y' of sample" in remarks[0]
    broken = folder / "broken"
    weights = train_network()
    weights.graph.initializer[-1].raw_data = np.float32(range(0, 100, 10)).tobytes()  # biases that prefer 9
    onnx.save(weights, folder / "broken.onnx")
    api.compile_model(folder / "broken.onnx", HOST, out=broken, search=QUICK)
    report = evaluation.report(open_result(broken), "float", HOST)
    assert report.library.agreement < 0.5 and report.library.value < report.reference.value and report.loss > 0.3
    assert report.worst[0].reference != report.worst[0].library == "9"


@native
def test_the_same_evaluation_writes_the_same_bytes_without_places(folder: Path, tmp_path: Path):
    texts = []
    for place in ("a", "b"):
        here = tmp_path / place
        here.mkdir()
        (here / "digits.npz").write_bytes((folder / "digits.npz").read_bytes())
        (report,) = api.evaluate(folder / "float.onnx", [HOST], here / "digits.npz", result=folder / "float")
        from passfit.artifacts.write import write_accuracy

        write_accuracy(report, here / "accuracy.json")
        text = (here / "accuracy.json").read_text()
        assert parse_accuracy(text, "", "") == report
        texts.append(text.replace(str(here), ""))
    assert texts[0] == texts[1] and str(tmp_path) not in texts[0]


def test_samples_without_labels_tell_agreement_alone(folder: Path, tmp_path: Path):
    np.save(tmp_path / "x.npy", load_digits()[0][:20])
    evaluation = open_evaluation(folder / "float.onnx", tmp_path / "x.npy")
    assert (evaluation.reference.samples, evaluation.reference.value) == (20, None)
    report = evaluation.report(open_result(folder / "float"), "float", HOST)
    assert (report.library.value, report.loss, report.library.agreement, report.classes) == (None, None, 1.0, ())
    with pytest.raises(ConfigError, match="has no labels, which the metric 'accuracy' needs"):
        open_evaluation(folder / "float.onnx", tmp_path / "x.npy", EvaluateSettings("accuracy"))


def test_names_of_fewer_classes_than_the_model_has_are_refused(folder: Path, tmp_path: Path):
    digits, labels = load_digits()
    names = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])[labels]
    chosen = labels != 4
    np.savez(tmp_path / "nine.npz", x=digits[chosen], labels=names[chosen])
    with pytest.raises(
        ConfigError, match="has 10 classes, and the labels are 9 names, from 'eight' to 'zero'"
    ) as refused:
        open_evaluation(folder / "float.onnx", tmp_path / "nine.npz")
    assert "by the numbers" in refused.value.hint
    with pytest.raises(ConfigError, match="has 10 classes, and the labels are 9 names"):
        api.quantize(folder / "float.onnx", str(tmp_path / "nine.npz"), tmp_path / "q.onnx")
    np.savez(tmp_path / "numbered.npz", x=digits[chosen], labels=labels[chosen])
    assert open_evaluation(folder / "float.onnx", tmp_path / "numbered.npz").reference.value > 0.9
    np.savez(tmp_path / "all.npz", x=digits, labels=names)
    assert open_evaluation(folder / "float.onnx", tmp_path / "all.npz").reference.value is not None


@native
def test_the_canonical_model_of_a_quantised_file_runs_once_for_all_targets(folder: Path, monkeypatch):
    runs: list[str] = []

    def counted(model, samples, numbers, title, progress):
        runs.append(title)
        return run_model(model, samples, numbers, title, progress)

    monkeypatch.setattr("passfit.evaluate.evaluation.run_model", counted)
    evaluation = open_evaluation(folder / "int8.onnx", folder / "digits.npz")
    reports = [evaluation.report(open_result(folder / "int8"), "int8", HOST) for _ in range(3)]
    assert reports[0] == reports[2] and reports[0].library.within
    assert runs == ["running the file", "running the canonical model"]


@pytest.mark.parametrize("label", [None, 1.0])
def test_a_number_that_is_none_is_the_worst_sample(tmp_path: Path, label: float | None):
    np.save(tmp_path / "x.npy", np.ones((4, 1), np.float32))
    samples = read_samples(tmp_path / "x.npy", [InputForm("x", np.dtype("float32"), (1,))])
    expected = np.ones((4, 1), np.float32)
    outputs = expected + np.float32([[0], [0.25], [np.nan], [0]])
    worst = worst_samples(Task("value", "y"), samples, range(4), [label] * 4, {"y": expected}, {"y": outputs})
    assert [(each.sample, each.library, each.error) for each in worst] == [("2", "nan", None), ("1", "1.25", 0.25)]


def test_what_cannot_be_evaluated_is_refused(folder: Path, tmp_path: Path):
    with pytest.raises(ConfigError, match="'.*float' was compiled of another file than"):
        api.evaluate(folder / "int8.onnx", [HOST], folder / "digits.npz", result=folder / "float")
    with pytest.raises(ConfigError, match="manifest.json' cannot be read"):
        api.evaluate(folder / "int8.onnx", [HOST], folder / "digits.npz", result=tmp_path)
    with pytest.raises(ConfigError, match="There is no metric 'acuracy'"):
        opened_evaluation(folder, metric="acuracy")
    with pytest.raises(ConfigError, match=r"The samples '.*none.npz' are missing"):
        api.evaluate(folder / "int8.onnx", [HOST], tmp_path / "none.npz", result=folder / "int8")
    (tmp_path / "some.py").write_text(
        "import numpy as np\ndef some():\n    yield np.zeros((1, 8, 8), np.float32), 1\n    yield np.zeros((1, 8, 8), np.float32)\n"
    )
    with pytest.raises(ConfigError, match="1 of 2 samples have no label"):
        api.evaluate(folder / "float.onnx", [HOST], f"{tmp_path / 'some.py'}:some", result=folder / "float")
    np.savez(tmp_path / "wide.npz", x=np.zeros((2, 1, 9, 9), np.float32))
    with pytest.raises(ConfigError, match="sample 0: input 'x' is float32"):
        api.evaluate(folder / "float.onnx", [HOST], tmp_path / "wide.npz")


@native
def test_an_output_form_loses_against_the_file_without_it(folder: Path):
    name = onnx.load(folder / "float.onnx").graph.output[0].name
    (report,) = api.evaluate(
        folder / "float.onnx", [HOST], folder / "digits.npz", original=folder / "float.onnx", search=QUICK,
        outputs={name: "int8,scale=100,zero-point=0"}, settings=EvaluateSettings(samples=100),
    )  # fmt: skip
    assert report.original.value > 0.8 and report.reference.value == report.library.value < 0.5
    assert report.loss == pytest.approx(report.original.value - report.library.value)


def test_a_sample_that_the_model_rejects_is_named(tmp_path: Path):
    gather = helper.make_node("Gather", ["table", "ids"], ["y"])
    table = {"table": np.arange(12, dtype=np.float32).reshape(4, 3)}
    model = model_of([gather], {"ids": (2,)}, {"y": (2, 3)}, table, dtypes={"ids": onnx.TensorProto.INT64})
    onnx.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "ids.npz", ids=[[0, 3], [1, 9]])
    with pytest.raises(ConfigError, match=r"ids.npz', sample 1: ONNX Runtime cannot run"):
        open_evaluation(tmp_path / "m.onnx", tmp_path / "ids.npz")
    with pytest.raises(ConfigError, match="Sample 1: ONNX Runtime cannot run"):
        api.compile_model(tmp_path / "m.onnx", HOST, out=tmp_path / "out", data=tmp_path / "ids.npz", search=QUICK)


def test_a_target_that_does_not_run_here_has_no_samples(folder: Path, monkeypatch: pytest.MonkeyPatch):
    evaluation = opened_evaluation(folder, samples=5)
    nowhere = Runner(None, "not-run: no emulator")
    monkeypatch.setattr("passfit.evaluate.evaluation.how_to_run", lambda target: nowhere)
    report = evaluation.report(open_result(folder / "float"), "float", HOST)
    assert (report.library.samples, report.library.how) == (0, nowhere.how)
    with pytest.raises(ConfigError, match="The library is for x86-64, not rpi4"):
        evaluation.report(open_result(folder / "float"), "float", get_target("rpi4"))


@native
def test_the_stage_writes_both_copies(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(
        "models: {digits: {source: float.onnx, data: digits.npz}, bare: {source: float.onnx}}\ntargets: {x86-64: }\n"
    )
    save_digits(tmp_path, 40)
    api.import_model_file(folder / "float.onnx", Path("out/models/digits/model.onnx"))
    place = compile_dir("digits", "x86-64")
    api.compile_model(
        Path("out/models/digits/model.onnx"), HOST, out=place, name="digits",
        given=Path("out/models/digits/given.onnx"), search=QUICK,
    )  # fmt: skip
    params = load_params(Path("params.yaml"))
    line = evaluate(params, "digits", "x86-64")
    text = accuracy_file("digits", "x86-64").read_text()
    assert kept_accuracy("digits", "x86-64").read_text() == text
    found = json.loads(text)
    assert (found["data"]["source"], found["library"]["samples"], found["library"]["within"]) == (
        "digits.npz",
        40,
        True,
    )
    assert line.startswith("digits @ x86-64: accuracy 0.")
    with pytest.raises(ConfigError, match=r"models.bare.data is missing"):
        evaluate(params, "bare", "x86-64")


@native
def test_a_compilation_compares_samples_too(folder: Path, tmp_path: Path):
    report = api.compile_model(
        folder / "float.onnx", HOST, out=tmp_path / "out", data=folder / "digits.npz", search=QUICK
    )
    assert report.measured.samples == 8
    assert "data" in json.loads((tmp_path / "out" / "manifest.json").read_text())["made_from"]
    np.savez(tmp_path / "bad.npz", x=np.full((1, 1, 8, 8), np.nan, np.float32))
    with pytest.raises(ConfigError, match="sample 0: input 'x' is NaN"):
        api.compile_model(folder / "float.onnx", HOST, out=tmp_path / "none", data=tmp_path / "bad.npz")
    assert not (tmp_path / "none").exists()


def test_samples_are_read_as_they_are_needed(folder: Path):
    samples = read_samples(folder / "digits.npz", [])
    assert samples.count == 597
