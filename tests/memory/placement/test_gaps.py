"""Check buffers with parts alive at different times: others lie in their gaps, and nothing is lost."""

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.memory import best_order, plan_arena, share, validate_plan
from passfit.memory.placement.gaps import BufferPart, place_with_gaps
from passfit.memory.placement.greedy import Box, Placement, loads
from passfit.program import Buffer, Port, Program, Step, Tensor

from ...profiles import examples
from ..shared_programs import sharing_programs


@st.composite
def shapes(draw):
    """Generate shapes of one or two pieces, which lie side by side."""
    found = []
    for _ in range(draw(st.integers(1, 7))):
        lower, pieces = 0, []
        for _ in range(draw(st.integers(1, 2))):
            start, size = draw(st.integers(0, 5)), draw(st.integers(1, 9))
            pieces.append(BufferPart(start, start + draw(st.integers(1, 4)), lower, lower + size))
            lower += size
        found.append(tuple(pieces))
    return found


def tower(shapes):
    """Stack all shapes on top of each other."""
    offsets, top = [], 0
    for shape in shapes:
        offsets.append(top)
        top += shape[-1].upper
    return Placement(tuple(offsets), top)


@given(shapes())
def test_no_two_pieces_meet_and_it_is_no_higher_than_what_was_known(shapes):
    known = tower(shapes)
    found = place_with_gaps(shapes, known, 0, 4)
    pieces = [(piece, low) for shape, low in zip(shapes, found.offsets, strict=True) for piece in shape]
    for number, (one, low) in enumerate(pieces):
        for two, other in pieces[:number]:
            together = one.start < two.end and two.start < one.end
            assert not together or low + one.upper <= other + two.lower or other + two.upper <= low + one.lower
    assert found.height == max(low + piece.upper for piece, low in pieces) <= known.height
    assert found.height >= max(loads([Box(piece.start, piece.end, piece.upper - piece.lower) for piece, _ in pieces]))


def test_a_buffer_lies_in_the_gap_of_another():
    #: the second is alive where the upper piece of the first is not yet
    shapes = [(BufferPart(0, 3, 0, 2), BufferPart(2, 3, 2, 5)), (BufferPart(0, 2, 0, 3),)]
    assert place_with_gaps(shapes, tower(shapes), 5, 1).height == 5


@settings(max_examples=examples(60))
@given(sharing_programs())
def test_plans_of_programs_that_share_memory_are_valid(program):
    shared = share(program)
    shared = shared.reordered(best_order(shared).order)
    for alignment in (1, 64):
        plan = plan_arena(shared, alignment)
        validate_plan(shared, plan, alignment)
        assert plan.arena >= plan.bound >= plan.floor


def test_a_result_lies_where_the_rest_of_a_concatenation_will_be():
    """`wide` is gone before `right` is written; `left` and `right` are parts of one buffer."""
    tensors = [("x", 0, 64, 0), ("left", 1, 64, 0), ("wide", 2, 640, 0), ("right", 1, 640, 64), ("y", 3, 64, 0)]
    program = Program(
        name="gaps",
        steps=(
            Step("left", (0,), (1,)),
            Step("wide", (0,), (2,)),
            Step("narrow", (2,), (5,)),
            Step("right", (5,), (3,)),
            Step("last", (1, 3), (4,)),
        ),
        tensors=(
            *(Tensor((nbytes,), "uint8", buffer=buffer, offset=offset) for _, buffer, nbytes, offset in tensors),
            Tensor((64,), "uint8", buffer=4),
        ),
        buffers=tuple(Buffer(name, nbytes) for name, nbytes in zip("xlwyn", (64, 704, 640, 64, 64), strict=True)),
        weights=(),
        inputs=(Port("x", 0),),
        outputs=(Port("y", 4),),
    )
    plan = plan_arena(program)
    validate_plan(program, plan, 64)
    assert plan.proved
    assert plan.arena == plan.bound == 64 + 640 + 64
