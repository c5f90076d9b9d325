"""Run passfit on mutated files, each in a fork of its own: an exit code of ours, one line, no other files, within limits.

    seed ─► kind of file ─► mutated copy of a repo ─► a command that reads it, in a fork ─► verdict

A case is its kind and seed. `python -m tests.faults.bad_input REPO SCRATCH SEED 1 KIND` runs one, on a repo of `fill`.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from ..conftest import ModelRepo
from ..matrix.cells import whole
from ..odd_models.graphs import small_cnn
from .mutate_model import mutate_model
from .mutate_text import mutate_text

#: wall seconds and bytes of address space beyond the parent's that a command may take; pictures reserve more, for V8
SECONDS, NBYTES, NBYTES_OF_PICTURES = 60, 4 << 30, 128 << 30
_MODEL, _TARGET, _RESULT = "net", "x86-64", "out/compile/net/x86-64"
_BUILD = ("compile", "net.onnx", "--target", _TARGET, "--out", "out/new")
_IMPORT = ("stage", "import_model", _MODEL, "net.onnx")
_TABLES = (("explain", _RESULT), ("gate",), ("report", "--out", "out/report.html"), ("compare", _RESULT, _RESULT))
#: of each kind: the file, and commands that read it
KINDS: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "model": ("net.onnx", (_IMPORT, _IMPORT, _IMPORT, _IMPORT, ("fit", "net.onnx", "--target", "rpi4", "--seconds", "1"))),
    "params.yaml": ("params.yaml", (("gate",), ("stage", "toolchain"), _IMPORT, ("stage", "footprint", _MODEL, _TARGET), ("add", "--target", "rpi4"))),
    "dvc.yaml": ("dvc.yaml", (("gate",), ("add", "--target", "rpi4"), ("remove", "--target", _TARGET), _IMPORT)),
    "dvc.lock": ("dvc.lock", (("gate",), ("gate", "--format", "json"))),
    "sequence.json": (f"{_RESULT}/sequence.json", ((*_BUILD, "--sequence", f"{_RESULT}/sequence.json"), ("gate",), ("stage", "compile", _MODEL, _TARGET))),
    "tuning.json": ("tuning.json", ((*_BUILD, "--tuning", "tuning.json", "--sequence", f"{_RESULT}/sequence.json"),)),
    "footprint.json": (f"{_RESULT}/footprint.json", (*_TABLES, ("stage", "footprint", _MODEL, _TARGET))),
    "plan.json": (f"{_RESULT}/plan.json", (*_TABLES, ("package", _RESULT, "--kind", "cmake", "--out", "out/package"))),
    "manifest.json": (f"{_RESULT}/manifest.json", (*_TABLES, ("package", _RESULT, "--kind", "cmake", "--out", "out/package"))),
    "search.json": ("out/optimize/net/x86-64/search.json", (*_TABLES, ("explain", "out/optimize/net/x86-64"))),
    "pyproject.toml": ("pyproject.toml", (("targets",), ("gate",), ("fit", "net.onnx", "--target", "mine", "--seconds", "1"), ("stage", "toolchain"))),
}  # fmt: skip
_PYPROJECT = """
[project]
name = "net"

