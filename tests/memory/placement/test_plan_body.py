"""Plan the values of a loop's body: apart where they live at once, in an order that computes the same."""

from hypothesis import given, settings

from passfit.memory import ALIGNMENT, check_order, lifetimes
from passfit.memory.liveness import aligned
from passfit.memory.placement.plan_body import plan_body
from passfit.program import Buffer, Port, Program, Step, Tensor

from ...profiles import examples
from ...strategies import programs


@settings(max_examples=examples(60))
@given(programs())
def test_values_that_live_at_once_are_apart_and_take_no_more_than_their_sum(program):
    plan = plan_body(program)
    found = plan.program
    lives = lifetimes(found)
    dtypes = {tensor.buffer: tensor.dtype for tensor in found.tensors if tensor.nbytes}
    places = [
        (lives[number], dtypes[number], plan.plans[dtypes[number]].offsets[number], buffer.nbytes)
        for number, buffer in enumerate(found.buffers)
        if number in dtypes and lives[number].end > lives[number].start
    ]
    for number, (life, dtype, start, nbytes) in enumerate(places):
        assert start + nbytes <= plan.plans[dtype].arena
        for other, kind, begin, size in places[:number]:
            assert not life.overlaps(other) or dtype != kind or start + nbytes <= begin or begin + size <= start
    assert plan.nbytes <= sum(aligned(buffer.nbytes, ALIGNMENT) for buffer in program.buffers)


@settings(max_examples=examples(60))
@given(programs())
def test_steps_keep_their_dependencies(program):
    steps = [program.steps.index(step) for step in plan_body(program).program.steps]
    check_order(program, tuple(steps))


def _branches(count: int, dtype: str) -> Program:
    """Wide values that are all made before one is read, and sums of each; a state is carried from step to step."""
    tensors = [Tensor((0,), "float32", buffer=0), *(Tensor((shape,), dtype, buffer=1 + n) for n, shape in enumerate([4096, 16] * count))]
    makers = [Step(f"wide{n}", (0,), (1 + 2 * n,)) for n in range(count)]
    readers = [Step(f"sum{n}", (1 + 2 * n,), (2 + 2 * n,)) for n in range(count)]
    last = Step("state", (0, *(2 + 2 * n for n in range(count))), (0,))
    buffers = tuple(Buffer(str(n), tensor.nbytes) for n, tensor in enumerate(tensors))
    state = (Port("state", 0),)
    return Program("body", (*makers, *readers, last), tuple(tensors), buffers, (), state, state)


def test_branches_run_one_after_the_other():
    assert plan_body(_branches(4, "float32")).nbytes == 4 * 4096 + 4 * 64


def test_a_value_lies_in_no_room_of_another_dtype():
    program = Program(
        "body",
        (Step("a", (), (0,)), Step("b", (0,), (1,)), Step("c", (1,), (2,))),
        tuple(Tensor((1024,), dtype, buffer=number) for number, dtype in enumerate(("int8", "float32", "int8"))),
        (Buffer("a", 1024), Buffer("b", 4096), Buffer("c", 1024)), (), (), (Port("c", 2),),
    )  # fmt: skip
    plan = plan_body(program)
    assert {dtype: each.arena for dtype, each in plan.plans.items()} == {"float32": 4096, "int8": 1024}
    assert plan.offset(0) == plan.offset(2) == 0
