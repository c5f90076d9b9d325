"""Workers on a Dask cluster. Each forks a child of its own, so that limits hold there too."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError
from ...targets import Target
from .child import CandidateLimits
from .forked import Forked
from .scoring import EvaluationOutcome, EvaluationRequest, Scorer, WorkerTask
from .workers import Waiting, Workers

if TYPE_CHECKING:
    from distributed import Client

#: requests in flight per worker: one in progress, one queued
AHEAD = 2
#: seconds until an unanswering scheduler counts as absent
PATIENCE = 10


@dataclass(frozen=True)
class Problem:
    """Search problem for processes without shared memory; `onnx` is the canonical model."""

    onnx: bytes
    name: str
    target: Target
    limits: CandidateLimits = CandidateLimits()

    def scorer(self) -> Scorer:
        """Import the model again: the same graph, the same state keys."""
        import onnx

        from ...frontend.imported_model import port_names
        from ...frontend.relax.to_relax import to_relax

        model = onnx.load_from_string(self.onnx)
        return Scorer(to_relax(model), self.name, self.target, *port_names(model))


class _ProcessCache:
    """Keep the workers of the last problem in a cluster process, between requests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._problem: Problem | None = None
        self._workers: Forked | None = None

    def outcome(self, problem: Problem, request: EvaluationRequest | WorkerTask) -> EvaluationOutcome:
        with self._lock:  # a Dask worker has as many threads as cores
            if self._workers is None or problem != self._problem:
                if self._workers is not None:
                    self._workers.close()
                self._workers, self._problem = Forked(problem.scorer(), 1, problem.limits), problem
            return next(self._workers.outcomes([request]))


_CACHE = _ProcessCache()


def evaluate(problem: Problem, request: EvaluationRequest | WorkerTask) -> EvaluationOutcome:
    """Evaluate a request in this process, which keeps its graph for the next one."""
    return _CACHE.outcome(problem, request)


class Executing(Workers):
    """Use any concurrent.futures executor as workers.

    `problem` is a Problem, or a handle its `submit` resolves to one. `lost` are the exceptions that tell of a candidate
    that killed the processes evaluating it.
    """

    def __init__(
        self,
        executor: Executor,
        problem: Any,
        window: int,
        lost: tuple[type[Exception], ...] = (),
        close: Callable[[], object] = lambda: None,
    ):
        super().__init__()
        self.window = window
        self._executor, self._problem, self._lost, self._close = executor, problem, lost, close
        self._under_way: dict[Future[EvaluationOutcome], EvaluationRequest | WorkerTask] = {}

    def close(self) -> None:
        for future in self._under_way:
            future.cancel()
        self._close()

    def _advance(self, waiting: Waiting, known: frozenset[int]) -> None:
        for request in waiting:
            self._under_way[self._executor.submit(evaluate, self._problem, request)] = request
        waiting.clear()
        done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
        for future in done:
            self._keep(self._under_way.pop(future), self._result(future))

    def _result(self, future: Future[EvaluationOutcome]) -> EvaluationOutcome:
        try:
            return future.result()
        except self._lost as error:
            return EvaluationOutcome(failure=f"its process died ({type(error).__name__})", died=True)
        except CancelledError as error:
            raise ConfigError("The executor ended during the search.", "Start it and the search again.") from error


def cluster_workers(address: str, problem: Problem) -> Callable[[Scorer], Workers]:
    """Use the Dask cluster with its scheduler at `address`, written `dask://HOST:PORT`.

    The function returned raises ConfigError for a malformed address, if Dask is not installed, if the scheduler does
    not answer, without workers, or for a worker with another passfit, TVM, ONNX or Python than this process.
    """
    return lambda scorer: _workers(address, problem)


def _workers(address: str, problem: Problem) -> Workers:
    client, count = connect(address)
    from distributed import KilledWorker

    try:
        handle = client.scatter(problem, broadcast=True, hash=False)
        return Executing(client.get_executor(pure=False), handle, AHEAD * count, (KilledWorker,), client.close)
    except BaseException:
        client.close()
        raise


def connect(address: str) -> tuple[Client, int]:
    """Connect to a cluster; return the client, and the number of workers. Raises ConfigError as `cluster_workers`."""
    matched = re.fullmatch(r"dask://([^/\s]+:\d+)/?", address)
    if matched is None:
        raise ConfigError(f"'{address}' is not an executor.", "Write it like dask://HOST:8786.")
    try:
        from distributed import Client
    except ImportError as error:
        raise ConfigError("Dask is not installed.", "Run `pip install 'passfit[dask]'`.") from error
    try:
        client = Client(f"tcp://{matched[1]}", timeout=PATIENCE, set_as_default=False)
    except OSError as error:
        raise ConfigError(
            f"No Dask scheduler answers at {matched[1]}.", "Start `dask scheduler`, and a `dask worker` for it."
        ) from error
    try:
        return client, _check_workers(client)
    except BaseException:
        client.close()
        raise


def _check_workers(client: Client) -> int:
    """Count the workers. Raises ConfigError unless all have the versions of this process."""
    ours = versions()
    try:
        found = client.run(versions)
    except ImportError as error:
        raise ConfigError("A Dask worker has no passfit.", "Install the same version there as here.") from error
    if not found:
        raise ConfigError("The Dask cluster has no workers.", "Start some with `dask worker`.")
    for worker, theirs in sorted(found.items()):
        if theirs != ours:
            raise ConfigError(
                f"The Dask worker at {worker} has {_list(theirs)}, here are {_list(ours)}.",
                "Install the same versions there as here.",
            )
    return len(found)


def versions() -> dict[str, str]:
    """Return the versions that state keys and footprints depend on."""
    packages = {each: importlib.metadata.version(each) for each in ("passfit", "apache-tvm", "onnx")}
    return {"python": ".".join(platform.python_version_tuple()[:2]), **packages}


def _list(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in found.items())