[tool.passfit.targets.mine]
base = "rpi4"
ram = "64MiB"
flash = "1GiB"
description = "my board"
features = ["+neon"]
"""
#: exit codes of a case that is no fault: done, a gate that says no, refused
FINE = ("0", "1", "2")
#: written by commands that succeed, and what libraries leave
_OURS = ("out", "params.yaml", "dvc.yaml", "footprints", ".gitignore", ".dvc", ".git", "__pycache__")


@dataclass(frozen=True)
class Outcome:
    """Result of a case; `verdict` is its exit code, or a fault in capitals."""

    kind: str
    seed: int
    command: tuple[str, ...]
    verdict: str
    said: str
    seconds: float


def fill(repo: ModelRepo) -> Path:
    """Write a model and results of it to an empty repo; return its folder."""
    (repo.root / "net.onnx").write_bytes(small_cnn().SerializeToString())
    (repo.root / "pyproject.toml").write_text(_PYPROJECT)
    repo.passfit("init", "--model", "net.onnx", "--target", _TARGET)
    repo.edit("params.yaml", "strategy: orchestrated", "strategy: greedy")
    repo.repro(f"footprint@{_MODEL}-{_TARGET}")
    given = ("--target", _TARGET, "--sequence", f"{_RESULT}/sequence.json")
    repo.passfit("tune", "net.onnx", *given, "--seconds", "1", "--out", "tuning.json")
    return repo.root


def preload() -> None:
    """Import what commands import, so that a fork has it."""
    import dvc.api  # noqa: F401
    import onnxruntime  # noqa: F401
    import tvm.relax  # noqa: F401

    import passfit.api
    import passfit.cli.app
    import passfit.frontend.relax.to_relax
    import passfit.gate
    import passfit.report
    import passfit.stages.compile
    import passfit.stages.footprint
    import passfit.stages.import_model
    import passfit.stages.toolchain  # noqa: F401


def run_case(repo: Path, scratch: Path, kind: str, seed: int) -> Outcome:
    """Run a case on a copy of a repo in the folder `scratch`; needs `preload`."""
    random = Random(f"{kind} {seed}")
    file, commands = KINDS[kind]
    command, outside = random.choice(commands), scratch / f"case-{os.getpid()}"
    shutil.rmtree(outside, ignore_errors=True)
    (outside / "tmp").mkdir(parents=True)
    work = outside / "repo" / "work"
    shutil.copytree(repo, work, symlinks=True, ignore=shutil.ignore_patterns("cache", "tmp", "hooks"))
    if kind == "model":
        cells = list(whole())
        (work / "dvc.yaml").unlink()  # it watches no side files
        content = random.choice(cells).write(work).read_bytes()
        (work / "model.onnx").unlink()
        (work / "net.onnx").write_bytes(mutate_model(content, random))
    else:
        (work / file).write_bytes(mutate_text((work / file).read_bytes(), Path(file).suffix, random))
    before = _tree(work)
    started = time.monotonic()
    code = _run(command, work, outside)
    seconds = time.monotonic() - started
    said = (outside / "err").read_text(errors="replace")
    verdict = _verdict(command, code, said, work, outside, before)
    return Outcome(kind, seed, command, verdict, said.strip()[-2000:], seconds)


def _verdict(
    command: tuple[str, ...], code: int | None, said: str, work: Path, outside: Path, before: dict[str, int]
) -> str:
    if code is None:
        return "HANG"
    if code < 0:
        return f"CRASH {signal.Signals(-code).name}"
    if code not in (0, 1, 2) or "Traceback" in said:
        return "TRACEBACK"
    lines = [line for line in said.splitlines() if line.startswith("passfit: ")]
    told = bool((outside / "out").read_bytes()) and not said if command[0] == "gate" else False  # a line a result
    if code == 2 and not told and (len(lines) != 1 or not said.endswith(f"{lines[0]}\n")):
        return "LINES"
    around = {path.name for path in outside.iterdir()} | {path.name for path in work.parent.iterdir()}
    if around != {"tmp", "repo", "out", "err", "work"} or [
        each for each in os.listdir(outside / "tmp") if each != ".ses"
    ]:
        return "OUTSIDE"
    changed = {name for name, size in _tree(work).items() if before.get(name) != size}
    if [name for name in changed if name.split("/")[0] not in _OURS]:
        return "OUTSIDE"
    return str(code)


def _tree(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()
    }


def _run(command: tuple[str, ...], work: Path, outside: Path) -> int | None:
    """Run a command in a fork; return its exit code, minus the signal that ended it, or None after too long."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = _enter(command, work, outside)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _enter(command: tuple[str, ...], work: Path, outside: Path) -> int:
    """Be the process of a command: folder, streams, limits."""
    os.setsid()
    os.chdir(work)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(outside / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ |= {"TMPDIR": str(outside / "tmp"), "PASSFIT_STRICT": "0"}
    import tempfile

    tempfile.tempdir = None
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (NBYTES_OF_PICTURES if command[0] == "report" else NBYTES)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        if command[0] == "stage":
            _run_stage(*command[1:])
        else:
            from passfit.cli.app import main

            sys.argv = ["passfit", *command]
            main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0


def _run_stage(name: str, *values: str) -> None:
    import importlib

    from passfit.stages._common import run_stage

    module = importlib.import_module(f"passfit.stages.{name}")
    names = ("model", "file" if name == "import_model" else "target")[: len(values)]
    run_stage(getattr(module, {"compile": "compile_library"}.get(name, name)), *names, argv=list(values))


def main(repo: str, scratch: str, first: str, count: str, *kinds: str) -> None:
    """Run the cases of some kinds, or of all; print each outcome as a line of JSON."""
    preload()
    for kind in kinds or KINDS:
        for seed in range(int(first), int(first) + int(count)):
            print(json.dumps(asdict(run_case(Path(repo), Path(scratch), kind, seed))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
