from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from passfit import api
from passfit.artifacts.places import tuning_file
from passfit.errors import ConfigError
from passfit.params.params import load_params
from passfit.stages.tune import tune
from passfit.targets import Runner, get_target
from passfit.tuning import tune_model
from passfit.tuning.database import empty, read_tuning


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def write(tuning: str, targets: str = "targets: {x86-64: , rpi4: }"):
        (tmp_path / "params.yaml").write_text(f"models: {{ocr: {{source: o.onnx}}}}\n{targets}\ntune: {tuning}\n")
        return load_params(tmp_path / "params.yaml")

    monkeypatch.chdir(tmp_path)
    return write


def test_by_default_it_writes_that_nothing_is_tuned(params):
    for target in ("x86-64", "rpi4"):
        tune(params(""), "ocr", target)  # there is no model to read
        assert not read_tuning(tuning_file("ocr", target), get_target(target))


def test_a_seed_of_nothing_changes_nothing(params):
    tune(params("{seed: 1}"), "ocr", "rpi4")
    before = tuning_file("ocr", "rpi4").read_bytes()
    tune(params("{seed: 2}"), "ocr", "rpi4")
    assert tuning_file("ocr", "rpi4").read_bytes() == before


def test_by_default_it_imports_nothing_heavy(params):
    params("{seconds: 0}")
    code = (
        "import sys\nfrom passfit.stages._common import run_stage\nfrom passfit.stages.tune import tune\n"
        "run_stage(tune, 'model', 'target', argv=['ocr', 'rpi4'])\n"
        "print([name for name in ('tvm', 'onnx', 'onnxruntime', 'mlflow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_kernels_that_cannot_be_measured_are_left_to_the_rules_with_a_remark(params, monkeypatch, capsys):
    got = []
    monkeypatch.setattr(api, "tune", lambda *_, settings, **__: got.append(settings) or empty(get_target("rpi4")))
    for runner in (Runner([], "native"), Runner(["qemu"], "qemu"), Runner(None, "not-run: no emulator")):
        monkeypatch.setattr(tune_model, "how_to_run", lambda _, runner=runner: runner)
        tune(params("{seconds: 9, seed: 3}"), "ocr", "rpi4")
    assert got == [api.TuneSettings(seconds, 3) for seconds in (9.0, 9.0, 0.0)]
    assert "rpi4: kernels keep the rules' schedules: they cannot be measured here: not-run" in capsys.readouterr().err


def test_a_target_may_have_its_own_seconds_and_boards_are_skipped_with_a_remark(params, monkeypatch, capsys):
    got = []
    monkeypatch.setattr(api, "tune", lambda *_, settings, **__: got.append(settings) or empty(get_target("rpi4")))
    monkeypatch.setattr(tune_model, "how_to_run", lambda _: Runner([], "native"))
    own = "targets: {x86-64: {tune: {seconds: 4}}, rpi4: {tune: {seed: 5}}, stm32f446: }"
    found = params("{seconds: 9, seed: 3}", own)
    for target in found.targets:
        tune(found, "ocr", target)
    assert got == [api.TuneSettings(*each) for each in ((4.0, 3), (9.0, 5), (0.0, 3))]
    assert "stm32f446: kernels keep the rules' schedules: they cannot be measured one by one" in capsys.readouterr().err


@pytest.mark.parametrize("tuning", ["{seconds: -1}", "{seconds: .inf}", "{seed: -1}", "{second: 1}", "{seconds: long}"])
def test_params_that_are_none(params, tuning: str):
    with pytest.raises(ConfigError, match="tune"):
        params(tuning)
