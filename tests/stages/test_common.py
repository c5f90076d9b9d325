from __future__ import annotations

import importlib

import pytest

from passfit.artifacts.failures import STAGES, why_failed
from passfit.errors import ConfigError, ModelError
from passfit.stages._common import budget_of, run_stage

PARAMS = """\
models: {ocr: {source: ocr.onnx}}
targets: {rpi4: {budget: {ram: 1MiB}, budgets: {ocr: {ram: 512KiB}}}}
"""


@pytest.fixture(autouse=True)
def in_a_repo(tmp_path, monkeypatch):
    (tmp_path / "params.yaml").write_text(PARAMS)
    monkeypatch.chdir(tmp_path)


def test_the_work_gets_the_params_and_its_arguments():
    got = []

    def work(params, model, target):
        """Do it."""
        got.append((list(params.models), model, target))

    run_stage(work, "model", "target", argv=["ocr", "rpi4"])
    assert got == [(["ocr"], "ocr", "rpi4")]


def test_a_user_error_is_one_line_and_exit_code_2(capsys):
    def work(params):
        """Do it."""
        raise ModelError("The model 'x' is empty.", "Export it again.")

    with pytest.raises(SystemExit) as stop:
        run_stage(work, argv=[])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "passfit: The model 'x' is empty. Export it again.\n"


def test_a_bug_keeps_its_traceback_and_is_no_verdict_of_the_gate(capsys):
    def work(params):
        """Do it."""
        raise ZeroDivisionError

    with pytest.raises(SystemExit) as stop:
        run_stage(work, argv=[])
    said = capsys.readouterr().err
    assert stop.value.code == 3 and "Traceback" in said and "ZeroDivisionError" in said and "Report it" in said


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device", "/tmp/x"), MemoryError(), RuntimeError("std::bad_alloc")]
)
def test_a_machine_without_room_is_no_bug(capsys, error):
    def work(params):
        """Do it."""
        raise error

    with pytest.raises(SystemExit) as stop:
        run_stage(work, argv=[])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and len(said.splitlines()) == 1 and said.startswith("passfit: ")


def test_without_params_the_stage_says_so(tmp_path, capsys):
    (tmp_path / "params.yaml").unlink()
    with pytest.raises(SystemExit):
        run_stage(lambda params: None, argv=[])
    assert "params.yaml" in capsys.readouterr().err


def test_a_budget_of_one_model_wins(tmp_path):
    def work(params):
        """Do it."""
        assert budget_of(params, "ocr", "rpi4").ram == 512 * 1024
        with pytest.raises(ConfigError, match="models.ocrs"):
            budget_of(params, "ocrs", "rpi4")
        with pytest.raises(ConfigError, match="targets.rpi"):
            budget_of(params, "ocr", "rpi")

    run_stage(work, argv=[])


def test_the_reason_of_a_failure_is_kept_until_the_stage_runs_again(capsys, tmp_path):
    def optimize(params, model, target):
        """Do it."""
        if fail:
            raise ModelError("The model 'ocr' is empty.", "Export it again.")

    fail = True
    with pytest.raises(SystemExit):
        run_stage(optimize, "model", "target", argv=["ocr", "rpi4"])
    assert why_failed(tmp_path, "ocr", "rpi4") == "stage optimize failed: The model 'ocr' is empty. Export it again."
    assert why_failed(tmp_path, "ocr", "x86-64") is None and why_failed(tmp_path, "other", "rpi4") is None
    fail = False
    run_stage(optimize, "model", "target", argv=["ocr", "rpi4"])
    assert why_failed(tmp_path, "ocr", "rpi4") is None


def test_every_stage_of_a_result_keeps_its_failures_under_its_name():
    for function, stage in STAGES.items():
        module = importlib.import_module(f"passfit.stages.{'import_model' if stage == 'import' else stage}")
        assert callable(getattr(module, function))
