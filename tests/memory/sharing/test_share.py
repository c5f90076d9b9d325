from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import PlanError
from passfit.memory import (
    best_order,
    bound,
    check_order,
    orders,
    plan_arena,
    share,
    shared_floor,
    sum_of_tensors,
    validate_plan,
)  # fmt: skip
from passfit.memory.sharing import share as alias
from passfit.program import Buffer, Overlay, Port, Program, Step, Tensor, Weight
from passfit.program.check import first_problem

from .. import brute_force
from ..shared_programs import outputs, sharing_programs

SIZE = 640


@given(sharing_programs(), st.booleans(), st.booleans())
def test_a_shared_program_computes_the_same_in_every_order(program, in_place, copies):
    wanted = outputs(program, plan_arena(program))
    shared = share(program, in_place=in_place, copies=copies)
    assert first_problem(shared) is None
    for order in (*(order for _, order in orders(shared)), best_order(shared).order):
        check_order(shared, order)
        ordered = shared.reordered(order)
        plan = plan_arena(ordered)
        validate_plan(ordered, plan, 64)
        assert outputs(ordered, plan) == wanted


@given(sharing_programs())
def test_sharing_costs_neither_memory_nor_kernels(program):
    shared = share(program)
    assert len(shared.steps) <= len(program.steps)
    assert best(shared) <= best(program)
    assert bound(shared) >= shared_floor(program)
    assert share(program) == shared


@given(sharing_programs())
def test_sharing_leaves_the_tensors_of_the_graph_as_they_are(program):
    assert sum_of_tensors(share(program)) == sum_of_tensors(program)


@given(sharing_programs(max_steps=4))
def test_no_order_of_a_shared_program_is_below_its_floor(program):
    shared = share(program, alignment=1)
    assert brute_force.least_peak(shared, 1) >= shared_floor(program)


@given(sharing_programs(), st.data())
def test_a_tensor_moved_on_its_buffer_is_found_or_harmless(program, data):
    """The validator against the machine: an accepted program computes the same."""
    shared = share(program)
    movable = [n for n, tensor in enumerate(shared.tensors) if tensor.buffer is not None]
    if not movable:
        return
    number = data.draw(st.sampled_from(movable))
    tensor = shared.tensors[number]
    buffer = data.draw(st.sampled_from([t.buffer for t in shared.tensors if t.buffer is not None]))
    moved = replace(tensor, buffer=buffer, offset=data.draw(st.sampled_from([0, 8, 16, 64, tensor.offset])))
    changed = replace(shared, tensors=(*shared.tensors[:number], moved, *shared.tensors[number + 1 :]))
    if first_problem(changed) is not None:
        return
    plan = plan_arena(changed)
    try:
        validate_plan(changed, plan, 64)
    except PlanError:
        return
    assert outputs(changed, plan) == outputs(program, plan_arena(program))


def best(program: Program) -> int:
    return min(bound(program.reordered(order)) for _, order in orders(program))


def small(*steps: Step, sizes: list[int], ends: tuple[int, ...], weights: int = 0) -> Program:
    """Build a program: tensor n has sizes[n] bytes, tensor 0 is the input, the last `weights` ones are weights."""
    count = len(sizes) - weights
    return Program(
        name="small",
        steps=steps,
        tensors=tuple(
            Tensor((size,), "uint8", n if n < count else None, None if n < count else n - count)
            for n, size in enumerate(sizes)
        ),
        buffers=tuple(Buffer(f"b{n}", size) for n, size in enumerate(sizes[:count])),
        weights=tuple(Weight(f"w{n}", size, "") for n, size in enumerate(sizes[count:])),
        inputs=(Port("x", 0),),
        outputs=tuple(Port(f"y{end}", end) for end in ends),
    )


def in_place(read: int = 0) -> tuple[Overlay, ...]:
    return (Overlay(read, 0),)


def concat(*sizes: int) -> tuple[Overlay, ...]:
    return tuple(Overlay(n, 0, sum(sizes[:n])) for n in range(len(sizes)))


def test_a_chain_in_place_needs_one_buffer():
    program = small(
        Step("relu", (0,), (1,), in_place=in_place()),
        Step("exp", (1,), (2,), in_place=in_place()),
        Step("add", (2, 2), (3,), in_place=(Overlay(0, 0), Overlay(1, 0))),
        sizes=[SIZE] * 4,
        ends=(3,),
    )
    assert len(share(program).buffers) == 1
    assert plan_arena(share(program)).arena == SIZE


