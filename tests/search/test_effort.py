"""The effort of a search: counted in kernels, the same for any workers; the incumbent is built when it runs out."""

import pytest

pytest.importorskip("tvm")

from hypothesis import given
from hypothesis import strategies as st

from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.report.search_table import _ending
from passfit.search.effort import NET, RATE, START, Effort
from passfit.search.evaluate.forked import forked
from passfit.search.search import search
from passfit.search.strategies.trace import Limits
from passfit.targets import get_target

from ..models import NodeBuilder

pytestmark = pytest.mark.tvm


@given(st.floats(1, 1e6), st.floats(0.1, 1), st.lists(st.floats(0, 1e5), max_size=8))
def test_a_part_is_over_once_so_many_kernels_were_handled(seconds, part, kernels):
    effort = Effort(seconds)
    for each in kernels:
        effort.add(each)
    assert effort.over(part) == (effort.kernels > part * RATE * seconds)
    assert effort.ended_by == ("work" if effort.over(part) else "")


def test_the_clock_ends_a_search_that_takes_far_longer_and_it_is_told():
    effort = Effort(10, elsewhere=lambda: START + 10 * NET + 1)
    assert effort.over(1.0) and effort.ended_by == "clock"
    (line,) = _ending({"ended_by": effort.ended_by})
    assert "CLOCK" in line and "another plan" in line
    assert _ending({"ended_by": "work"}) and not _ending({})


def model():
    net = NodeBuilder()
    x = "x"
    for _ in range(3):
        x = net.node("Relu", net.node("Conv", x, net.weight(8, 8, 3, 3), pads=[1, 1, 1, 1]))
        x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    return canonicalize(net.model([1, 8, 32, 32], x))


def found(seconds, workers=0):
    given = model()
    return search(
        to_relax(given),
        "m",
        get_target("x86-64"),
        *port_names(given),
        limits=Limits(seconds=seconds),
        workers=forked(workers),
    )


def test_a_search_without_effort_left_returns_its_incumbent_the_same_for_any_workers():
    short, full = found(0.05), found(240.0)
    assert short.ended_by == "work" and not short.closed and not full.ended_by
    assert short.evaluations < full.evaluations and short.best.ram >= full.best.ram
    other = found(0.05, workers=2)
    assert (other.sequence, other.ended_by, other.evaluations) == (short.sequence, "work", short.evaluations)
