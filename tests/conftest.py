"""Fast tests first: a broken law shows in seconds, before anything is compiled. And what several folders share."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from passfit.support.own_memory import collect_rarely

from . import profiles
from .changed import deselect
from .quick import FILES, PROCESSOR, Durations, processor_seconds
from .skips import is_expected
from .warm import WarmPrograms

profiles.register()

_STARTED = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--changed", metavar="REV", help="run the tests that changes since a git revision may break")


def pytest_configure(config: pytest.Config) -> None:
    """Give the runs of this checkout a result store of their own, which their workers share; none without pytest's cache.

    A result holds for the code that computes it, so one of an earlier run says what this run would. A store of the user's
    may hold those of a changed package.
    """
    if not hasattr(config, "workerinput"):
        cache = getattr(config, "cache", None)
        if cache is None:
            folder = tempfile.TemporaryDirectory(prefix="passfit-store-")
            config.add_cleanup(folder.cleanup)
        os.environ["PASSFIT_STORE"] = folder.name if cache is None else str(cache.mkdir("passfit-store"))
        os.environ["PASSFIT_STRICT"] = "1"  # a defect is an error here, and costs users one plan
        # programs that tests start would compile TVM and MLflow anew, seconds each; see Makefile
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False
        config.pluginmanager.register(Durations(config))
    collect_rarely()  # as the program does
    inspect.stack = _shallow_stack


def _shallow_stack(context: int = 1) -> list[inspect.FrameInfo]:
    """Read the source of the three innermost callers alone, in place of `inspect.stack`.

    TVMScript asks for the stack at each kernel written in it, and reads no more. Below pytest the whole one takes a tenth
    of a second, for each of a hundred kernels and in each worker.
    """
    found: list[inspect.FrameInfo] = []
    frame = inspect.currentframe()
    while (frame := frame.f_back if frame else None) is not None:
        place = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        found.append(
            inspect.FrameInfo(
                frame, *(inspect.getframeinfo(frame, context) if len(found) < 3 else (*place, None, None))
            )
        )
    return found


def _cost(item: pytest.Item) -> int:
    return 2 if item.get_closest_marker("slow") else 1 if item.get_closest_marker("tvm") else 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Unmarked, then tvm, then slow, and of these the longest files first; else the order is pytest's own.

    Tests of the night are left out unless `-m` names them, or the command line names the test.
    """
    seconds = config.cache.get(FILES, {}) if getattr(config, "cache", None) else {}
    taken = {
        path: seconds.get(path.relative_to(config.rootpath).as_posix(), 0) for path in {item.path for item in items}
    }
    items.sort(key=lambda item: (_cost(item), -taken[item.path] if _cost(item) == 2 else 0))
    if config.getoption("changed"):
        deselect(config, items)
    if "nightly" in config.option.markexpr or any("::" in argument for argument in config.args):
        return
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    if nightly:
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note the processor time of each test, its processes and its fixtures; see `Durations`."""
    item.stash[_STARTED] = processor_seconds()
    return (yield)


def _fail_silent_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip for a reason not listed in skips.py into a failure; an expected failure is not a skip."""
    if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        *place, reason = report.longrepr
        if not is_expected(reason):
            report.outcome = "failed"
            report.longrepr = (
                f"{':'.join(map(str, place))}: skipped for a reason that tests/skips.py does not list: {reason}"
            )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_silent_skip(report)
    if report.when == "teardown":
        report.user_properties.append((PROCESSOR, processor_seconds() - item.stash[_STARTED]))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_silent_skip(report)
    return report


def pytest_report_header(config: pytest.Config) -> str:
    return (
        "left out: long searches and further cases, marked `nightly` (make nightly)"
        if not config.option.markexpr
        else ""
    )


@dataclass(frozen=True)
class ModelRepo:
    """A git+DVC repo somewhere, and the Python whose passfit it uses."""

    root: Path
    python: Path

    def run(self, *command: str | Path, expect: int = 0) -> str:
        """Run a program of `python`'s environment in the repo; its output. Fails on another exit code."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "DVC_", "GIT_", "PYTEST_"))}
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.root,
            env=environment | {"PATH": path, "DVC_NO_ANALYTICS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == expect, f"{command} exited with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def cold(self) -> ModelRepo:
        """Return the repo for programs that share nothing with those before."""
        return ModelRepo(self.root, Path(sys.executable))

    def passfit(self, *arguments: str, expect: int = 0) -> str:
        return self.run(self.python.with_name("passfit"), *arguments, expect=expect)

    def repro(self, *arguments: str) -> set[str]:
        """`dvc repro`; the names of the stages that ran, or that the run-cache restored."""
        text = self.run(self.python, "-m", "dvc", "repro", *arguments)
        return set(re.findall(r"^(?:Running s|S)tage '(.+?)'(?:$|:$| is cached)", text, re.MULTILINE))

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace `old`, which must be there, in one file of the repo."""
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{file} does not hold {old!r}:\n{text}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def shorten_search(self) -> None:
        """Ask params.yaml for a search of a moment, for tests of what comes before and after it."""
        self.edit("params.yaml", "evaluations: null", "evaluations: 2")
        self.edit("params.yaml", "objective: null", "objective: ram")
        self.edit("params.yaml", "compute: 0.25", "compute: null")


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPrograms]:
    """Programs of this environment that have imported their libraries already."""
    programs = WarmPrograms(tmp_path_factory.mktemp("warm"))
    yield programs
    programs.stop()


@pytest.fixture(scope="session")
def make_repo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ModelRepo]:
    """A function that makes an empty git+DVC repo, a copy of the first; the programs are warm unless `python` is given."""
    empty: list[Path] = []

    def make(root: Path, python: Path | None = None) -> ModelRepo:
        repo = ModelRepo(root, python or request.getfixturevalue("warm").python)
        if not empty:
            first = ModelRepo(tmp_path_factory.mktemp("empty"), repo.python)
            first.run("git", "init", "-q")
            first.run("git", "config", "user.name", "test")
            first.run("git", "config", "user.email", "test@example.org")
            first.run(repo.python, "-m", "dvc", "init", "-q")
            empty.append(first.root)
        shutil.copytree(empty[0], root, symlinks=True)
        return repo

    return make


@pytest.fixture(scope="session")
def save_tiny_cnn() -> Callable[..., Path]:
    """A function that writes a small convolutional network: 3×16×16 in, 4 classes out, seeded weights."""

    def save(path: Path, channels: int = 8, seed: int = 0) -> Path:
        import numpy as np
        from onnx import helper

        from .models import model_of, save

        random = np.random.default_rng(seed)
        shapes = {"w1": (channels, 3, 3, 3), "w2": (channels, channels, 3, 3), "w3": (channels, 4), "b3": (4,)}
        weights = {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
        nodes = [
            helper.make_node("Conv", ["image", "w1"], ["c1"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c1"], ["r1"]),
            helper.make_node("Conv", ["r1", "w2"], ["c2"], pads=[1, 1, 1, 1]),
            helper.make_node("Add", ["c2", "r1"], ["sum"]),
            helper.make_node("Relu", ["sum"], ["r2"]),
            helper.make_node("MaxPool", ["r2"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
            helper.make_node("GlobalAveragePool", ["p"], ["g"]),
            helper.make_node("Flatten", ["g"], ["f"]),
            helper.make_node("Gemm", ["f", "w3", "b3"], ["scores"]),
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        model = model_of(nodes, {"image": (1, 3, 16, 16)}, {"scores": (1, 4)}, weights, name="tiny")
        return save(model, path.parent, path.name)

    return save
