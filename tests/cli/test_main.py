"""Test the command itself: help, catalogues, exit codes, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from passfit import api
from passfit.errors import ConfigError
from passfit.memory.footprint import Baseline, Budget, Footprint, FootprintReport, Measured, Start

from ..signals import hear_interrupts
from .conftest import Done

COMMANDS = (
    "init",
    "optimize",
    "compile",
    "fit",
    "profile",
    "learn",
    "gate",
    "track",
    "explain",
    "report",
    "compare",
    "passes",
    "targets",
)
Passfit = Callable[..., Done]


def test_without_arguments_there_is_help(passfit: Passfit):
    done = passfit()
    assert done.code in (0, 2) and all(command in done.out + done.err for command in COMMANDS)


def test_help_names_every_command(passfit: Passfit):
    done = passfit("--help")
    assert done.code == 0 and done.err == ""
    assert all(command in done.out for command in COMMANDS)


@pytest.mark.parametrize("command", ["optimize", "compile"])
@pytest.mark.parametrize(("fits", "code"), [(True, 0), (False, 1)])
def test_what_does_not_fit_exits_with_1(monkeypatch, passfit: Passfit, command: str, fits: bool, code: int):
    size = Footprint(2048, 64, 2048, 0, 64, 0, 2048, 0, True, 1, 2112)
    not_run = Measured(ran=False, how="not-run: no emulator")
    report = FootprintReport("m", "x86-64", Start(1, 1), size, Baseline.of(size), not_run, Budget(ram=1024), fits)

    def made(*_, out: Path, **__) -> FootprintReport:
        out.mkdir()
        found = {"strategy": "greedy", "evaluations": 1, "closed": False, "ablation": [], "rejected": {}}
        (out / "search.json").write_text(json.dumps(found | {"failures": {}, "levers": [], "next": ""}))
        return report

    monkeypatch.setattr(api, "optimize", made)
    monkeypatch.setattr(api, "compile_model", made)
    done = passfit(command, "m.onnx", "--target", "x86-64", "--budget", "ram=1KiB", "--out", "out")
    assert done.code == code
    assert ("does NOT fit" in done.out) is not fits
    assert "Exit code 1" in passfit(command, "--help").out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(passfit: Passfit, command: str):
    done = passfit(command, "--help")
    assert done.code == 0 and done.err == "" and "Usage" in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("optimise",),
        ("--verbose",),
        ("compile",),
        ("compile", "m.onnx"),
        ("compile", "m.onnx", "--target", "rpi4", "--out"),
        ("compile", "m.onnx", "--target", "rpi4", "--out", "o", "--sped", "1"),
        ("optimize", "m.onnx", "--target", "rpi4", "--out", "o", "--evaluations", "0"),
        ("optimize", "m.onnx", "--target", "rpi4", "--out", "o", "--evaluations", "many"),
        ("optimize", "m.onnx", "--target", "rpi4", "--out", "o", "--seed", "-1"),
        ("optimize", "m.onnx", "--target", "rpi4", "--out", "o", "--max-extra-compute", "-0.1"),
        ("compile", "m.onnx", "--target", "rpi4", "--out", "o", "--max-extra-compute", "25%"),
        ("compile", "m.onnx", "--target", "rpi4", "--out", ""),
        ("compile", "m.onnx", "--target", "rpi4", "--out", "o", "--max-extra-compute", "nan"),
        ("explain",),
        ("targets", "rpi4"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_how(passfit: Passfit, tmp_path: Path, arguments: tuple[str, ...]):
    done = passfit(*arguments)
    assert done.code == 2 and done.out == "" and "Error" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command, step", [("optimize", "optimize"), ("compile", "compile_model")])
@pytest.mark.parametrize(
    "arguments, extra",
    [((), 0.25), (("--max-extra-compute", "0.5"), 0.5), (("--max-extra-compute", "0"), 0.0), (("--no-splits",), None)],
)
def test_the_extra_compute_reaches_the_search(
    passfit: Passfit,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    step: str,
    arguments: tuple[str, ...],
    extra: object,
):
    def stop(*_: object, search: api.SearchSettings, **__: object) -> None:
        raise ConfigError(f"extra compute {search.max_extra_compute}")

    monkeypatch.setattr(api, step, stop)
    done = passfit(command, "m.onnx", "--target", "rpi4", "--out", "o", *arguments)
    assert done.code == 2 and f"extra compute {extra}\n" in done.err


@pytest.mark.parametrize("command, step", [("optimize", "optimize"), ("compile", "compile_model")])
def test_the_latency_reaches_the_search(passfit: Passfit, monkeypatch: pytest.MonkeyPatch, command: str, step: str):
    def stop(*_: object, search: api.SearchSettings, **__: object) -> None:
        raise ConfigError(f"latency {search.max_latency}")

    monkeypatch.setattr(api, step, stop)
    for arguments, said in (((), "None"), (("--max-latency", "0.5s"), "500ms"), (("--max-latency", "1.5x"), "1.5x")):
        assert f"latency {said}\n" in passfit(command, "m.onnx", "--target", "rpi4", "--out", "o", *arguments).err


def test_the_catalogues_are_listed_without_heavy_imports():
    code = (
        "import sys; sys.argv = ['passfit', sys.argv[1]]\n"
        "from passfit.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = [name for name in ('tvm', 'mlflow', 'dvc', 'onnxruntime', 'onnx') if name in sys.modules]\n"
        "assert heavy == [], heavy\n"
    )
    from passfit.passes.sequence.catalogue import CATALOGUE
    from passfit.targets import load_catalogue

    for command, names in (("passes", CATALOGUE), ("targets", load_catalogue())):
        done = subprocess.run([sys.executable, "-c", code, command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert [name for name in names if name not in done.stdout] == []


def test_a_bug_exits_with_3_and_its_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    from passfit.cli import app as cli

    def break_down(**options: str) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli, "app", break_down)
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert end.value.code == 3 and "ZeroDivisionError: a bug" in said and said.splitlines()[-1].startswith("passfit: ")


@pytest.mark.slow
@pytest.mark.parametrize("when", ["searching", "compiling"])
def test_ctrl_c_leaves_earlier_results_as_they_were(save_tiny_cnn: Callable[..., Path], tmp_path: Path, when: str):
    """Send the signal when the api reports `when`, not by the clock."""
    model, out, mark = save_tiny_cnn(tmp_path / "cnn.onnx"), tmp_path / "out", tmp_path / "mark"
    out.mkdir()
    (out / "sequence.json").write_text("earlier")
    code = (
        "import sys, time, contextlib, pathlib\n"
        "import passfit.report.progress as progress\n"
        "@contextlib.contextmanager\n"
        "def marking():\n"
        "    def show(what, done, total, found=''):\n"
        f"        if what.startswith({when!r}) and not pathlib.Path({str(mark)!r}).exists():\n"
        f"            pathlib.Path({str(mark)!r}).touch(); time.sleep(30)\n"
        "    yield show\n"
        "progress.console_progress = marking\n"
        f"sys.argv = ['passfit', 'compile', {str(model)!r}, '--target', 'x86-64', '--out', {str(out)!r}]\n"
        "from passfit.cli import main\n"
        "main()\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code],
        preexec_fn=hear_interrupts,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not mark.exists() and running.poll() is None:
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGINT)
    said = "".join(running.communicate())
    assert running.returncode == 130 and "Traceback" not in said, said
    assert [file.name for file in out.iterdir()] == ["sequence.json"]
    assert (out / "sequence.json").read_text() == "earlier"


@pytest.mark.tvm
def test_ctrl_c_inside_tvm_is_no_failed_candidate():
    import tvm_ffi

    from passfit.passes.sequence.failures import failure_of

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupted:
        tvm_ffi.convert(interrupt)()
    assert failure_of(interrupted.value) is None
