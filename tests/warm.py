"""Run passfit, its stages and DVC as children of one process that has imported TVM, MLflow and DVC already.

    test, dvc ─► <folder>/python -m passfit.stages.compile … ─► socket ─► fork of the warm process ─► its exit code

Each child has the arguments, folder, environment and streams of the caller. What a process of its own would not share
with the next: hashes of strings, so tests that compare the bytes of two runs take the cold programs.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import marshal
import os
import runpy
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from passfit.support.import_closure import code_digest

PROGRAMS = ("python", "passfit", "dvc")
_COLD = Path(sys.executable).parent
_SOCKET = "warm.socket"
#: not the stages themselves, which run as `__main__`
_IMPORTED = (
    "dvc.cli", "dvc.commands.repro", "dvc.commands.experiments.run", "dvc.repo", "dvc.repo.reproduce", "dvc_data.hashfile.db",
    "mlflow", "mlflow.store.tracking.sqlalchemy_store", "onnx", "onnx_ir", "onnxruntime", "tvm",
    "onnx.reference", "onnxscript.optimizer", "ruamel.yaml", "jinja2", "mlflow.pyfunc",
    "passfit.api", "passfit.artifacts.html_report", "passfit.cli.app", "passfit.codegen.objects", "passfit.frontend.canonicalise",
    "passfit.frontend.canonical.folding.constant_folder", "passfit.frontend.relax.importer", "passfit.frontend.relax.to_relax",
    "passfit.gate", "passfit.passes.sequence.replay", "passfit.search.deliver", "passfit.search.effects.effects", "passfit.search.search",
    "passfit.stages._common", "passfit.stages._lines", "passfit.tracking", "passfit.tracking.runs", "passfit.tracking.track",
    "passfit.verify.build_and_run", "passfit.verify.build_plan",
)  # fmt: skip
#: a program of these names: without site, it starts in a tenth of Python's time. What is not ours goes to the cold one
_CLIENT = """\
#!{python} -IS
import marshal, os, socket, sys
folder, program = os.path.split(sys.argv[0])
words = sys.argv[1:]
if program == "python" and not (words[:1] == ["-m"] and words[1:] and words[1].split(".")[0] in ("dvc", "passfit")):
    os.execv({cold!r} + "/python", [{cold!r} + "/python", *words])
with socket.socket(socket.AF_UNIX) as warm:
    warm.connect(os.path.join(folder, {socket!r}))
    text = marshal.dumps((program, words, os.getcwd(), dict(os.environ)))
    socket.send_fds(warm, [len(text).to_bytes(8, "big")], [0, 1, 2])
    warm.sendall(text)
    said = warm.recv(1)
sys.exit(said[0] if said else 70)
"""


class WarmPrograms:
    """Hold the warm process; `python` stands beside `passfit` and `dvc`, as in an environment."""

    def __init__(self, folder: Path):
        for name in PROGRAMS:
            (folder / name).write_text(_CLIENT.format(python=sys.executable, cold=str(_COLD), socket=_SOCKET))
            (folder / name).chmod(0o755)
        self.python = folder / "python"
        self._process = subprocess.Popen([sys.executable, "-m", "tests.warm", folder], cwd=Path(__file__).parents[1])
        while not (folder / _SOCKET).exists():
            assert self._process.poll() is None, "the warm process ended: see its output"
            time.sleep(0.05)

    def stop(self) -> None:
        """End the warm process; its children run on."""
        self._process.kill()
        self._process.wait()


def _serve(folder: Path) -> None:
    """Answer clients until the process that started this one has ended."""
    parent = os.getppid()
    for name in _IMPORTED:
        importlib.import_module(name)
    copy_tables(folder / "tables.db")
    measure_briefly()
    code_digest("passfit.api")  # reads all modules, as each child would to know which results hold
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "new.socket"))
        server.listen(64)
        os.rename(folder / "new.socket", folder / _SOCKET)
        server.settimeout(5)
        while os.getppid() == parent:
            try:
                asked, _ = server.accept()
            except TimeoutError:
                continue
            if os.fork() == 0:
                server.close()
                _answer(asked)
            asked.close()
            while _has_ended():
                pass


def _has_ended() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _answer(asked: socket.socket) -> None:
    """Run the program that a client asks for, tell it the exit code, and end."""
    size, ancillary, _, _ = asked.recvmsg(8, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    streams = array.array("i", ancillary[0][2])
    text = b""
    while len(text) < int.from_bytes(size, "big"):
        text += asked.recv(1 << 16)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    program, words, folder, environment = marshal.loads(text)
    code = 1
    try:
        code = _run(program, words, folder, environment)
    except BaseException:  # a process of its own would print it too
        traceback.print_exc()
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        asked.sendall(bytes([code & 255]))
        os._exit(code & 255)


def _run(program: str, words: list[str], folder: str, environment: Mapping[str, str]) -> int:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    run: dict[str, Any] = {"run_name": "__main__"}
    try:
        if program == "python":
            sys.argv, sys.path[0] = [words[1], *words[2:]], folder
            runpy.run_module(words[1], alter_sys=True, **run)
        else:
            sys.argv = [str(_COLD / program), *words]
            sys.path[0] = str(_COLD)
            runpy.run_path(sys.argv[0], **run)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def measure_briefly() -> None:
    """Time kernels, and this machine, for a moment in place of seconds: tests judge no time."""
    from passfit.tuning import profile_kernels
    from passfit.tuning.measure import peak

    profile_kernels._SECONDS, peak._SECONDS = 0.01, 0.001


def copy_tables(template: Path) -> None:
    """Let MLflow copy the tables of an empty SQLite file, which it takes a second to make, from the first one."""
    import sqlite3

    from mlflow.store.db import utils

    initialise = utils._initialize_tables

    def copy(engine: Any) -> None:
        import sqlalchemy

        file = engine.url.database
        if engine.dialect.name != "sqlite" or not file or sqlalchemy.inspect(engine).get_table_names():
            initialise(engine)
        elif template.exists():
            with sqlite3.connect(template) as source, sqlite3.connect(file) as target:
                source.backup(target)
        else:
            initialise(engine)
            new = template.with_name(f"{template.name}.{os.getpid()}")
            with sqlite3.connect(file) as source, sqlite3.connect(new) as target:
                source.backup(target)
            os.replace(new, template)

    utils._initialize_tables = copy


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
