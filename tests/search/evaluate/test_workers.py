"""Results do not depend on the workers; a candidate that kills its process costs one candidate."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from tvm.error import InternalError

from passfit.errors import ConfigError, PlanError
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.passes.sequence.catalogue import CATALOGUE
from passfit.search.evaluate import child
from passfit.search.evaluate.candidates import starts
from passfit.search.evaluate.child import CandidateLimits
from passfit.search.evaluate.cluster import Executing, Problem, cluster_workers
from passfit.search.evaluate.evaluation import Evaluator, uncompilable
from passfit.search.evaluate.forked import forked
from passfit.search.evaluate.scoring import EvaluationOutcome, WorkerTask
from passfit.search.evaluate.workers import InProcess, Workers
from passfit.search.search import search
from passfit.search.strategies import STRATEGIES
from passfit.search.strategies.trace import Limits, Trace

from ...dask_cluster import running_cluster
from ...profiles import examples
from ...servers import free_port
from ...signals import hear_interrupts
from ..test_search import BLOCKS, TARGET, network

pytestmark = pytest.mark.tvm
BLOCKS_OF_ALL_KINDS = ("conv", "bn", "Relu", "concat", "conv", "pool")
VICTIM = "eliminate-common-subexpr"


#: children that earlier tests left, a server or a resource tracker of multiprocessing
_EARLIER: set[int] = set()


@pytest.fixture(autouse=True)
def _together_at_once(monkeypatch):
    monkeypatch.setattr("passfit.search.evaluate.forked.ALONE", 0)
    monkeypatch.setenv("PASSFIT_STORE", "off")  # so that every worker applies every pass itself
    _EARLIER.clear()
    _EARLIER.update(_children())


@cache
def found_alone(blocks, strategy="orchestrated", evaluations=20):
    """Return what one process finds, which does not depend on the test that asks first."""
    return found(network(blocks), InProcess, strategy, evaluations)


def found(model, workers=InProcess, strategy="orchestrated", evaluations=20):
    limits = Limits(evaluations=evaluations)
    return search(
        to_relax(model), "small", TARGET, *port_names(model), strategy=strategy, limits=limits, workers=workers
    )


@settings(max_examples=examples(3))
@given(BLOCKS)
def test_any_number_of_workers_finds_the_same(blocks):
    model = network(blocks)
    alone = found(model)
    assert [found(model, forked(count)) for count in (0, 1, 3)] == [alone] * 3


@pytest.mark.parametrize(
    ("strategy", "evaluations"), [("orchestrated", 1), *((name, 6) for name in sorted(STRATEGIES))]
)
def test_every_strategy_finds_the_same_with_two_workers(strategy, evaluations):
    together = found(network(BLOCKS_OF_ALL_KINDS), forked(2), strategy, evaluations)
    assert together == found_alone(BLOCKS_OF_ALL_KINDS, strategy, evaluations)


def test_a_short_search_leaves_one_worker_alone(monkeypatch):
    monkeypatch.setattr("passfit.search.evaluate.forked.ALONE", 1000)
    model = network(["Relu"])
    evaluator = Evaluator(to_relax(model), "small", TARGET, *port_names(model), workers=forked(2))
    list(evaluator.evaluate_all(each.passes for each in starts()))
    assert len(_children()) == 1
    evaluator.close()
    assert _children() == []


def _heavy(scorer, number):
    """Dies in a forked worker, where memory is limited."""
    return number + len(bytearray(1 << 28)) * 0


@pytest.mark.parametrize("workers", [InProcess, forked(2), forked(2, CandidateLimits(nbytes=1 << 20))])
def test_errands_come_back_in_order_whatever_becomes_of_a_worker(workers):
    model = network(["conv", "Relu"])
    evaluator = Evaluator(to_relax(model), "small", TARGET, *port_names(model), workers=workers)
    errands = [WorkerTask((), partial(_heavy, number=number)) for number in range(5)]
    assert evaluator.run(errands) == list(range(5))
    evaluator.close()


def test_a_bug_in_an_errand_is_raised_where_it_was_asked_for():
    model = network(["conv", "Relu"])
    evaluator = Evaluator(to_relax(model), "small", TARGET, *port_names(model), workers=forked(1))
    with pytest.raises(TypeError):
        evaluator.run([WorkerTask((), partial(_heavy, number="one"))])
    evaluator.close()


@pytest.mark.parametrize("workers", [InProcess, forked(1)])
@pytest.mark.fault("a pass", "a bug of ours (AttributeError)", "exit code 3 with its traceback, no worker is left")
def test_a_bug_in_a_pass_ends_the_search(monkeypatch, workers):
    monkeypatch.setattr(CATALOGUE[VICTIM], "apply", lambda self, module: module.no_such_attribute)
    with pytest.raises(AttributeError, match="no_such_attribute"):
        found(network(["conv", "Relu"]), workers, "greedy")
    assert _children() == []


def test_no_more_is_asked_for_than_a_window_ahead():
    model = network(["conv", "Relu"])
    evaluator = Evaluator(to_relax(model), "small", TARGET, *port_names(model), workers=forked(2))
    asked = []

    def endless():
        while True:
            asked.append(len(asked))
            yield (CATALOGUE["dead-code-elimination"](),) * len(asked)

    evaluations = evaluator.keys(endless())
    assert next(evaluations) == next(evaluations)
    assert len(asked) <= 2 + evaluator._workers.window
    evaluator.close()


class _FirstLast(Workers):
    """Answer the latest request waiting, and so the first one of all after the others."""

    window = 2
    farthest = 4

    def _advance(self, waiting, known):
        request, _ = waiting.popitem()
        self._keep(request, EvaluationOutcome(result=request.specs))


def test_others_are_answered_beside_a_long_request():
    workers, begun = _FirstLast(), []

    def requests():
        for number in range(100):
            begun.append(number)
            yield WorkerTask((str(number),), str)

    found = [(outcome.result, len(begun)) for outcome in workers.outcomes(requests())]
    assert [result for result, _ in found] == [(str(number),) for number in range(100)]
    assert workers.window < found[0][1] <= workers.farthest * workers.window


def raises(self, module):
    raise InternalError("boom")


def spins(self, module):
    while True:
        pass


def sleeps(self, module):
    time.sleep(1000)


def aborts(self, module):
    os.abort()


def leaves(self, module):
    os._exit(7)


def devours(self, module):
    held = []
    while True:
        held.append(bytes(1 << 20))


LIMITS = CandidateLimits(seconds=1.5, nbytes=1 << 28)


@pytest.fixture(scope="module")
def refused():
    """What a search finds where a pass is refused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CATALOGUE[VICTIM], "apply", raises)
        return found(network(["conv", "Relu"]), forked(2), "greedy")


