import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given

from passfit.errors import ConfigError
from passfit.memory import plan_arena
from passfit.program import Buffer, Port, Program, Step, Tensor
from passfit.report.arena.explain import explain
from passfit.report.arena.explanation_table import explanation_table
from passfit.report.levers import LeversFound, read_levers, read_search
from passfit.search.refine.lever import Lever

from ...strategies import chain, programs
from ..rendered import rendered


def shown(explanation) -> str:
    return rendered(explanation_table(explanation))


@given(programs())
def test_every_program_can_be_explained(program):
    plan = plan_arena(program)
    explanation = explain(program, plan)
    assert (explanation.arena, explanation.bound, explanation.floor) == (plan.arena, plan.bound, plan.floor)
    assert sum(-(-buffer.nbytes // 64) * 64 for buffer in explanation.alive) == explanation.live_bytes
    if plan.proved:
        assert explanation.live_bytes == plan.bound
    assert shown(explanation)


def test_the_buffers_at_the_peak_come_with_their_kernels_and_nodes():
    program = chain(64, 640, 1280, 64)
    found = explain(program, plan_arena(program))
    assert (found.peak.step, found.peak.kernel, found.peak.nodes, found.peak.nbytes) == (1, "k1", ("node1",), 1920)
    large, small = found.alive
    assert (large.name, large.producer, large.nodes, large.needed_by) == ("b2", "k1", ("node1",), "k2")
    assert (small.name, small.start, small.end, small.role) == ("b1", 0, 2, "result")
    assert found.lever == "kernel"
    assert "node1" in shown(found)


def test_an_input_comes_from_the_caller_and_an_output_goes_there():
    program = chain(128, 64)
    found = explain(program, plan_arena(program))
    assert [(b.role, b.producer, b.needed_by) for b in found.alive] == [("input", None, "k0"), ("output", "k0", None)]


def waiting() -> Program:
    """A result that waits while two others are computed: more is alive than any kernel works on."""
    return Program(
        name="waiting",
        steps=(Step("a", (0,), (1,)), Step("b", (0,), (2,)), Step("c", (2,), (3,)), Step("d", (1, 3), (4,))),
        tensors=tuple(Tensor((640,), "uint8", buffer=i) for i in range(5)),
        buffers=tuple(Buffer(f"b{i}", 640) for i in range(5)),
        weights=(),
        inputs=(Port("x", 0),),
        outputs=(Port("y", 4),),
    )


def test_the_lever_is_what_holds_the_arena_up():
    wide = plan_arena(waiting())
    assert wide.bound == wide.floor == 1920
    assert explain(waiting(), wide).lever == "kernel"
    thin = replace(waiting(), steps=(*waiting().steps[:3], Step("d", (3,), (4,)), Step("e", (1,), (4,))))
    assert explain(thin, plan_arena(thin)).lever == "order"
    loose = replace(wide, arena=wide.arena + 64, proved=False)
    assert explain(waiting(), loose).lever == "planner"


def test_the_ports_alone_may_take_all_of_it():
    program = chain(64, 1280)
    grown = replace(program, steps=(replace(program.steps[0], reads=()),), inputs=())
    found = explain(grown, plan_arena(grown))
    assert (found.lever, found.ports, found.arena) == ("ports", 1280, 1280)
    assert len(found.advice) == 1 and "nothing can lower it" in found.advice[0]


def region() -> Program:
    """Two steps run as one: an operand, a result, and a ring that nobody reads."""
    program = chain(640, 640)
    ring = (*program.tensors, Tensor((128,), "uint8", buffer=2))
    step = Step("streamed_k0", (0,), (1, 2), ("node0", "node1", "node2"))
    return replace(program, steps=(step,), tensors=ring, buffers=(*program.buffers, Buffer("b2", 128)))


def test_what_a_region_holds_is_told_by_its_rings_and_what_is_whole():
    found = explain(region(), plan_arena(region()))
    assert (found.floor_at.region, found.floor_at.nbytes, found.floor_at.rings) == (True, 1408, 128)
    assert [(each.name, each.role) for each in found.alive] == [("b0", "input"), ("b1", "output"), ("b2", "ring")]
    text = shown(found)
    for said in (
        "ring of k00 k region",
        "128 B are rows kept",
        "1.2 KiB are what goes in and comes out",
        "node0 … node2 (3 nodes)",
    ):
        assert said in text


def test_wide_has_whole_names_and_every_node():
    table = explanation_table(explain(region(), plan_arena(region())), wide=True)
    text = rendered(table)
    assert "ring of k00 streamed_k0" in text and "node0, node1, node2" in text


def test_a_result_nobody_reads_is_no_ring_where_one_kernel_makes_it():
    program = replace(region(), steps=(replace(region().steps[0], kernel="k0"),))
    assert [each.role for each in explain(program, plan_arena(program)).alive] == ["input", "output", "result"]


def told(arena: int, *levers: tuple[str, int, float], reason: str = "") -> str:
    """What is said of chain(640, 640), whose arena is `arena`, after a search that found this."""
    program = chain(640, 640)
    found = LeversFound(tuple(Lever(*each, (f"passes-of-{each[0]}",)) for each in levers), reason)
    plan = plan_arena(program)
    assert plan.arena == arena
    return " ".join(shown(explain(program, plan, levers=found)).split())


def test_what_the_levers_gave_and_why_no_more_was_tried():
    levers = [("given", 4096, 0.0), ("split", 2048, 0.0), ("repeat", 1280, 0.2)]
    less = told(1280, *levers, ("next", 1024, 0.4))
    assert "4.0 KiB" in less and "20.0 %" in less
    assert "40.0 %" in less
    assert "not tried: nothing may be run again." in told(1280, *levers, reason="nothing may be run again")


def test_without_a_search_what_splits_would_give_is_not_known():
    program = chain(640, 640)
    assert "no search.json" in shown(explain(program, plan_arena(program)))


def test_levers_are_those_of_the_plan_or_none(tmp_path):
    path = tmp_path / "search.json"
    assert read_levers(path, 1280) is None
    path.write_text(json.dumps({"levers": [asdict(Lever("share", 1280, 0.0, ("share",)))], "closed": True}))
    assert read_levers(path, 1280).chosen.passes == ("share",)
    assert read_levers(path, 640) is None
    path.write_text("{}")
    assert read_levers(path, 1280) is None
    path.write_text('{"levers": [1]}')
    with pytest.raises(ConfigError, match="search.json"):
        read_levers(path, 1280)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ablation": [{"spec": "x"}]}, "ablation.0.ram is missing"),
        ({"tradeoff": {"points": "many"}}, "tradeoff"),
        (
            {"tradeoff": {"objective": "ram", "ram": 1, "flash": 1, "points": [], "chosen": 4, "within": True}},
            "tradeoff.chosen",
        ),
        ({"closed": 1}, "closed should be a valid boolean"),
    ],
)
def test_a_malformed_search_is_refused_by_its_field(tmp_path, change, said):
    (path := tmp_path / "search.json").write_text(json.dumps({"levers": [], "next": "", "later": 3} | change))
    with pytest.raises(ConfigError, match=said):
        read_search(path)


def test_names_are_shown_as_they_are():
    program = chain(64, 64)
    program = replace(program, buffers=(Buffer("[bold]x[/]", 64), program.buffers[1]))
    assert "[bold]x[/]" in shown(explain(program, plan_arena(program)))
