"""Search by architecture: the family's actions and untried ones only, never worse than TVM's default."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

from dataclasses import replace

from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.passes.base import Level
from passfit.passes.sequence.sequence import specs_of
from passfit.search.evaluate.candidates import CLEAN_UP, TAILS, actions, clean
from passfit.search.evaluate.evaluation import Evaluator
from passfit.search.knowledge import Knowledge, load_knowledge
from passfit.search.knowledge.explore import explore
from passfit.search.knowledge.idle_tails import idle_tails
from passfit.search.knowledge.record import KnownSequence
from passfit.search.learn import known_sequence
from passfit.search.search import search
from passfit.search.strategies.by_architecture import REFINED, by_architecture
from passfit.search.strategies.trace import Limits, Trace
from passfit.targets import get_target

from ..test_search import network

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")
BLOCKS = ["conv", "bn", "Relu", "conv", "bn", "pool"]
FOLDED = KnownSequence(("fold-batchnorm-to-conv2d",), specs_of(TAILS[0]))
POOLED = KnownSequence((), specs_of(TAILS[1]))


def evaluator(blocks=BLOCKS):
    model = network(blocks)
    return Evaluator(to_relax(model), "m", TARGET, *port_names(model))


@pytest.fixture(scope="module")
def plain():
    """Three records of plain networks, whose best has a folded batch norm, or fusion into poolings."""
    record = explore(evaluator(), "plain")
    assert record.family == "plain" and set(record.passes) == set(specs_of(actions()))
    return tuple(
        replace(record, digest=digest, refined=best) for digest, best in (("a", FOLDED), ("b", POOLED), ("c", FOLDED))
    )


def tried(knowledge, passes=None, blocks=BLOCKS):
    """Return the trace of a search, and the sequences it evaluated, by spec."""
    asked = []
    one = evaluator(blocks)
    evaluate_all = one.evaluate_all
    one.evaluate_all = lambda sequences, *rest: evaluate_all(
        (asked.append(specs_of(each)) or each for each in sequences), *rest
    )
    trace = Trace(Limits(), one, knowledge, passes or actions())
    by_architecture(trace, 0)
    return trace, asked


def test_only_the_familys_passes_are_tried(plain):
    trace, asked = tried(Knowledge(plain))
    assert trace.family == "plain"
    graph = {spec for specs in asked for spec in specs if spec in specs_of(actions())}
    assert graph == {"fold-batchnorm-to-conv2d", CLEAN_UP[0].spec}


def test_tails_follow_the_best_graph_alone(plain):
    """Fold batch norms, then fuse into poolings: few models had the tail, and none had both."""
    trace, asked = tried(Knowledge(tuple(replace(each, refined=POOLED) for each in plain[:2]) + plain * 2))
    others = {specs for specs in asked if specs[-len(TAILS[0]) :] != specs_of(TAILS[0])}
    assert {specs[-len(POOLED.tail) :] for specs in others} == {POOLED.tail}
    assert {specs[: specs.index("legalize")] for specs in others} == {specs_of(clean(trace.best_candidate.prefix))}
    assert trace.best_candidate.prefix


def test_idle_tails_are_left_out(plain):
    _, asked = tried(Knowledge(plain))
    assert {specs[specs.index("legalize") :] for specs in asked} == set(map(specs_of, TAILS)) - idle_tails(plain, "ram")


def test_few_states_are_refined_the_first_one_among_them():
    trace, _ = tried(Knowledge())
    every = sorted((each for states in trace.states.values() for each in states.values()), key=lambda one: one.score)
    first = trace.evaluator.evaluate(TAILS[0]).key
    (finalists,) = trace.finalists()
    keys = [each.key for each in finalists]
    assert len(every) > REFINED >= len(keys) and first in keys
    assert [key for key in keys if key != first] == [each.key for each in every if each.key != first][: len(keys) - 1]


def test_a_pass_and_a_tail_that_no_model_has_tried_are_tried(plain):
    older = [replace(each, passes=each.passes[:-3], tails=each.tails[:-1]) for each in plain]
    older = [
        replace(each, states=tuple(replace(state, outcomes=state.outcomes[:-1]) for state in each.states))
        for each in older
    ]
    _, asked = tried(Knowledge(tuple(older)))
    used = {spec for specs in asked for spec in specs}
    assert set(plain[0].passes[-3:]) <= used
    assert any(specs[-len(TAILS[-1]) :] == specs_of(TAILS[-1]) for specs in asked)
    assert "adjust-matmul-order" in plain[0].passes[:-3] and "adjust-matmul-order" not in used


def test_without_knowledge_every_pass_and_tail_is_tried():
    trace, asked = tried(Knowledge())
    assert {spec for specs in asked for spec in specs} >= {
        *specs_of(actions()),
        *(spec for tail in TAILS for spec in specs_of(tail)),
    }
    assert not trace.closed


def test_passes_that_are_not_allowed_stay_out(plain):
    _, asked = tried(Knowledge(plain), tuple(each for each in actions() if each.name != "fold-batchnorm-to-conv2d"))
    assert not any("fold-batchnorm-to-conv2d" in specs for specs in asked)


def test_known_passes_lead_to_a_few_states():
    trace, _ = tried(load_knowledge(), blocks=[*BLOCKS, "concat", "conv", "residual", "bn"])
    assert trace.evaluator.count <= len(TAILS) + 2, "of one graph, and two by TVM's tail"


def test_the_result_names_the_family_and_is_never_worse_than_the_default():
    model = network([*BLOCKS, "residual"])
    module, ports = to_relax(model), port_names(model)
    found = search(module, "m", TARGET, *ports, strategy="by-architecture", knowledge=load_knowledge())
    assert found.family == "plain" and not found.closed and found.best.ram <= found.baseline.ram
    assert search(module, "m", TARGET, *ports).family == ""


def test_a_minimised_sequence_is_known_by_a_whole_tail():
    model = network(BLOCKS)
    found = search(to_relax(model), "m", TARGET, *port_names(model))
    known = known_sequence(evaluator(), found.sequence)
    assert known.tail in map(specs_of, TAILS) and not set(known.prefix) & set(specs_of(CLEAN_UP[1:]))
    parsed = [each for each in found.sequence.passes if each.spec in (*known.prefix, *known.tail)]
    assert [each.spec for each in parsed if each.spec in known.prefix] == list(known.prefix)


def test_idle_passes_are_removed_without_measuring_the_worth_of_the_others():
    model = network(["conv", "bn", "Relu", "pool"])
    module, ports = to_relax(model), port_names(model)
    found = search(module, "m", TARGET, *ports, strategy="by-architecture", knowledge=load_knowledge())
    graph = [each for each in found.sequence.passes if each.levels == {Level.GRAPH} and each.name != "legalize"]
    one = evaluator(["conv", "bn", "Relu", "pool"])
    keys = [one.key(tuple(graph[:end])) for end in range(len(graph) + 1)]
    assert found.ablation == () and len(set(keys)) == len(keys)