@pytest.mark.parametrize(
    "harm, reason",
    [
        (aborts, "its process died (signal 6, SIGABRT)"),
        (leaves, "its process died (exit code 7)"),
        (devours, "needed more than 0.25 GiB"),
        (spins, "took longer than 1.5 s"),
    ],
)
@pytest.mark.fault(
    "a pass",
    "it aborts, exits, takes all memory, never ends",
    "that candidate is out and named; the search goes on in a new worker",
)
def test_what_harms_its_process_costs_one_candidate(monkeypatch, refused, harm, reason):
    expected = refused
    monkeypatch.setattr(CATALOGUE[VICTIM], "apply", harm)
    result = found(network(["conv", "Relu"]), forked(2, LIMITS), "greedy")
    assert result.best == expected.best and result.sequence == expected.sequence
    # no candidate without the pass is blamed
    harmed = {specs: reason for specs in expected.failures if VICTIM in specs}
    assert harmed and result.failures == expected.failures | harmed
    assert _children() == []


@pytest.mark.fault("a pass", "it sleeps for ever", "that candidate is out after its time")
def test_a_candidate_that_waits_for_ever_ends_by_wall_time(monkeypatch):
    monkeypatch.setattr(CATALOGUE[VICTIM], "apply", sleeps)
    monkeypatch.setattr(child, "PATIENCE", 1)
    result = found(network(["conv", "Relu"]), forked(2, LIMITS), "greedy")
    assert {reason for specs, reason in result.failures.items() if VICTIM in specs} == {"took longer than 1.5 s"}


def test_what_exceeds_a_limit_is_told_apart_from_what_tvm_refuses():
    for reason, word in (
        ("took longer than 120 s", "shape"),
        ("needed more than 8 GiB", "shape"),
        ("no rule for X", "operator"),
    ):
        error = uncompilable(reason)
        assert reason in error.what and word in error.hint


def test_a_harmful_pass_ends_no_closure(monkeypatch):
    model = network(["Relu"])
    monkeypatch.setattr(CATALOGUE[VICTIM], "apply", aborts)
    result = found(model, forked(2, LIMITS), "orchestrated")
    assert result.closed
    died = [specs for specs, reason in result.failures.items() if "died" in reason]
    assert died and all(VICTIM in specs for specs in died)


def test_a_bug_is_raised_where_the_search_was_started(monkeypatch):
    def bug(self, module):
        raise PlanError("two storages overlap")

    monkeypatch.setattr(CATALOGUE["legalize"], "apply", bug)
    with pytest.raises(PlanError, match="overlap") as caught:
        found(network(["Relu"]), forked(2))
    assert "in bug" in str(caught.value.__cause__)
    assert _children() == []


@pytest.mark.fault("a worker of the search", "SIGKILL at any time", "its candidate is tried again; the same result")
def test_killing_a_worker_changes_nothing():
    model = network(BLOCKS_OF_ALL_KINDS)
    expected = found_alone(BLOCKS_OF_ALL_KINDS)
    killed, done = set(), threading.Event()

    def murder():
        while not done.wait(0.05):
            fresh = [pid for pid in _children() if pid not in killed]
            if fresh and not killed:  # a second one might be at the same candidate, which would then be blamed
                killed.add(fresh[0])
                os.kill(fresh[0], signal.SIGKILL)

    thread = threading.Thread(target=murder)
    thread.start()
    try:
        assert found(model, forked(2)) == expected
    finally:
        done.set()
        thread.join()
    assert killed


