"""Keep a warm process that compiles and runs models; a crash there is an answer here.

The process imports TVM once and forks a child that serves. If the child dies, it says how, and forks the next.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from ..errors import PassfitError
from ..support.children import describe_end, end_with, fork

if TYPE_CHECKING:
    from .built import Built

#: seconds of one request
LIMIT = 600
#: requests after which the child makes room for a fresh one: libraries stay loaded, and LLVM keeps memory
_REQUESTS = 400
#: seconds to end a worker before it is killed
_PATIENCE = 2.0
#: exit code of a child that has answered that many
_FULL = 75
_HEAD = struct.Struct("<Q")


class BackendCrash(RuntimeError):
    """Bug of passfit, or death of the process that compiled or ran a model: the text tells how."""


@lru_cache(1)
def shared_worker() -> Worker:
    """Return the worker of this process, started by the first request."""
    return Worker()


class Worker:
    """Warm process, asked for one thing at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None
        self._asking = threading.Lock()

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of a module in the worker; it takes the scratch folder first, then `arguments`. Threads take turns.

        Raises the PassfitError it raises; BackendCrash for any other exception, and for the death of the process.
        """
        with self._asking:
            given, results = _pipes(self._start())
            _send(given.fileno(), pickle.dumps((function, arguments)))
            kind, value = pickle.loads(_receive(results.fileno()))
        if kind == "refused":
            raise value
        if kind == "crashed":
            raise BackendCrash(value)
        return value

    def end(self) -> None:
        """End the process, by force if it is busy."""
        if self._process is not None:
            given, results = _pipes(self._process)
            given.close()
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            results.close()
            self._process = None

    def _start(self) -> subprocess.Popen:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-c", f"from {__name__} import main; main({os.getpid()})"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, start_new_session=True)
            atexit.register(self.end)
        return self._process


def _pipes(process: subprocess.Popen) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None and process.stdout is not None  # by `_start`
    return process.stdin, process.stdout


def library_of(folder: Path, model: bytes, shapes: dict, fix: dict) -> Built:
    """Compile a serialised model: a function for `Worker.ask`."""
    import onnx

    from .built import build

    return build(onnx.ModelProto.FromString(model), shapes, fix, folder)


def check_import(folder: Path, model: bytes) -> None:
    """Import a serialised model, and compile nothing. Raises ModelError."""
    import onnx

    from ..frontend.relax.to_relax import to_relax
    from .built import imported

    to_relax(imported(onnx.ModelProto.FromString(model), {}, {}, folder))


def outputs_of(_folder: Path, built: Built, inputs: dict) -> dict:
    """Run a library: a function for `Worker.ask`."""
    return _load(built).run(inputs)


@lru_cache(64)
def _load(built: Built) -> Any:
    from .built import LoadedLibrary

    return LoadedLibrary(built)


def _send(pipe: int, content: bytes) -> None:
    view = memoryview(_HEAD.pack(len(content)) + content)
    while view:
        view = view[os.write(pipe, view) :]


def _receive(pipe: int) -> bytes:
    """Read one message; raise EOFError at the end of the other side."""
    return _read(pipe, _HEAD.unpack(_read(pipe, _HEAD.size))[0])


def _read(pipe: int, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = os.read(pipe, min(count - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _serve(requests: int, answers: int, folder: Path) -> NoReturn:
    """Answer requests in a forked child until their end, or until it has answered enough."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for _ in range(_REQUESTS):
            function, arguments = pickle.loads(_receive(requests))
            signal.setitimer(signal.ITIMER_REAL, LIMIT)  # ends the process, inside C++ too
            _send(answers, pickle.dumps(_answer(function, arguments, folder)))
            signal.setitimer(signal.ITIMER_REAL, 0)
        os._exit(_FULL)
    except EOFError:
        os._exit(0)
    finally:
        os._exit(1)


def _answer(function: Callable[..., Any], arguments: tuple, folder: Path) -> tuple[str, Any]:
    try:
        return "done", function(folder, *arguments)
    except PassfitError as error:
        return "refused", error
    except Exception:  # a bug is an answer: the caller's suite counts it
        return "crashed", traceback.format_exc()


def main(parent: int) -> None:
    """Serve the process `parent` that started this one, through its pipes; nothing else may write to them."""
    end_with(parent)
    import passfit.codegen.quick_shared
    import passfit.frontend.canonicalise
    import passfit.frontend.relax.to_relax
    import passfit.passes.sequence.replay  # noqa: F401
    from passfit.support.temporary_folder import scratch_folder

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    with scratch_folder() as folder:
        while True:
            child = fork()
            if child == 0:
                _serve(requests, answers, folder)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code == 0:
                return
            if code != _FULL:
                _send(answers, pickle.dumps(("crashed", _death(code))))


def _death(code: int) -> str:
    if code == -signal.SIGALRM:
        return f"took longer than {LIMIT} s"
    return describe_end(code)
