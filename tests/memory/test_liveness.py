from hypothesis import given
from hypothesis import strategies as st

from passfit.memory import Lifetime, bound, floor, lifetimes, live_bytes
from passfit.program import Buffer, Port, Program, Step, Tensor, Weight

from ..strategies import chain, programs
from . import brute_force


def test_a_chain_keeps_two_buffers_alive():
    program = chain(100, 200, 300)
    assert lifetimes(program) == (Lifetime(0, 1), Lifetime(0, 2), Lifetime(1, 2))
    assert live_bytes(program) == [300, 500]
    assert bound(program, alignment=1) == floor(program, alignment=1) == 500
    assert bound(program, alignment=64) == 256 + 320


def test_without_steps_the_inputs_are_alive_once():
    program = Program(
        name="identity",
        steps=(),
        tensors=(Tensor((10,), "uint8", buffer=0), Tensor((7,), "uint8", buffer=1), Tensor((1,), "int8", weight=0)),
        buffers=(Buffer("x", 10), Buffer("unread", 7)),
        weights=(Weight("w", 1, "0" * 64),),
        inputs=(Port("x", 0), Port("unread", 1)),
        outputs=(Port("y", 0), Port("z", 2)),
    )
    assert lifetimes(program) == (Lifetime(0, 1), Lifetime(0, 1))
    assert live_bytes(program) == [17]
    assert floor(program) == 0


def test_a_view_an_unread_input_and_an_unread_result():
    program = Program(
        name="odd",
        steps=(Step("a", (0,), (2,)), Step("b", (3,), (4,)), Step("c", (3,), (5,))),
        tensors=(
            Tensor((8,), "uint8", buffer=0),
            Tensor((8,), "uint8", buffer=1),
            Tensor((8,), "uint8", buffer=2),
            Tensor((2, 4), "uint8", buffer=2),
            Tensor((8,), "uint8", buffer=3),
            Tensor((8,), "uint8", buffer=4),
        ),
        buffers=tuple(Buffer(name, 8) for name in ("x", "unread", "viewed", "dropped", "y")),
        weights=(),
        inputs=(Port("x", 0), Port("unread", 1)),
        outputs=(Port("y", 5), Port("x again", 0)),
    )
    assert lifetimes(program) == (
        Lifetime(0, 3),  # handed out as well, so it must last
        Lifetime(0, 1),  # the caller writes it all the same
        Lifetime(0, 3),  # read through its view
        Lifetime(1, 2),  # written, though nobody reads it
        Lifetime(2, 3),
    )


@given(programs(), st.sampled_from([1, 64]))
def test_the_bound_is_the_largest_sum_and_not_below_the_floor(program, alignment):
    assert bound(program, alignment=alignment) == brute_force.peak(program, alignment)
    assert bound(program, alignment=alignment) >= floor(program, alignment)


@given(programs())
def test_every_buffer_is_alive_at_each_step_that_touches_it(program):
    lives = lifetimes(program)
    for number, step in enumerate(program.steps):
        for buffer in program.buffers_of(step.reads + step.writes):
            assert lives[buffer].start <= number < lives[buffer].end
