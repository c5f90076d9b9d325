"""What fails beside a library costs that alone: its baseline, its comparison, remarks, reports; never the library."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from passfit import api
from passfit.cli.app import app
from passfit.memory import read_report
from passfit.memory.measured import NOT_VERIFIED
from passfit.report import footprint_table
from passfit.search.evaluate import beside_floats, tvm_default
from passfit.support.strictness import STRICT
from passfit.targets import get_target, how_to_run
from passfit.tracking.note import note
from passfit.tuning import slow_kernels
from passfit.verify import run, stored_cases

from ..models import NodeBuilder

HOST = get_target("x86-64")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]
SEARCH = api.SearchSettings(evaluations=1)


@pytest.fixture(autouse=True)
def lenient(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delenv(STRICT, raising=False)
    caplog.set_level(logging.WARNING)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = NodeBuilder()
    build.node("Sigmoid", build.node("Conv", "x", build.weight(4, 3, 3, 3), pads=[1] * 4))
    file = tmp_path_factory.mktemp("model") / "net.onnx"
    onnx.save(build.model((1, 3, 8, 8), build.nodes[-1].output[0]), file)
    return file


def breaks(*_arguments: object, **_named: object) -> None:
    raise KeyError("injected")


def dies(*_arguments: object, **_named: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_everything_beside_the_library_may_fail(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module, name in (
        (tvm_default, "_account"), (slow_kernels, "slow_kernels"), (beside_floats, "beside_floats"), (run, "keep_golden"),
        (run, "_compare"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, breaks)
    monkeypatch.setattr("passfit.memory.plan_arena", breaks)
    report = api.compile_model(net, HOST, out=tmp_path, search=SEARCH)
    assert (
        (tmp_path / "libnet.a").is_file() and (tmp_path / "libnet.so").is_file() and (tmp_path / "plan.json").is_file()
    )
    assert read_report(tmp_path / "footprint.json") == report
    assert json.loads((tmp_path / "footprint.json").read_text())["baseline"]["unavailable"] == "KeyError: 'injected'"
    assert report.baseline.ram is None and report.slow == () and report.measured.ran
    assert report.measured.unverified == f"{NOT_VERIFIED}: KeyError: 'injected'"
    for what in (
        "tvm-default",
        "the roofline of kernels",
        "the float twin",
        "the comparison of outputs",
        "golden.json",
        "plan-before.json",
    ):
        assert f"{what} is not available: KeyError: 'injected'" in caplog.messages
    rows = {name: (theirs, ratio) for name, _, theirs, ratio in footprint_table.footprint_rows(report)}
    assert rows["ram"] == ("–", "–") and rows["kernels"] == ("–", "")
    assert "tvm-default is not available: KeyError: 'injected'." in note(report)


@pytest.mark.parametrize("fails", [breaks, dies])
def test_a_library_that_onnx_runtime_cannot_judge_is_not_verified(
    fails: Callable[..., None],
    net: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(stored_cases, "choose_cases", fails)
    monkeypatch.setenv("PASSFIT_STORE", "off")
    report = api.compile_model(net, HOST, out=tmp_path, search=SEARCH)
    reason = "KeyError: 'injected'" if fails is breaks else "ChildProcessError: its process died (signal 9, SIGKILL)"
    assert (tmp_path / "libnet.a").is_file() and report.measured.ran and report.measured.max_rel_error is None
    assert report.measured.unverified == f"{NOT_VERIFIED}: {reason}"
    assert f"ONNX Runtime's outputs is not available: {reason}" in caplog.messages


def test_a_report_that_fails_changes_no_exit_code(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(footprint_table, "footprint_table", breaks)
    done = CliRunner().invoke(
        app, ["compile", str(net), "--target", "x86-64", "--evaluations", "1", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0 and (tmp_path / "libnet.a").is_file()
    assert "the report is not available: KeyError: 'injected'" in caplog.messages


def test_a_failure_is_an_error_where_defects_are(net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRICT, "1")
    monkeypatch.setattr(slow_kernels, "slow_kernels", breaks)
    with pytest.raises(KeyError, match="injected"):
        api.compile_model(net, HOST, out=tmp_path, search=SEARCH)
    assert not list(tmp_path.iterdir())
