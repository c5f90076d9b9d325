"""Laws of refinement steps: none is worse than the one before, and its passes replay to its arena."""

from functools import cache

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

pytest.importorskip("tvm")

from tvm.error import InternalError

from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.imported_model import port_names
from passfit.frontend.relax.to_relax import to_relax
from passfit.kernels.rewrite import stream_region
from passfit.memory import plan_arena
from passfit.passes.sequence.replay import replay
from passfit.passes.sequence.sequence import TVM_DEFAULT, Sequence
from passfit.search.search import SearchResult, search
from passfit.targets import get_target

from ...models import model_of

pytestmark = pytest.mark.tvm
TARGET = get_target("x86-64")
#: what is run again for the gated network: 16·2·9 of 16·2·9 + 4·16·9 products for each pixel, among smaller things
LEAST, MOST = 0.3, 0.34


def gated() -> onnx.ModelProto:
    """A large tensor that is needed for its means, and once more when they are known; all the rest is small."""
    random = np.random.default_rng(0)
    shapes = {"w": (16, 2, 3, 3), "v": (4, 16, 3, 3)}
    weights = [numpy_helper.from_array(random.normal(0, 0.2, s).astype(np.float32), name) for name, s in shapes.items()]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["wide"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["wide"], ["means"]),
        helper.make_node("Sigmoid", ["means"], ["gate"]),
        helper.make_node("Mul", ["wide", "gate"], ["gated"]),
        helper.make_node("Conv", ["gated", "v"], ["narrow"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["narrow"], ["y"]),
    ]
    return canonicalize(model_of(nodes, {"x": [1, 2, 32, 32]}, ["y"], weights))


@cache
def found(extra_compute: float | None) -> SearchResult:
    model = gated()
    return search(to_relax(model), "gated", TARGET, *port_names(model), extra_compute=extra_compute)


def arenas(result: SearchResult) -> dict[str, int]:
    return {each.lever: each.arena for each in result.levers}


@pytest.mark.parametrize("limit", [None, 0.0, 0.5])
def test_no_lever_raises_the_arena_and_each_replays_to_its_own(limit):
    model, result = gated(), found(limit)
    falling = list(arenas(result).values())
    assert falling == sorted(falling, reverse=True)
    chosen = [each for each in result.levers if each.lever != "next"][-1]
    assert chosen.arena == result.best.arena and chosen.extra_compute == result.extra_compute
    modules = result.sequence.specs[: -len(chosen.passes)]
    for lever in result.levers:
        lowered, _ = replay(Sequence.parse([*modules, *lever.passes]), to_relax(model), model, "gated", TARGET.machine)
        assert plan_arena(lowered.program, TARGET.alignment).arena == lever.arena


def test_the_trajectory_ends_with_the_ram_that_is_reported():
    """MLflow shows its end as search/best_ram_kib, beside ram_kib."""
    result = found(1.0)
    *searched, last = result.trajectory
    assert last == {"evaluation": result.evaluations + 1, "ram": result.best.ram}
    assert last["ram"] < searched[-1]["ram"], "the levers give something here"


def test_whole_kernels_stay_whole():
    result = found(None)
    assert list(arenas(result)) == ["given", "order", "share"] and result.next
    assert not any("split" in spec or "rematerialise" in spec for spec in result.sequence.specs)


def test_what_is_run_again_is_within_the_limit_and_lowers_the_arena():
    none, some = found(0.0), found(0.5)
    assert none.extra_compute == 0.0 and "next" not in arenas(none) and none.next
    # each search takes the state its own levers bring lowest
    assert arenas(some)["repeat"] < arenas(none)["repeat"] <= arenas(some)["split"]
    assert LEAST < some.extra_compute < MOST
    assert "next" not in arenas(some) and "50%" in some.next  # steps that move cost nothing: the limit excluded none


def test_where_nothing_within_the_limit_helps_twice_the_limit_is_tried():
    result = found(0.2)
    assert result.extra_compute == 0.0 and not result.next
    further = result.levers[-1]
    assert further.lever == "next" and LEAST < further.extra_compute < MOST and further.arena < result.best.arena


def test_twice_the_limit_is_not_tried_where_little_of_it_is_used():
    result = found(1.0)
    assert LEAST < result.extra_compute < MOST
    assert "next" not in arenas(result) and "100%" in result.next


def test_a_split_that_fails_is_a_recorded_failure(monkeypatch):
    def broken(*_: object) -> None:
        raise InternalError("no such window")

    monkeypatch.setattr(stream_region, "stream_region", broken)
    model = ladder()
    result = search(to_relax(model), "ladder", TARGET, *port_names(model), extra_compute=0.0)
    assert any("split-" in specs and "no such window" in why for specs, why in result.failures.items())
    assert arenas(result)["split"] == arenas(result)["share"] == result.best.arena


def test_what_was_tried_is_what_it_says_and_rungs_lie_between_whole_kernels_and_all_splits():
    model = ladder()
    result = search(to_relax(model), "ladder", TARGET, *port_names(model), rungs=(0.1, 0.5))
    for lever, evaluation, _ in result.tried:
        lowered, _ = replay(evaluation.sequence, to_relax(model), model, "ladder", TARGET.machine)
        assert plan_arena(lowered.program, TARGET.alignment).arena == evaluation.footprint.arena, lever
    assert result.tried[0].lever == "tvm-default" and result.tried[0].evaluation.sequence.specs[:3] == TVM_DEFAULT
    arena = {lever: evaluation.footprint.arena for lever, evaluation, _ in result.tried}
    rungs = [evaluation for lever, evaluation, _ in result.tried if lever == "rung"]
    assert rungs and all(arena["split"] < each.footprint.arena < arena["share"] for each in rungs)
    assert result.best.arena == arena.get("grow", arena["split"])


def test_without_rungs_none_is_tried():
    assert not {"tvm-default", "rung"} & {each.lever for each in found(0.0).tried}


def ladder() -> onnx.ModelProto:
    """Two wide tensors of different size, each between narrow ones, and only narrow ones in the middle."""
    random = np.random.default_rng(0)
    nodes, weights = [], []

    def conv(x: str, taken: int, given: int, y: str, stride: int = 1) -> None:
        values = random.normal(0, 0.2, (given, taken, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"w{y}"))
        nodes.append(helper.make_node("Conv", [x, f"w{y}"], [y], pads=[1] * 4, strides=[stride] * 2))

    conv("x", 1, 12, "a")
    conv("a", 12, 2, "b", 2)
    conv("b", 2, 24, "c")
    conv("c", 24, 1, "y", 2)
    return canonicalize(model_of(nodes, {"x": [1, 1, 32, 32]}, ["y"], weights))
