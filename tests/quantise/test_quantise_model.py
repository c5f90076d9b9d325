"""Quantise files by the user's samples: the record, ports, labels, refusals; and what does not fit, under consent."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest

from passfit import api
from passfit.data.samples import InputForm, read_samples
from passfit.errors import ConfigError, ModelError
from passfit.memory.footprint import Budget
from passfit.quantise.quantise_model import FORMS, calibrated_on
from passfit.quantise.quantiser import Quantiser
from passfit.targets import get_target

from ..models import NodeBuilder, run, save

CHEAP = api.SearchSettings(evaluations=1, workers=0, lossy=True)


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    """Save a classifier of an open batch, with samples whose labels are its own decisions, in the folder."""
    b = NodeBuilder()
    planes = b.node("Relu", b.node("Conv", "x", b.weight(16, 2, 3, 3), pads=[1] * 4))
    pooled = b.node("Flatten", b.node("GlobalAveragePool", b.node("Conv", planes, b.weight(16, 16, 3, 3))))
    model = b.model(["batch", 2, 8, 8], b.node("Gemm", pooled, b.weight(16, 5)))
    x = np.random.default_rng(1).standard_normal((60, 2, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, labels=run(model, {"x": x})[0].argmax(1))
    np.savez(tmp_path / "unlabelled.npz", x=x)
    return save(model, tmp_path, "net.onnx")


def test_the_record_says_what_was_measured_and_the_same_samples_give_the_same_files(classifier: Path):
    """The files do not depend on the folder."""
    found = []
    for name in ("one", "other"):
        (folder := classifier.parent / name).mkdir()
        api.quantize(classifier, str(classifier.parent / "data.npz"), folder / "q.onnx")
        found.append({each.name: each.read_bytes() for each in folder.iterdir()})
    assert found[0] == found[1] and set(found[0]) == {"q.onnx", "quantize.json"}
    record = json.loads(found[0]["quantize.json"])
    assert (record["metric"], record["form"], record["data"]["samples"], record["data"]["calibrated"]) == (
        "accuracy",
        "int8",
        60,
        60,
    )
    first, *points = record["points"]
    assert first["name"] == "float" and first["value"] == 1.0 and sum(each["taken"] for each in points) == 1
    (taken,) = (each for each in points if each["taken"])
    model, data = onnx.load_from_string(found[0]["q.onnx"]), np.load(classifier.parent / "data.npz")
    right = [
        run(model, {"x": x[None]})[0].argmax() == label for x, label in zip(data["x"], data["labels"], strict=True)
    ]
    assert taken["value"] == pytest.approx(np.mean(right)) and taken["loss"] <= 0.01


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_judged_and_smaller(classifier: Path, form: str):
    out = classifier.parent / "q.onnx"
    found = api.quantize(
        classifier, str(classifier.parent / "data.npz"), out, settings=api.QuantiseSettings(form, max_loss=0.2)
    )
    assert found.taken.name.startswith(form) and found.taken.loss <= 0.2
    assert out.stat().st_size < 0.7 * classifier.stat().st_size


@pytest.mark.tvm
def test_the_curve_has_sizes_and_a_picture_that_shows_the_point_taken(classifier: Path):
    found = api.quantize(
        classifier,
        str(classifier.parent / "unlabelled.npz"),
        classifier.parent / "q.onnx",
        target=get_target("mps2-an386"),
    )
    assert found.metric == "agreement" and found.taken.ram and found.taken.flash
    assert found.taken.ram < found.points[0].ram and found.taken.flash < found.points[0].flash
    picture = (classifier.parent / "curve.svg").read_text()
    assert picture.startswith("<svg") and found.taken.name in picture and "agreement" in picture


def test_samples_in_the_form_of_the_device_give_the_same_model(classifier: Path, tmp_path: Path):
    """uint8, channels last: the file is quantised as it is, its ports are those of later imports."""
    x = np.random.default_rng(2).integers(0, 255, (40, 8, 8, 2)).astype(np.uint8)
    np.savez(tmp_path / "device.npz", x=x)
    np.savez(tmp_path / "file.npz", x=((x.transpose(0, 3, 1, 2) - np.float32(128)) / np.float32(64)).astype(np.float32))
    loose = api.QuantiseSettings(max_loss=1.0)
    one = api.quantize(classifier, str(tmp_path / "file.npz"), tmp_path / "one.onnx", settings=loose)
    ports = {"x": "uint8,nhwc,mean=128,std=64"}
    other = api.quantize(
        classifier, str(tmp_path / "device.npz"), tmp_path / "other.onnx", settings=loose, inputs=ports
    )
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "other.onnx").read_bytes() and one.floats == other.floats


def test_bad_requests_are_refused_before_anything_is_written(classifier: Path, tmp_path: Path):
    out, data = tmp_path / "q.onnx", str(tmp_path / "data.npz")
    with pytest.raises(
        ConfigError, match=r"There are no samples to quantise .*: ranges of random inputs would be wrong. Give --data"
    ):
        api.quantize(classifier, None, out)
    for wrong in (
        {"form": "int9"},
        {"io": "int9"},
        {"samples": 0},
        {"max_loss": -1.0},
        {"form": "float16", "io": "int8"},
    ):
        with pytest.raises(ConfigError, match="quantize: "):
            api.QuantiseSettings(**wrong)
    with pytest.raises(ConfigError, match="accuracyy"):
        api.quantize(classifier, data, out, metric="accuracyy")
    quantised = tmp_path / "given.onnx"
    api.quantize(classifier, data, quantised)
    with pytest.raises(ModelError, match="quantised already"):
        api.quantize(quantised, data, out)
    assert not out.exists()


def test_samples_of_floats_reach_an_input_of_integers(classifier: Path, tmp_path: Path):
    """The device writes int8, and the samples are the real numbers behind them."""
    found = api.quantize(
        classifier, str(tmp_path / "data.npz"), tmp_path / "q.onnx", inputs={"x": "int8,scale=0.04,zero-point=5"}
    )
    assert found.judged == 60 and found.taken.loss <= 0.01


def test_a_model_that_onnx_runtime_does_not_load_is_not_blamed_on_the_samples(classifier: Path, monkeypatch):
    def broken(model):
        model.graph.node[0].input[0] = "nothing"
        return model

    monkeypatch.setattr("passfit.quantise.quantise_model.to_halves", broken)
    with pytest.raises(ModelError, match="ONNX Runtime does not load the model: .*another --form") as refused:
        form = api.QuantiseSettings("float16")
        api.quantize(classifier, str(classifier.parent / "data.npz"), classifier.parent / "q.onnx", settings=form)
    assert "samples" not in str(refused.value)


def test_calibration_takes_samples_of_all_classes_that_take_turns(tmp_path: Path):
    """Evenly spaced, 10 of 100 samples of 10 classes in turn are all of the first."""
    np.savez(tmp_path / "turns.npz", x=np.arange(100, dtype=np.float32)[:, None], labels=np.arange(100) % 10)
    samples = read_samples(tmp_path / "turns.npz", [InputForm("x", np.dtype("float32"), (1,))])
    values = [int(each["x"][0]) for each in calibrated_on(samples, 10)]
    assert len({value % 10 for value in values}) >= 6 and len({value // 10 for value in values}) >= 6


@pytest.mark.slow
@pytest.mark.tvm
def test_what_does_not_fit_is_quantised_under_consent_and_its_sequence_replays(
    classifier: Path, tmp_path: Path, caplog
):
    """The float library takes 1.9 KiB of ram and more; the file that was compiled stays next to the sequence."""
    target, out = get_target("mps2-an386"), tmp_path / "out"
    build = partial(api.compile_model, target=target, budget=Budget(ram=1800), search=CHEAP)
    data = str(tmp_path / "data.npz")
    assert not build(classifier, out=tmp_path / "plain").fits
    assert api.build_within(partial(build, out=out), classifier, data, target, out, io="int8").fits
    assert "it is quantised to int8" in caplog.text and json.loads((out / "quantize.json").read_text())["points"]
    again, replayed = tmp_path / "again", out / "sequence.json"
    api.compile_model(out / "quantised.onnx", target, out=again, name="net", sequence=replayed, io="int8")
    assert (again / "libnet.a").read_bytes() == (out / "libnet.a").read_bytes()


@pytest.mark.slow
@pytest.mark.tvm
def test_what_loses_too_much_stays_float_and_what_fits_is_not_quantised(classifier: Path, tmp_path: Path, caplog):
    target, out = get_target("mps2-an386"), tmp_path / "out"
    search = partial(api.optimize, target=target, out=out, search=CHEAP)
    small, strict = partial(search, budget=Budget(ram=1800)), api.QuantiseSettings("int4-weights", max_loss=0.0)
    data = str(tmp_path / "data.npz")
    assert not api.build_within(small, classifier, data, target, out, settings=strict).fits
    assert "is not quantised: The form int4-weights loses" in caplog.text and not (out / "quantised.onnx").exists()
    roomy = partial(search, budget=Budget(ram=1 << 20))
    assert api.build_within(roomy, classifier, str(tmp_path / "missing.npz"), target, out).fits


@pytest.mark.slow
@pytest.mark.tvm
def test_what_gains_nothing_stays_float(tmp_path: Path, caplog):
    """Twelve weights in int8 take more code than they save, and the integers more ram."""
    b = NodeBuilder()
    model = save(b.model([1, 4], b.node("MatMul", "x", b.weight(4, 3))), tmp_path, "small.onnx")
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).standard_normal((40, 1, 4)).astype(np.float32))
    target, out, data = get_target("mps2-an386"), tmp_path / "out", str(tmp_path / "data.npz")
    loose = api.QuantiseSettings(max_loss=1.0)
    with pytest.raises(
        ModelError, match=r"int8 gains nothing on mps2-an386: ram .* instead of .*, flash .* instead of .*--target"
    ):
        api.quantize(model, data, tmp_path / "q.onnx", settings=loose, target=target)
    assert not (tmp_path / "q.onnx").exists()
    build = partial(api.optimize, target=target, budget=Budget(ram=100), out=out, search=CHEAP)
    assert not api.build_within(build, model, data, target, out, settings=loose).fits
    assert "is not quantised: The model in int8 gains nothing" in caplog.text and not (out / "quantised.onnx").exists()


@pytest.mark.slow
@pytest.mark.tvm
def test_fit_says_which_target_int8_would_reach_and_what_it_loses(classifier: Path, tmp_path: Path, monkeypatch):
    made: list[Quantiser] = []
    monkeypatch.setattr(
        "passfit.fit.predicted_remedies.Quantiser", lambda *given: made.append(Quantiser(*given)) or made[-1]
    )
    targets = [get_target("stm32f446"), get_target("rp2040")]
    budgets = {"stm32f446": Budget(ram=1800)}
    sizes = api.fit(classifier, targets, budgets)
    assert sizes.smallest == "rp2040" and sizes.int8 is not None
    assert (sizes.int8.target, sizes.int8.loss) == ("stm32f446", None)
    judged = api.fit(classifier, targets, budgets, data=str(tmp_path / "data.npz"))
    assert judged.int8 is not None and judged.int8.metric == "accuracy" and judged.int8.samples == 60
    assert abs(judged.int8.loss) < 0.1 and len(made) == 2, "each fit quantises once"
