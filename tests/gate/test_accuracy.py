"""Accuracy passes only within its limits, and only if it is of the samples, settings and library that are there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from passfit.artifacts.evaluated import Evaluated
from passfit.artifacts.failures import record_failure
from passfit.artifacts.origin import evaluate_record, quantize_record
from passfit.data.accuracy import ClassScore, Score, WorstSample
from passfit.gate import run_gate, why_refused
from passfit.gate.accuracy import Accuracies, accuracy_verdicts
from passfit.gate.amounts import format_amounts
from passfit.params.params import load_params, params_of
from passfit.support.text_files import sorted_json

from .samples import KIB, Repo, accuracy

LIMITS = "accuracy: 0.9, max-accuracy-loss: 0.01, min-agreement: 0.99"
PARAMS = """
models:
  a: {source: a.onnx, data: test.npz}
targets:
  x86-64:
    budget: {ram: 600KiB, LIMITS}
"""
FRACTION = st.floats(0, 1)
PAIR = ("a", "x86-64")


@pytest.fixture
def made(repo: Repo) -> Repo:
    repo.params(PARAMS.replace("LIMITS", LIMITS))
    repo.samples("test.npz")
    repo.footprint()
    repo.keep()
    return repo


def verdict(repo: Repo, **options: object) -> tuple[int, str]:
    result = run_gate(repo.path, **options)
    return result.exit_code, result.text


def judged(report, limits: str, before=None):
    params = params_of({"models": {"a": {"source": "a"}}, "targets": {"x86-64": {"budget": limits}}}, "params.yaml")
    past = {} if before is None else {PAIR: before}
    return list(accuracy_verdicts(params, *PAIR, Accuracies({PAIR: Evaluated(report)}, past)))


@given(FRACTION, FRACTION, st.booleans())
def test_a_limit_is_the_least_of_a_score_and_the_most_of_an_error(value, limit, higher):
    (found,) = judged(accuracy(value, higher_is_better=higher), {"accuracy": limit})
    assert found.ok == (value >= limit if higher else value <= limit)
    assert (found.margin >= 0) == found.ok and found.checked


@given(FRACTION, FRACTION, FRACTION, st.booleans())
def test_a_loss_is_refused_beyond_its_limit_whatever_the_direction(original, value, limit, higher):
    report = accuracy(value, higher_is_better=higher, original=Score(1000, original))
    (found,) = judged(report, {"max-accuracy-loss": limit})
    assert found.ok == (report.loss <= limit) and found.used == report.loss


@given(FRACTION, FRACTION, FRACTION, st.booleans())
def test_a_loss_since_a_revision_is_refused_beyond_the_allowed_one(then, now, allowed, higher):
    before, after = (accuracy(value, higher_is_better=higher) for value in (then, now))
    lost = round((then - now) if higher else (now - then), 12)
    assume(abs(lost - allowed) > 1e-9)
    *_, found = judged(after, {"max-accuracy-loss": allowed}, before)
    assert found.limit_kind == "growth" and found.ok == (lost <= allowed) and (found.margin >= 0) == found.ok
    (strict,) = judged(after, {}, before)
    assert strict.ok == (lost <= 0)


@given(FRACTION, FRACTION)
def test_accuracies_that_differ_look_different(one, other):
    texts = format_amounts("accuracy", one, other)
    assert (texts[0] == texts[1]) == (f"{one:.12g}" == f"{other:.12g}")


def test_one_tenth_less_than_one_is_a_tenth_lost():
    """As binary fractions, 0.9 - 0.89 is more than 0.01."""
    (found,) = judged(accuracy(0.89, reference=0.9), {"max-accuracy-loss": 0.01})
    assert found.ok and found.used == 0.01


def test_an_accurate_library_passes_and_its_accuracy_is_said(made: Repo):
    made.accuracy(0.95)
    code, text = verdict(made)
    assert code == 0 and "all 6 checks hold" in text
    assert (
        "note  a @ x86-64: accuracy 0.95 (file 0.95) on 1,000 samples of test.npz; 100% of decisions as the file's"
        in text
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"value": 0.897}, "accuracy below its limit by 0.003 (0.897 of at least 0.9: accuracy on 1,000 samples)"),
        (
            {"value": 0.93, "reference": 0.95},
            "accuracy loss over its limit by 0.01 (0.02 of at most 0.01: file 0.95, library 0.93)",
        ),
        (
            {"value": 0.93, "reference": 0.94, "original": Score(1000, 0.95)},
            "accuracy loss over its limit by 0.01 (0.02 of at most 0.01: float file 0.95, quantised file 0.94, library 0.93)",
        ),
        (
            {"value": 0.93, "agreement": 0.95},
            "agreement below its limit by 0.04 (0.95 of at least 0.99: with the file on 1,000 samples, native)",
        ),
    ],
)
def test_one_that_is_too_bad_fails_in_one_line_in_every_format(made: Repo, fields, said):
    made.accuracy(**fields)
    code, text = verdict(made)
    assert code == 1 and f"FAIL  a @ x86-64: {said}" in text.splitlines() and "1 of 6 checks failed" in text
    assert said in verdict(made, format="md")[1]
    (failure,) = ElementTree.fromstring(verdict(made, format="junit")[1]).iter("failure")
    assert failure.attrib["message"] == said
    line = PARAMS.splitlines().index("    budget: {ram: 600KiB, LIMITS}") + 1
    assert f"params.yaml,line={line},title=a @ x86-64" in verdict(made, format="github")[1]
    (found,) = [each for each in json.loads(verdict(made, format="json")[1])["verdicts"] if not each["ok"]]
    assert found["why"] == said and found["margin"] < 0
    assert said in why_refused(made.path, load_params(made.path / "params.yaml"))[PAIR]


def test_no_data_is_two_with_the_next_step(made: Repo):
    code, text = verdict(made)
    assert code == 2
    assert "ERROR a @ x86-64: no data: there is no out/evaluate/a/x86-64/accuracy.json. Run `dvc repro`." in text
    assert text.count("accuracy.json") == 1
    record_failure(made.path, "evaluate", "test.npz has no array `x`. Rename it.", *PAIR)
    assert "accuracy.json: stage evaluate failed: test.npz has no array `x`. Rename it." in verdict(made)[1]


def test_a_limit_for_a_model_without_samples_is_two_and_may_be_lifted(made: Repo):
    without = PARAMS.replace("LIMITS", LIMITS).replace(", data: test.npz", "")
    made.params(without)
    code, text = verdict(made)
    assert (
        code == 2
        and "no data: models.a has no `data` to evaluate it on. Run `passfit add a.onnx --name a --data SAMPLES`"
        in text
    )
    lifted = "{accuracy: null, max-accuracy-loss: null, min-agreement: null}"
    assert f"`budgets: {{a: {lifted}}}` under targets.x86-64" in text
    made.params(f"{without}    budgets: {{a: {lifted}}}\n")
    assert verdict(made)[0] == 0


def test_without_a_limit_a_missing_accuracy_is_a_remark(made: Repo):
    made.params(PARAMS.replace(", LIMITS", ""))
    code, text = verdict(made)
    assert code == 0 and "note  a @ x86-64: no data: there is no out/evaluate/a/x86-64/accuracy.json" in text


def test_missing_labels_are_two_but_agreement_needs_none(made: Repo):
    made.accuracy(None)
    code, text = verdict(made)
    assert (
        code == 2 and "labels missing: test.npz has none for its 1,000 samples, so the accuracy is not known." in text
    )
    made.params(PARAMS.replace("LIMITS", "min-agreement: 0.99"))
    assert verdict(made)[0] == 0


@pytest.mark.parametrize("text", ["{", "[]", '{"model": "a"}'])
def test_a_file_that_is_not_an_accuracy_is_two(made: Repo, text):
    made.accuracy().write_text(text)
    code, said = verdict(made)
    assert code == 2 and "out/evaluate/a/x86-64/accuracy.json" in said


def test_other_samples_than_params_names_are_stale(made: Repo):
    made.accuracy()
    made.params(PARAMS.replace("LIMITS", LIMITS).replace("test.npz", "new.npz"))
    code, text = verdict(made)
    assert (
        code == 2 and "stale: it was evaluated on test.npz, and models.a.data names new.npz. Run `dvc repro`." in text
    )


def test_the_copy_in_git_is_that_of_the_accuracy(made: Repo):
    made.accuracy(0.95)
    made.accuracy(0.99, kept=False)
    code, text = verdict(made)
    assert (
        code == 2 and "altered: accuracies/a/x86-64.json is not a copy of out/evaluate/a/x86-64/accuracy.json" in text
    )


def locked(repo: Repo) -> None:
    """Write dvc.yaml and dvc.lock as a `dvc repro` of what is there leaves them."""

    def record(path: str) -> dict:
        place = repo.path / path
        return {"path": path, "hash": "md5", "md5": hashlib.md5(place.read_bytes()).hexdigest()}

    params = load_params(repo.path / "params.yaml")
    settings = "out/settings/a/x86-64/evaluate.json"
    for path, text in ((settings, sorted_json(evaluate_record(params, "a"))), ("out/toolchain.json", "{}")):
        (repo.path / path).parent.mkdir(parents=True, exist_ok=True)
        (repo.path / path).write_text(text)
    library = {"path": "out/compile/a/x86-64", "md5": "a library"}
    repo.write(repo.path / "out/models/a/origin.json", {"canonical": "0", "made_from": {}})
    repo.write(
        repo.path / "out/optimize/a/x86-64/search.json",
        json.loads((repo.path / "out/compile/a/x86-64/search.json").read_text()),
    )
    evaluate = {
        "deps": [record("test.npz"), library, record(settings), record("out/toolchain.json")],
        "outs": [record("out/evaluate/a/x86-64/accuracy.json"), record("accuracies/a/x86-64.json")],
    }
    repo.write(repo.path / "dvc.yaml", {"stages": {"compile": {"cmd": "make"}}})
    stages = {"compile@a-x86-64": {"outs": [library]}, "evaluate-a@x86-64": evaluate}
    repo.write(repo.path / "dvc.lock", {"stages": stages})


@pytest.fixture
def repro(made: Repo) -> Repo:
    made.accuracy(0.95)
    locked(made)
    assert verdict(made)[0] == 0
    return made


def test_samples_that_changed_since_are_stale(repro: Repo):
    (repro.path / "test.npz").write_bytes(b"Samples in test.npz")
    code, text = verdict(repro)
    assert code == 2 and "ERROR a @ x86-64: stale: test.npz changed since it was evaluated. Run `dvc repro`." in text
    (repro.path / "test.npz").unlink()
    code, text = verdict(repro)
    assert code == 2 and "stale: test.npz, of the samples, is missing. Get it with `dvc pull`." in text


@pytest.mark.parametrize(
    ("now", "stale"),
    [
        ("{source: test.npz, metric: f1}", True),
        ("{source: test.npz, emulated: 5}", True),
        ("{source: test.npz, calibration: train.npz}", False),
    ],
)
def test_settings_that_an_evaluation_reads_make_it_stale(repro: Repo, now, stale):
    repro.params(PARAMS.replace("LIMITS", LIMITS).replace("test.npz", now))
    code, text = verdict(repro)
    assert (code, "models.a.data, or verify, changed since it was evaluated" in text) == (
        (2, True) if stale else (0, False)
    )


def test_another_library_than_was_evaluated_is_stale_and_another_passfit_is_not(repro: Repo):
    (repro.path / "out/toolchain.json").write_text('{"passfit": 2}')
    assert verdict(repro)[0] == 0
    lock = json.loads((repro.path / "dvc.lock").read_text())
    lock["stages"]["compile@a-x86-64"]["outs"] = [{"path": "out/compile/a/x86-64", "md5": "another"}]
    repro.write(repro.path / "dvc.lock", lock)
    code, text = verdict(repro)
    assert code == 2 and "stale: the library changed since it was evaluated. Run `dvc repro`." in text
    del lock["stages"]["evaluate-a@x86-64"]
    repro.write(repro.path / "dvc.lock", lock)
    assert "dvc.lock does not record evaluate-a@x86-64: `dvc repro` did not make it." in verdict(repro)[1]


def test_an_accuracy_changed_by_hand_is_altered(repro: Repo):
    repro.accuracy(0.99)
    code, text = verdict(repro)
    assert code == 2 and "altered: out/evaluate/a/x86-64/accuracy.json differs from its md5 in dvc.lock" in text


def test_without_dvc_what_is_newer_than_an_accuracy_makes_it_stale(made: Repo):
    made.accuracy(0.95)
    assert verdict(made)[0] == 0
    made.footprint()
    assert "stale: out/compile/a/x86-64/manifest.json changed since it was evaluated" in verdict(made)[1]


@pytest.fixture
def retrained(made: Repo) -> Repo:
    """A commit `then`, and after it a model of the same size that is right less often."""
    made.params(PARAMS.replace(", LIMITS", ""))
    made.accuracy(0.95, classes=(ClassScore("cat", 500, 0.98, 0.98), ClassScore("dog", 500, 0.92, 0.92)))
    made.commit("then")
    (made.path / "a.onnx").write_bytes(b"another model")
    made.footprint()
    worst = (WorstSample("7.png", "dog", "cat", "cat", 0.9),)
    made.accuracy(0.93, classes=(ClassScore("cat", 500, 0.98, 0.98), ClassScore("dog", 500, 0.88, 0.88)), worst=worst)
    return made


def test_a_retraining_that_keeps_ram_and_loses_accuracy_fails_in_one_line(retrained: Repo):
    assert verdict(retrained)[0] == 0
    code, text = verdict(retrained, against="then")
    (line,) = [line for line in text.splitlines() if line.startswith(("FAIL", "ERROR"))]
    assert code == 1 and line == (
        "FAIL  a @ x86-64: accuracy went from 0.95 to 0.93, 0.02 worse, with the same ram and flash: no max-accuracy-loss allows that. If it is meant, write "
        "accepted-growth: {a: {accuracy: 0.93, reason: …}} under targets.x86-64."
    )
    assert "accuracy change (0.95 -0.02)" in text
    accepted = PARAMS.replace(", LIMITS", "") + "    accepted-growth: {a: {accuracy: 0.93, reason: smaller}}\n"
    retrained.params(accepted)
    code, text = verdict(retrained, against="then")
    assert code == 0 and "accuracy went from 0.95 to 0.93, which is accepted: smaller" in text
    retrained.params(accepted.replace("0.93", "0.94"))
    assert verdict(retrained, against="then")[0] == 1
    retrained.params(PARAMS.replace("LIMITS", "max-accuracy-loss: 0.02"))
    assert verdict(retrained, against="then")[0] == 0


def test_the_explanation_names_the_classes_that_lost_and_the_worst_samples(retrained: Repo):
    text = verdict(retrained, against="then", explain=True)[1]
    assert "why   a @ x86-64: accuracy: file 0.93, library 0.93" in text
    assert "why   a @ x86-64: the classes that lost most: dog: 92% → 88%" in text
    assert "why   a @ x86-64: worst samples: 7.png: cat, not dog" in text
    assert "next: train it again: the library decides as its file does" in text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"digest": "1"}, "accuracy went from 0.95 to 0.93, on other samples, 0.02 worse"),
        ({"metric": "f1"}, "loss not checked: the metric was accuracy then, and is f1 now"),
    ],
)
def test_other_samples_are_said_and_another_metric_is_not_compared(retrained: Repo, fields, said):
    retrained.accuracy(0.93, **fields)
    code, text = verdict(retrained, against="then")
    assert said in text and code == (1 if "digest" in fields else 0)


def test_a_revision_with_samples_but_without_their_accuracy_is_no_past(made: Repo):
    made.accuracy(0.95)
    copy = (made.path / "accuracies/a/x86-64.json").read_bytes()
    (made.path / "accuracies/a/x86-64.json").unlink()
    made.commit("then")
    (made.path / "accuracies/a/x86-64.json").write_bytes(copy)
    code, text = verdict(made, against="then")
    assert (
        code == 2
        and "loss not checked: models.a has data at then, but accuracies/a/x86-64.json is not in git there" in text
    )


def test_samples_that_are_declared_no_more_are_a_remark(made: Repo):
    made.accuracy(0.95)
    made.commit("then")
    made.params(PARAMS.replace(", LIMITS", "").replace(", data: test.npz", ""))
    code, text = verdict(made, against="then")
    assert code == 0 and "loss of accuracy not checked: models.a had data at then, and has none now" in text


def test_samples_new_since_a_revision_are_not_compared(made: Repo):
    made.params(PARAMS.replace(", LIMITS", "").replace(", data: test.npz", ""))
    made.commit("then")
    made.params(PARAMS.replace("LIMITS", LIMITS))
    made.accuracy(0.95)
    assert verdict(made, against="then")[0] == 0


def test_a_library_that_ran_a_part_of_the_samples_is_as_good_as_its_file_where_they_agree():
    report = accuracy(0.85)
    part = replace(report, library=replace(report.library, samples=64, value=0.75, reference=0.75))
    (found,) = judged(part, {"accuracy": 0.8})
    assert found.ok and found.used == 0.85


def test_ram_and_accuracy_fail_side_by_side(made: Repo):
    made.footprint(ram=700 * KIB)
    made.keep(ram=700 * KIB)
    made.accuracy(0.5)
    code, text = verdict(made)
    assert code == 1 and "ram over budget" in text and "accuracy below its limit by 0.4" in text


def test_a_quantised_model_is_stale_if_its_samples_or_settings_changed(made: Repo):
    quantised = PARAMS.replace(", LIMITS", "").replace("data: test.npz", "data: test.npz, quantize: {}")
    made.params(quantised)
    file = made.path / "out/quantize/a/model.onnx"
    made.write(file, {})
    (made.path / "a.onnx").write_bytes(file.read_bytes())  # the library is of this file
    made.footprint()
    made.accuracy(0.95)
    (made.path / "a.onnx").write_bytes(b"the float model")
    locked(made)
    assert "dvc.lock does not record quantize-a: the model was not quantised" in verdict(made)[1]
    lock = json.loads((made.path / "dvc.lock").read_text())
    settings = sorted_json(quantize_record(load_params(made.path / "params.yaml"), "a"))
    deps = {
        "a.onnx": b"the float model",
        "test.npz": b"samples in test.npz",
        "out/settings/a/quantize.json": settings.encode(),
    }
    listed = [{"path": path, "hash": "md5", "md5": hashlib.md5(content).hexdigest()} for path, content in deps.items()]
    lock["stages"]["quantize-a"] = {"deps": listed}
    made.write(made.path / "dvc.lock", lock)
    assert verdict(made)[0] == 0
    made.params(quantised.replace("quantize: {}", "quantize: {samples: 9}"))
    assert (
        "stale: models.a.quantize or data changed since the model was quantised. Run `dvc repro`." in verdict(made)[1]
    )
    made.params(quantised)
    (made.path / "a.onnx").write_bytes(b"another float model")
    assert "stale: a.onnx changed since the model was quantised" in verdict(made)[1]
