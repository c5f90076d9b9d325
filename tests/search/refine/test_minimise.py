"""Laws of minimisation: passes removed cost nothing, passes kept are worth something."""

import pytest

pytest.importorskip("tvm")

from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.passes.base import Level
from passfit.passes.sequence.sequence import Sequence
from passfit.search.refine.minimise import minimise
from passfit.search.search import search
from passfit.search.strategies.trace import Limits
from passfit.targets import get_target

from ...models import model_of
from ..test_search import TARGET, evaluator, network, parsed

pytestmark = pytest.mark.tvm


def test_no_pass_can_be_left_out_of_what_is_left():
    tried = evaluator(network(["conv", "bn", "Relu", "residual", "pool"]))
    idle = parsed("eliminate-common-subexpr", "decompose-ops-for-inference", "adjust-matmul-order")
    long = tried.evaluate((*idle, *parsed("legalize", "fold-constant", "fuse-operators")))
    short, ablation = minimise(tried, long)
    assert short.cost <= long.cost and len(short.passes) < len(long.passes)
    assert "adjust-matmul-order" not in short.sequence.specs
    optional = [each for each in short.passes[:-1] if each.level_after(Level.GRAPH) == Level.GRAPH]
    assert [worth.spec for worth in ablation] == [each.spec for each in optional]
    for worth in ablation:
        costs = (worth.ram, worth.weights, worth.kernels)
        assert None in costs or costs > (0, 0, 0)


def test_a_lossy_winner_is_taken_only_if_nobody_refuses_it():
    model = network(["conv", "Relu", "conv", "Sigmoid", "conv"], side=16)
    module, ports = to_relax(model), port_names(model)
    # with splits, exact kernels need little more than the input alone
    whole = {"limits": Limits(evaluations=60), "extra_compute": None}
    exact = search(module, "m", TARGET, *ports, **whole)
    lossy = search(module, "m", TARGET, *ports, **whole, lossy=True)
    refused = search(module, "m", TARGET, *ports, **whole, lossy=True, refuse=lambda sequence: "too far off")
    assert not exact.sequence.lossy and lossy.sequence.lossy
    assert lossy.best.ram < exact.best.ram
    assert not refused.sequence.lossy and refused.best == exact.best
    assert refused.rejected["; ".join(lossy.sequence.specs)] == "too far off"


def test_a_strategy_that_does_not_exist_is_refused_with_the_nearest():
    from passfit.errors import ConfigError

    model = network(["Relu"])
    with pytest.raises(ConfigError, match="orchestrated"):
        search(to_relax(model), "m", get_target("x86-64"), *port_names(model), strategy="orchestrate")


def test_a_model_whose_import_makes_kernels_keeps_legalize():
    """A sequence without it cannot be replayed; TVM imports Tile as a kernel, so that it changes nothing here."""
    import numpy as np
    from onnx import helper

    tile = helper.make_node("Tile", ["x", "n"], ["y"], name="t")
    model = model_of([tile], {"x": (2, 2)}, {"y": (8, 2)}, {"n": np.array([4, 1])})
    found = search(to_relax(model), "m", TARGET, *port_names(model), limits=Limits(evaluations=4))
    assert Sequence.parse(found.sequence.specs) == found.sequence
