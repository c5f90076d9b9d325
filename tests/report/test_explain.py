from dataclasses import replace

from hypothesis import given
from rich.console import Console

from passfit.graph import Buffer, Port, Program, Step, Tensor
from passfit.memory import plan_arena
from passfit.report.explain import explain
from passfit.report.tables import explanation_table

from ..strategies import chain, programs


def shown(explanation) -> str:
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(explanation_table(explanation))
    return console.export_text()


@given(programs())
def test_every_program_can_be_explained(program):
    plan = plan_arena(program)
    explanation = explain(program, plan)
    assert (explanation.arena, explanation.bound, explanation.floor) == (plan.arena, plan.bound, plan.floor)
    assert sum(-(-buffer.nbytes // 64) * 64 for buffer in explanation.alive) == explanation.alive_bytes
    if plan.proved:
        assert explanation.alive_bytes == plan.bound
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


def test_names_are_shown_as_they_are():
    program = chain(64, 64)
    program = replace(program, buffers=(Buffer("[bold]x[/]", 64), program.buffers[1]))
    assert "[bold]x[/]" in shown(explain(program, plan_arena(program)))
