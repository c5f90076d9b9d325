import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.errors import PlanError
from passfit.memory import best_order, bound, check_order, live_bytes, orders, plan_arena, share, validate_plan
from passfit.memory.order.best_order import beam_order
from passfit.memory.order.step_graph import step_graph
from passfit.program import Buffer, Port, Program, Step, Tensor

from ...profiles import examples
from ...strategies import chain, programs
from .. import brute_force, networks
from ..shared_programs import sharing_programs


def branches(*sizes: int) -> Program:
    """Build branches: per size a step that makes a large buffer and one that shrinks it to 1 byte.

    One step joins all. The branches are given in breadth-first order, so that all large buffers are alive at once.
    """
    large, small = range(1, 1 + len(sizes)), range(1 + len(sizes), 1 + 2 * len(sizes))
    nbytes = (1, *sizes, *(1 for _ in sizes), 1)
    return Program(
        name="branches",
        steps=(
            *(Step(f"grow{b}", (0,), (b,)) for b in large),
            *(Step(f"shrink{s}", (b,), (s,)) for b, s in zip(large, small, strict=True)),
            Step("join", tuple(small), (len(nbytes) - 1,)),
        ),
        tensors=tuple(Tensor((size,), "uint8", buffer=i) for i, size in enumerate(nbytes)),
        buffers=tuple(Buffer(f"b{i}", size) for i, size in enumerate(nbytes)),
        weights=(),
        inputs=(Port("x", 0),),
        outputs=(Port("y", len(nbytes) - 1),),
    )


@given(programs())
def test_every_named_order_respects_the_dependencies(program):
    for _, order in orders(program):
        check_order(program, order)


@given(programs(), st.sampled_from([(), (1,), (4,), (1, 32)]))
def test_the_beam_order_is_legal_and_never_worse_than_given(program, widths):
    schedule = beam_order(program, widths)
    check_order(program, schedule.order)
    reordered = program.reordered(schedule.order)
    assert schedule.peak == bound(reordered) <= bound(program)
    validate_plan(reordered, plan_arena(reordered), 64)


@settings(max_examples=examples(60))
@given(programs(max_steps=5), st.sampled_from([1, 64]))
def test_what_a_beam_calls_optimal_is(program, alignment):
    schedule = beam_order(program, (64,), alignment)
    assert schedule.optimal
    assert schedule.peak == brute_force.least_peak(program, alignment)


@given(st.one_of(programs(max_steps=9), sharing_programs(max_steps=9).map(share)), st.sampled_from([1, 64]))
def test_the_best_order_is_the_best_there_is(program, alignment):
    schedule = best_order(program, alignment=alignment)
    check_order(program, schedule.order)
    assert schedule.optimal
    assert schedule.peak == bound(program.reordered(schedule.order), alignment=alignment)
    assert schedule.peak == brute_force.least_peak(program, alignment)


@given(st.one_of(programs(), sharing_programs().map(share)), st.sampled_from([1, 64]))
def test_what_is_alive_in_an_order_is_what_is_alive_in_the_program_in_that_order(program, alignment):
    graph = step_graph(program, alignment)
    for _, order in orders(program):
        assert graph.alive(order) == live_bytes(program.reordered(order), alignment)


@given(programs())
def test_the_same_program_gets_the_same_order(program):
    assert beam_order(program, (4,)) == beam_order(program, (4,))
    assert best_order(program) == best_order(program)


@pytest.mark.parametrize("kind", networks.KINDS)
@pytest.mark.parametrize("steps", [100, 300])
def test_the_best_order_of_a_large_network_is_never_worse_than_that_of_the_beam(kind, steps):
    program = kind(steps, seed=steps)
    schedule = best_order(program)
    check_order(program, schedule.order)
    assert schedule.peak == bound(program.reordered(schedule.order)) <= beam_order(program).peak


def test_branches_are_run_one_after_the_other():
    program = branches(1000, 2000, 3000)
    assert bound(program, alignment=1) == 1 + 6000
    schedule = best_order(program, alignment=1)
    # The largest runs first: no result of another branch waits beside it.
    assert schedule.peak == 3002
    assert schedule.optimal
    assert dict(orders(program))["depth-first"] == (0, 3, 1, 4, 2, 5, 6)
    assert dict(orders(program))["on-demand"] == (0, 3, 1, 4, 2, 5, 6)


def test_an_order_that_cannot_be_better_stays_as_given():
    assert best_order(chain(64, 128, 64)).order == (0, 1)


def test_two_writers_of_one_buffer_and_its_readers_keep_their_order():
    # Step 2 overwrites what step 1 reads.
    program = Program(
        name="in place",
        steps=(Step("a", (0,), (1,)), Step("b", (1,), (2,)), Step("c", (0,), (1,)), Step("d", (1, 2), (3,))),
        tensors=tuple(Tensor((8,), "uint8", buffer=i) for i in range(4)),
        buffers=tuple(Buffer(f"b{i}", 8) for i in range(4)),
        weights=(),
        inputs=(Port("x", 0),),
        outputs=(Port("y", 3),),
    )
    assert best_order(program).order == (0, 1, 2, 3)
    with pytest.raises(PlanError, match=r"runs step 2 \(c\) before step 1 \(b\)"):
        check_order(program, (0, 2, 1, 3))


@pytest.mark.parametrize("order", [(), (0,), (0, 0), (0, 2), (0, 1, 2)])
def test_what_is_no_permutation_is_refused(order):
    with pytest.raises(PlanError, match="not a permutation of its 2 steps"):
        check_order(chain(1, 1, 1), order)
