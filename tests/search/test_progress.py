"""Progress of a search advances in every phase, and its best so far never gets worse."""

import pytest

pytest.importorskip("tvm")

from itertools import pairwise

from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.search.search import search
from passfit.search.strategies.trace import Limits
from passfit.targets import get_target

from .test_search import network

pytestmark = pytest.mark.tvm


def test_it_moves_while_searching_and_while_refining():
    model = network(["conv", "Relu", "conv"])
    told = []
    found = search(
        to_relax(model), "m", get_target("x86-64"), *port_names(model), strategy="greedy", limits=Limits(6),
        progress=lambda what, done, best, _: told.append((what.split(",")[0], done, best)),
    )  # fmt: skip
    phases = [what for what, _, _ in told]
    assert sorted(set(phases), key=phases.index) == ["searching", "refining"]
    for phase in ("searching", "refining"):
        amounts = [done for what, done, _ in told if what == phase]
        assert amounts == sorted(amounts) and amounts[0] < amounts[-1]
    assert max(done for what, done, _ in told if what == "searching") == found.evaluations
    best = [least for _, _, least in told]
    assert all(later <= earlier for earlier, later in pairwise(best) if earlier)
    assert best[-1] <= found.best.ram
