"""Transitions are those of the passes, whoever applied them; a search of another target applies none twice."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

from hypothesis import HealthCheck, given, settings

from passfit.errors import ModelError
from passfit.frontend.relax.to_relax import to_relax
from passfit.passes.sequence.catalogue import CATALOGUE, parse_spec
from passfit.passes.sequence.failures import PassFailure
from passfit.search.evaluate import transitions
from passfit.search.evaluate.state_key import state_key
from passfit.search.evaluate.transitions import Transitions
from passfit.support.result_store import ResultStore

from ...profiles import examples
from ..test_search import BLOCKS, network

pytestmark = pytest.mark.tvm
SEQUENCES = [
    ("simplify",),
    ("eliminate-common-subexpr", "simplify", "legalize"),
    ("simplify", "simplify"),
    ("legalize", "fuse-operators"),
]


@settings(max_examples=examples(5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BLOCKS)
def test_states_read_back_are_those_of_the_passes(tmp_path_factory, monkeypatch, blocks):
    folder, graph = tmp_path_factory.mktemp("stores"), to_relax(network(blocks))
    monkeypatch.setattr(transitions, "store_of", lambda subject: ResultStore(folder / f"{subject}.jsonl"))
    first = Transitions(graph)
    found = [first.state(specs) for specs in SEQUENCES]
    for specs, state in zip(SEQUENCES, found):
        module = graph
        for spec in specs:
            module = parse_spec(spec).apply(module)
        assert state.key == state_key(module) == state_key(first.module(specs))
    again = Transitions(graph)
    with monkeypatch.context() as patched:
        patched.setattr(transitions, "parse_spec", None)  # no pass is applied
        assert [again.state(specs) for specs in SEQUENCES] == found
    assert [state_key(again.module(specs)) for specs in SEQUENCES] == [state.key for state in found]


def test_graphs_of_other_weights_or_ports_share_nothing(monkeypatch):
    subjects = []
    monkeypatch.setattr(transitions, "store_of", lambda subject: subjects.append(subject) or ResultStore(None))
    for seed, name in ((0, "x"), (0, "x"), (1, "x"), (0, "y")):
        Transitions(to_relax(network(["conv", "Relu"], seed)), name)
    assert subjects[0] == subjects[1]
    assert len(set(subjects)) == 3


def test_a_failure_is_not_kept_for_later_searches(tmp_path, monkeypatch):
    def broken(self, module):
        raise ModelError("no memory left", "")

    monkeypatch.setattr(transitions, "store_of", lambda subject: ResultStore(tmp_path / "a.jsonl"))
    graph = to_relax(network(["conv", "Relu"]))
    with monkeypatch.context() as patched:
        patched.setattr(CATALOGUE["simplify"], "apply", broken)
        failing = Transitions(graph)
        for _ in range(2):
            with pytest.raises(PassFailure, match="no memory left"):
                failing.state(("simplify", "legalize"))
    assert Transitions(graph).state(("simplify",)).key == state_key(parse_spec("simplify").apply(graph))
