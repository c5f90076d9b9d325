"""An error of TVM costs a candidate; an error of ours is a bug, and ends the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("tvm")

import tvm
import tvm_ffi
from tvm import relax

from passfit.errors import ConfigError, ModelError, SequenceError
from passfit.passes.graph.stock import DeadCodeElimination
from passfit.passes.sequence import failures
from passfit.passes.sequence.failures import PassFailure, failure_of

pytestmark = pytest.mark.tvm


def caught(action: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as raised:
        action()
    return raised.value


def called_back(action: Callable[[], object]) -> Callable[[], object]:
    """Return `action` as TVM calls the Python code of a visitor: through C++."""
    return tvm_ffi.convert(action)


@pytest.mark.parametrize(
    "action",
    [
        lambda: relax.transform.DeadCodeElimination()(3),  # in C++, across the FFI
        lambda: tvm.ir.load_json("{"),
        lambda: tvm.target.Target("no-such-kind"),
        lambda: DeadCodeElimination().apply("no module"),
        lambda: called_back(lambda: relax.transform.DeadCodeElimination()(3))(),
    ],
)
def test_an_error_inside_tvm_is_a_failure(action):
    error = caught(action)
    failure = failure_of(error)
    assert isinstance(failure, PassFailure) and failure.reason.startswith(type(error).__name__)


@pytest.mark.parametrize("error", [ModelError("m"), SequenceError("s"), MemoryError(), tvm.error.InternalError("i")])
def test_a_refusal_and_what_only_tvm_raises_are_failures(error):
    assert failure_of(error) is not None


def _in_our_code(raised: Exception) -> Callable[[], object]:
    """Return a function whose frame is one of passfit's own."""
    code = compile("def broken():\n    raise error", failures.__file__, "exec")
    names = {"error": raised}
    exec(code, names)
    return names["broken"]


@pytest.mark.parametrize("kind", [AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError, RuntimeError])
def test_an_error_of_our_own_code_is_a_bug(kind):
    assert failure_of(caught(_in_our_code(kind("oops")))) is None


@pytest.mark.parametrize("kind", [TypeError, ValueError, RuntimeError])
def test_an_error_of_our_own_code_that_tvm_called_back_is_a_bug(kind):
    assert failure_of(caught(called_back(_in_our_code(kind("oops"))))) is None


def test_other_refusals_and_interrupts_go_through():
    assert failure_of(ConfigError("c")) is None and failure_of(KeyboardInterrupt()) is None


def test_a_failure_stays_one_where_it_is_raised_again():
    failure = failure_of(caught(lambda: tvm.ir.load_json("{")))

    def again() -> None:
        raise failure

    assert failure_of(caught(again)) is failure
