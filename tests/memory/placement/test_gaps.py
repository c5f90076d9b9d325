"""Check buffers with parts alive at different times: others lie in their gaps, and nothing is lost."""

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.memory import best_order, plan_arena, share, validate_plan
from passfit.memory.placement.greedy import Box, Part, loads, place_greedily
from passfit.program import Buffer, Port, Program, Step, Tensor

from ...profiles import examples
from ..shared_programs import sharing_programs


def with_gaps(*parts: Part) -> Box:
    return Box(min(p.start for p in parts), max(p.end for p in parts), max(p.upper for p in parts), parts)


@st.composite
def boxes(draw):
    """Generate boxes of one or two parts, which lie side by side."""
    found = []
    for _ in range(draw(st.integers(1, 7))):
        lower, parts = 0, []
        for _ in range(draw(st.integers(1, 2))):
            start, size = draw(st.integers(0, 5)), draw(st.integers(1, 9))
            parts.append(Part(start, start + draw(st.integers(1, 4)), lower, lower + size))
            lower += size
        found.append(with_gaps(*parts))
    return found


@given(boxes())
def test_no_two_parts_meet_and_all_are_no_higher_than_a_tower(boxes):
    found = place_greedily(boxes)
    parts = [(part, low) for box, low in zip(boxes, found.offsets, strict=True) for part in box.parts]
    for number, (one, low) in enumerate(parts):
        for two, other in parts[:number]:
            together = one.start < two.end and two.start < one.end
            assert not together or low + one.upper <= other + two.lower or other + two.upper <= low + one.lower
    assert found.height == max(low + part.upper for part, low in parts)
    assert max(loads(boxes)) <= found.height <= sum(box.size for box in boxes)


def test_a_buffer_lies_in_the_gap_of_another():
    #: the second is alive where the upper part of the first is not yet
    assert place_greedily([with_gaps(Part(0, 3, 0, 2), Part(2, 3, 2, 5)), Box(0, 2, 3)]).height == 5


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
