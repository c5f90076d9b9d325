"""Passes with more arithmetic: tried on a winner, within the limit, kept if they need less memory."""

from functools import cache

import pytest

pytest.importorskip("tvm")

from benchmarks.zoo.transformer import Transformer
from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.memory import plan_arena
from passfit.passes.program.split import SplitPass, SplitRows
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.search.evaluate.evaluation import Evaluator
from passfit.search.refine.costlier import try_costlier
from passfit.search.refine.levers import Refinement, refine
from passfit.search.refine.splitting import Splitter
from passfit.targets import get_target

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")
TOKENS, WIDTH, HEADS = 16, 32, 4


@cache
def attention():
    """A layer of attention beside its input."""
    net = Transformer("attention")
    x = net.input("x", (1, TOKENS, WIDTH))
    return canonicalize(net.finished({"y": net.add(net.self_attention(x, HEADS), x)}))


@cache
def refined(*prefix: str) -> tuple[Evaluator, Splitter, Refinement]:
    model = attention()
    evaluator = Evaluator(to_relax(model), "attention", TARGET, *port_names(model))
    splitter = Splitter(evaluator)
    found = evaluator.evaluate(tuple(map(parse_spec, (*prefix, *TVM_DEFAULT))))
    return evaluator, splitter, refine(evaluator, splitter, found, 0.25)


def test_late_projections_lower_the_ram_within_the_limit_and_replay_to_it():
    evaluator, splitter, before = refined("split-heads")
    after = try_costlier(evaluator, splitter, before, 0.25)
    assert after.ram < before.ram and 0 < after.extra_compute <= 0.25
    assert "split-heads{late=1}" in after.best.sequence.specs
    assert after.levers == (*before.levers, after.levers[-1]) and after.tried[:-1] == before.tried
    last = after.levers[-1]
    assert (last.lever, last.arena, last.extra_compute) == ("costlier", after.best.footprint.arena, after.extra_compute)
    lowered, _ = replay(after.best.sequence, to_relax(attention()), attention(), "attention", TARGET.machine)
    assert plan_arena(lowered.program, TARGET.alignment).arena == last.arena
    split = [each for each in after.best.passes if isinstance(each, SplitPass)]
    groups = [each.rows if isinstance(each, SplitRows) else each.channels for each in split]
    assert groups and min(groups) > 1


def test_the_limit_rules_out_more_arithmetic():
    evaluator, splitter, before = refined("split-heads")
    assert try_costlier(evaluator, splitter, before, 0.001) is before


def test_a_winner_without_costlier_passes_stays():
    evaluator, splitter, before = refined()
    assert try_costlier(evaluator, splitter, before, 1.0) is before