@pytest.mark.parametrize(
    ("steps", "ends", "why"),
    [
        ([Step("relu", (0,), (1,))], (1,), "the kernel does not allow it"),
        ([Step("relu", (0,), (1,), in_place=in_place())], (1, 0), "the operand is handed out"),
        (
            [Step("relu", (0,), (1,), in_place=in_place()), Step("late", (0, 1), (2,))],
            (2,),
            "the operand is read afterwards",
        ),
        ([Step("add", (0, 0), (1,), in_place=in_place())], (1,), "only one of its two reads allows it"),
        ([Step("two", (0,), (1, 2), in_place=in_place())], (1, 2), "one result has a buffer of its own already"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_still_needed_is_not_overwritten(steps, ends, why):
    program = small(*steps, sizes=[SIZE] * 3, ends=ends)
    shared = share(program)
    assert bound(shared) == bound(program) - (SIZE if why.startswith("one result") else 0)
    validate_plan(shared, plan_arena(shared), 64)


def test_an_operand_in_a_weight_stays_there():
    program = small(Step("add", (0, 2), (1,), in_place=in_place(1)), sizes=[SIZE] * 3, ends=(1,), weights=1)
    assert share(program) == program


def joined(*tail: Step, reads: tuple[int, int] = (1, 2), **options) -> Program:
    """Build two branches of 640 and 1280 bytes, put together by step 2."""
    steps = (
        Step("left", (0,), (1,)),
        Step("right", (0,), (2,)),
        Step("concat", reads, (3,), in_place=concat(640, 1280), copies=concat(640, 1280)),
        *tail,
    )
    return small(*steps, **({"sizes": [64, 640, 1280, 1920, 64], "ends": (4,)} | options))


def test_parts_of_a_concatenation_are_written_where_it_has_them():
    program = joined(Step("last", (3,), (4,)))
    shared = share(program)
    assert [step.kernel for step in shared.steps] == ["left", "right", "last"]
    assert [(shared.tensors[n].buffer, shared.tensors[n].offset) for n in (1, 2, 3)] == [(1, 0), (1, 640), (1, 0)]
    assert bound(program), bound(shared) == (3840, 1984)


def test_the_parts_can_be_made_in_any_order():
    shared = share(joined(Step("last", (3,), (4,))))
    check_order(shared, (1, 0, 2))
    with pytest.raises(PlanError, match="on which it depends"):
        check_order(shared, (0, 2, 1))


def test_of_two_concatenations_one_operand_is_part_of_one_only():
    program = joined(
        Step("again", (1, 3), (4,), copies=concat(640, 1920)),
        Step("last", (3, 4), (5,)),
        sizes=[64, 640, 1280, 1920, 2560, 64],
        ends=(5,),
    )
    shared = share(program)
    assert [step.kernel for step in shared.steps] == ["left", "right", "concat", "last"], "the larger one goes"


def test_work_that_is_used_up_leaves_a_program_that_is_right(monkeypatch):
    program = joined(Step("last", (3,), (4,)))
    monkeypatch.setattr(alias, "WORK", 0)
    assert share(program) == program


def test_the_same_operand_twice_is_copied():
    overlays = concat(640, 640)
    program = small(
        Step("left", (0,), (1,)), Step("twice", (1, 1), (2,), copies=overlays), sizes=[64, 640, 1280], ends=(2,)
    )
    assert len(share(program).steps) == 2


def test_a_concatenation_whose_early_part_waits_for_the_rest_keeps_no_more_than_that_alive():
    """The left part is small and early; between it and the rest a wide kernel runs, which sets the peak."""
    program = small(
        Step("left", (0,), (1,)),
        Step("grow", (1,), (2,)),
        Step("wide", (2,), (3,)),
        Step("shrink", (1, 3), (4,)),
        Step("concat", (1, 4), (5,), copies=concat(64, 6400)),
        Step("last", (5,), (6,)),
        sizes=[64, 64, 6400, 6400, 6400, 6464, 64],
        ends=(6,),
    )
    shared = share(program)
    assert best(shared) == 64 + 6400 + 6400 < best(program)
    assert "concat" not in [step.kernel for step in shared.steps]
    plan = plan_arena(shared)
    validate_plan(shared, plan, 64)
    assert plan.arena == plan.bound == best(shared)


def test_parts_of_a_split_are_windows_on_it():
    halves = (Overlay(0, 0, 0), Overlay(0, 1, -320))
    program = small(
        Step("first", (0,), (1,)),
        Step("split", (1,), (2, 3), copies=halves),
        Step("last", (2, 3), (4,)),
        sizes=[64, 640, 320, 320, 64],
        ends=(4,),
    )
    shared = share(program)
    assert [step.kernel for step in shared.steps] == ["first", "last"]
    assert [shared.tensors[n].offset for n in (1, 2, 3)] == [0, 0, 320]


def test_a_window_is_not_overwritten_while_the_whole_is_read():
    program = small(
        Step("slice", (0,), (1,), copies=(Overlay(0, 0, -320),)),
        Step("relu", (1,), (2,), in_place=in_place()),
        Step("last", (0, 2), (3,)),
        sizes=[640, 320, 320, 64],
        ends=(3,),
    )
    shared = share(program)
    plan = plan_arena(shared)
    validate_plan(shared, plan, 64)
    assert outputs(shared, plan) == outputs(program, plan_arena(program))
    assert [step.kernel for step in shared.steps] == ["relu", "last"] and len(shared.buffers) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: replace(p, steps=(replace(p.steps[0], in_place=()),)), "over 'b1', which it still reads"),
        (lambda p: replace(p, outputs=(*p.outputs, Port("x", 0))), "Output 'x' reads .* after tensor 1 is written"),
        (lambda p: replace(p, inputs=()), "before anything wrote it"),
    ],
)
def test_the_validator_finds_what_sharing_must_not_do(change, message):
    program = share(small(Step("relu", (0,), (1,), in_place=in_place()), sizes=[SIZE] * 2, ends=(1,)))
    plan = plan_arena(program)
    validate_plan(program, plan, 64)
    with pytest.raises(PlanError, match=message):
        validate_plan(change(program), plan, 64)