SCRIPT = """
import time
from passfit.frontend.relax.to_relax import to_relax
from passfit.passes.sequence.catalogue import CATALOGUE
from passfit.search.evaluate import child, forked as processes
from passfit.search.evaluate.child import CandidateLimits
from passfit.search.evaluate.forked import forked
from passfit.frontend.imported_model import port_names
from passfit.search.search import search
from passfit.targets import get_target
from tests.search.test_search import network

def sleeps(self, module):
    time.sleep(1000)

processes.ALONE = 0
child.PATIENCE = 1  # a sleeper ends after 4 s of wall time, not after 40
CATALOGUE["legalize"].apply = sleeps
model = network(["conv", "Relu"])
try:
    print("ready", flush=True)
    search(to_relax(model), "m", get_target("x86-64"), *port_names(model), workers=forked(2, CandidateLimits(seconds=4)))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_child_outlives_the_search(how):
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], cwd=Path(__file__).parents[3], start_new_session=True,
        preexec_fn=hear_interrupts, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    children = _wait_for(lambda: len(pids := _children(parent.pid)) == 2 and pids)
    # Ctrl-C on a terminal goes to the whole group
    (os.killpg if how == signal.SIGINT else os.kill)(parent.pid, how)
    out, err = parent.communicate(timeout=60)
    if how == signal.SIGINT:
        assert (out, err) == ("ready\ninterrupted\n", "")
        assert not any(map(_alive, children))
    else:
        # they are at a candidate that never ends, and end with its time
        assert _wait_for(lambda: not any(map(_alive, children)))


def test_any_executor_finds_the_same():
    model = network(BLOCKS_OF_ALL_KINDS)
    problem = Problem(model.SerializeToString(), "small", TARGET)
    with ThreadPoolExecutor(2) as executor:
        assert found(model, lambda scorer: Executing(executor, problem, 4)) == found_alone(BLOCKS_OF_ALL_KINDS)


@pytest.mark.parametrize("address", ["", "dask", "dask://", "tcp://localhost:8786", "dask://localhost"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ConfigError, match="dask://HOST:8786"):
        cluster_workers(address, Problem(b"", "small", TARGET))(None)


def test_without_dask_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=r"pip install 'passfit\[dask\]'"):
        cluster_workers("dask://localhost:8786", Problem(b"", "small", TARGET))(None)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler and two workers, processes of their own; the address."""
    with running_cluster(tmp_path_factory.mktemp("dask")) as (address, _):
        yield address


@pytest.mark.slow
def test_a_cluster_finds_the_same(cluster):
    for blocks in (BLOCKS_OF_ALL_KINDS, ("conv", "Sigmoid")):
        model = network(blocks)
        problem = Problem(model.SerializeToString(), "small", TARGET)
        assert found(model, cluster_workers(cluster, problem)) == found_alone(blocks)


@pytest.mark.slow
@pytest.mark.fault("Dask", "a candidate over its time", "that candidate is out, as with local workers")
def test_a_cluster_holds_limits_too(cluster):
    model = network(["conv", "Relu"])
    problem = Problem(model.SerializeToString(), "small", TARGET, CandidateLimits(seconds=0.001))
    workers = cluster_workers(cluster, problem)(None)
    evaluator = Evaluator(to_relax(model), "small", TARGET, *port_names(model), workers=lambda scorer: workers)
    trace = Trace(Limits(evaluations=1), evaluator)
    STRATEGIES["tvm-default"](trace, 0)
    evaluator.close()
    assert trace.best is None and list(evaluator.failures.values()) == ["took longer than 0.001 s"]


@pytest.mark.slow
def test_a_worker_with_another_version_is_refused(cluster, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda package: "0")
    with pytest.raises(ConfigError, match="Install the same versions"):
        cluster_workers(cluster, Problem(b"", "small", TARGET))(None)


@pytest.mark.slow
@pytest.mark.fault("Dask", "no scheduler at the address", "exit code 2 with one line")
def test_a_scheduler_that_does_not_answer_is_an_error(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("passfit.search.evaluate.cluster.PATIENCE", 0.5)
    with pytest.raises(ConfigError, match="No Dask scheduler answers at 127.0.0.1:"):
        cluster_workers(f"dask://127.0.0.1:{free_port()}", Problem(b"", "small", TARGET))(None)


def _children(pid=None):
    """Return the pids of the children of a process, of all its threads, but earlier ones; zombies too."""
    folder = Path(f"/proc/{pid or os.getpid()}/task")
    try:
        found = [int(child) for task in folder.iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [child for child in found if child not in _EARLIER]


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while not (held := condition()):
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.02)
    return held
