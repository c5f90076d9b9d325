"""Alternatives to the least ram: splits as fine as the time allows, and the least ram itself where it does not count."""

from functools import cache

import numpy as np
import pytest
from onnx import helper
from onnx.shape_inference import infer_shapes

pytest.importorskip("tvm")

from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.search.effort import Effort
from passfit.search.refine import alternatives
from passfit.search.search import SearchResult, search
from passfit.search.settings import RAM, Aim
from passfit.search.tradeoff import CostPoint
from passfit.targets import get_target

from ...models import NodeBuilder, model_of

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")
HUGE = 1 << 40


@cache
def found(slowdown: float | None, ram: int = HUGE) -> SearchResult:
    """Search for the least ram of two products with a wide middle: by rows, each reads all weights again."""
    net = NodeBuilder()
    x = net.node("Relu", net.node("MatMul", "x", net.weight(128, 1024)))
    model = canonicalize(net.model([1, 16, 128], net.node("MatMul", x, net.weight(1024, 128))))
    aim = None if slowdown is None else Aim(RAM, ram, HUGE, slowdown)
    return search(to_relax(model), "wide", TARGET, *port_names(model), strategy="tvm-default", aim=aim)


@pytest.mark.parametrize("slowdown", [1.0, 1.05, 1.25])
def test_the_least_ram_is_within_the_time_allowed(slowdown):
    tradeoff = found(slowdown).tradeoff
    chosen = tradeoff.points[tradeoff.chosen]
    assert chosen.cycles <= slowdown * tradeoff.whole
    assert chosen.ram == min(each.ram for each in tradeoff.points if each.cycles <= slowdown * tradeoff.whole)
    assert found(slowdown).best.ram == chosen.ram >= found(None).best.ram
    assert found(slowdown).levers[-1].arena == found(slowdown).best.arena


def test_more_time_never_takes_more_ram():
    rams = [found(each).best.ram for each in (1.0, 1.05, 1.25, 1000.0)]
    assert rams == sorted(rams, reverse=True) and rams[-1] < rams[0]


def test_a_limit_that_nothing_reaches_gives_the_least_ram_at_any_price():
    limited, free = found(1000.0), found(None)
    assert limited.sequence == free.sequence and limited.levers == free.levers and limited.closed == free.closed


def test_the_fastest_plan_of_a_recurrent_layer_reads_the_weights_of_its_input_rarely():
    """Its weights, 1.5 MiB, are beyond the second cache: each step would read all of them again."""
    units, steps = 256, 20
    random = np.random.default_rng(0)
    weights = {name: (random.standard_normal((1, 3 * units, units)) / 16).astype(np.float32) for name in "wr"}
    layer = helper.make_node("GRU", ["x", "w", "r"], ["y", ""], hidden_size=units)
    model = canonicalize(infer_shapes(model_of([layer], {"x": [steps, 1, units]}, ["y"], weights)))
    graph, ports = to_relax(model), port_names(model)
    result = search(graph, "gru", TARGET, *ports, strategy="tvm-default", aim=Aim(RAM, HUGE, HUGE, 1.0))
    assert any(spec.startswith("distribute-loops") for spec in result.sequence.specs)
    (least,) = (point for point in result.tradeoff.points if not any("distribute" in each for each in point.passes))
    assert result.tradeoff.whole < 0.7 * least.cycles and least.ram <= result.best.ram


def test_a_plan_that_fits_is_preferred_to_a_quick_one():
    least = found(None).best.ram
    result = found(1.0, least)
    assert result.best.ram <= least and result.tradeoff.within
    chosen = result.tradeoff.points[result.tradeoff.chosen]
    assert chosen.cycles > result.tradeoff.whole


def test_splits_within_the_time_repeat_what_the_least_ram_repeats():
    """A cheap wide value is read early, and late, behind products whose rows read all weights again."""
    net = NodeBuilder()
    wide = net.node("MatMul", "x", net.weight(32, 512))
    middle = net.node("Relu", net.node("MatMul", wide, net.weight(512, 2048)))
    narrow = net.node("Reshape", net.node("MatMul", middle, net.weight(2048, 8)), net.constant(np.array([1, 1, 128])))
    late = net.node("Add", net.node("MatMul", narrow, net.weight(128, 512)), wide)
    model = canonicalize(net.model([1, 16, 32], net.node("MatMul", late, net.weight(512, 16))))
    aim = Aim(RAM, HUGE, HUGE, 1.05)
    result = search(to_relax(model), "late", TARGET, *port_names(model), strategy="tvm-default", aim=aim)
    points = result.tradeoff.points
    least = min(points, key=lambda point: point.ram)
    assert _repeats(least) and least.cycles > 1.05 * result.tradeoff.whole
    assert any(_repeats(point) and not point.whole and point.cycles < least.cycles for point in points)
    assert any(not _repeats(point) and not point.whole for point in points)  # repeats alone may take too long


def test_a_quick_state_is_split_even_when_the_work_is_used_up(monkeypatch):
    net = NodeBuilder()
    x = net.node("Sigmoid", net.node("Add", net.node("MatMul", "x", net.weight(128, 1024)), net.weight(1024)))
    model = canonicalize(net.model([1, 16, 128], net.node("Relu", net.node("MatMul", x, net.weight(1024, 128)))))
    tried = []
    finest_within = alternatives._finest_within

    def recorded(evaluator, splitter, state, *others):
        tried.append(state.key)
        return finest_within(evaluator, splitter, state, *others)

    over = Effort.over
    monkeypatch.setattr(alternatives, "_finest_within", recorded)
    monkeypatch.setattr(Effort, "over", lambda self, part: part == 1.0 or over(self, part))
    search(to_relax(model), "wide", TARGET, *port_names(model), strategy="greedy", aim=Aim(RAM, HUGE, HUGE, 1.01))
    assert len(set(tried)) == 2  # the winner's own state, too


def _repeats(point: CostPoint) -> bool:
    return any(spec.startswith("rematerialise") for spec in point.passes)
