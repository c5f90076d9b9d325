"""Check parallel loops: only over independent iterations, with the same bits as one thread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax, tirx
from tvm.ir import Var
from tvm.script import ir as I  # noqa: F401  (TVMScript wants its names)
from tvm.script import tirx as T
from tvm.tirx import BufferStore, For, IfThenElse

from passfit.kernels.lower.schedule_program import schedule_program
from passfit.kernels.rules import parallel_loops as parallel
from passfit.kernels.rules.parallel_loops import has_parallel_loop, parallelise_loops
from passfit.kernels.schedule.candidates import schedules
from passfit.memory import share
from passfit.passes.sequence.apply import apply_program_passes
from passfit.passes.sequence.sequence import Sequence
from passfit.program.workspaces import largest_workspace
from passfit.targets import Machine
from passfit.tir.expressions import collect
from passfit.tir.loop_nests import buffer_of, int64, kernel_of, nests_in
from passfit.tir.workspace import workspace_bytes

from ...profiles import examples
from ..programs import lowered, random_inputs, run, weight

pytestmark = pytest.mark.tvm
_FEW = settings(max_examples=examples(7))
_FUSED = ("legalize", "fold-constant", "fuse-operators")


@pytest.fixture(autouse=True, scope="module")
def _small_loops_are_worth_it():
    """Parallelise small loops too: their worth has a test of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "MIN_WORK", 8)
        yield


def shared_loops(kernel) -> list[tuple[str, int]]:
    return [(loop.loop_var.name, int(loop.extent)) for loop in collect(kernel.body, For) if int(loop.kind) == 1]


def agrees(program, threads, wanted=True):
    """Compare three schedules of every kernel with one thread's bits; check for a parallel loop if wanted."""
    inputs = random_inputs(program)
    known = {
        name: list(schedules(kernel, frozenset(), Machine()).candidates()) for name, kernel in program.kernels.items()
    }
    for number in range(min(3, max(map(len, known.values())))):
        ways = {name: made[min(number, len(made) - 1)] for name, made in known.items()}
        kernels = {name: parallelise_loops(way.kernel, threads) for name, way in ways.items()}
        if number == 0 and wanted:
            assert all(map(has_parallel_loop, kernels.values()))
        one = type(program)(program.program, {name: way.kernel for name, way in ways.items()}, program.weights)
        several = type(program)(program.program, kernels, program.weights)
        for ours, reference in zip(run(several, inputs), run(one, inputs), strict=True):
            np.testing.assert_array_equal(ours, reference)


@_FEW
@given(
    st.integers(1, 9), st.sampled_from([1, 3, 8, 12]), st.sampled_from([5, 7, 16, 19]), st.sampled_from([1, 3]),
    st.sampled_from([1, 2]), st.integers(2, 5),
)  # fmt: skip
def test_convolutions(taken, given, side, size, stride, threads):
    def body(x):
        result = relax.op.nn.conv2d(x, weight(given, taken, size, size), padding=size // 2, strides=stride)
        return relax.op.nn.relu(relax.op.add(result, weight(1, given, 1, 1, seed=2)))

    # few results are one tile, without a loop around it
    results = given * (side // stride) * ((side + 2) // stride)
    agrees(lowered([(1, taken, side, side + 2)], body, _FUSED), threads, wanted=results > 14 * 16)


@_FEW
@given(st.integers(1, 6), st.sampled_from([5, 13, 16, 31]), st.sampled_from([1, 2]), st.integers(2, 4), st.booleans())
def test_windows_over_planes(channels, side, stride, threads, pooling):
    def body(x):
        if pooling:
            return relax.op.nn.max_pool2d(x, (3, 3), (stride, stride), (1, 1))
        return relax.op.nn.conv2d(x, weight(channels, 1, 3, 3), groups=channels, padding=1, strides=stride)

    # one plane has no loop around it
    agrees(lowered([(1, channels, side, side)], body, _FUSED), threads, wanted=channels > 1)


@_FEW
@given(st.integers(2, 33), st.integers(1, 40), st.integers(2, 33), st.integers(2, 5))
def test_products_of_matrices(rows, inner, columns, threads):
    # few columns and rows are one tile, without a loop around it
    program = lowered([(rows, inner)], lambda x: relax.op.matmul(x, weight(inner, columns)), _FUSED)
    agrees(program, threads, wanted=rows * columns > 14 * 16)


@pytest.mark.parametrize(
    ("shapes", "body"),
    [
        ([(7, 100)], relax.op.nn.softmax),
        ([(1, 5, 8, 9)], lambda x: relax.op.mean(x, [2, 3])),
        ([(1, 5, 8, 9)], lambda x: relax.op.exp(relax.op.permute_dims(x, [0, 2, 3, 1]))),
        ([(1, 5, 8, 9), (1, 3, 8, 9)], lambda x, y: relax.op.concat([x, y], 1)),
        ([(1, 3, 9, 9)], lambda x: relax.op.nn.pad(x, [0, 0, 0, 0, 1, 1, 2, 2])),
        ([(3, 16)], lambda x: relax.op.nn.layer_norm(x, weight(16), weight(16, seed=1), axes=[-1])),
    ],
    ids=["softmax", "mean", "transposed", "concatenation", "padding", "normalisation"],
)
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_other_kernels(shapes, body, threads):
    agrees(lowered(shapes, body, _FUSED), threads, wanted=False)


# --- kernels of every kind of dependence


@T.prim_func(private=True, s_tir=True)
def running_sum(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    total = T.sblock_alloc_buffer((1,))
    for i in range(64):
        total[0] = total[0] + x[i]
        y[i] = total[0]


@T.prim_func(private=True, s_tir=True)
def reads_the_one_before(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for i in range(64):
        y[i] = x[i] + T.if_then_else(i > 0, y[i - 1], T.float32(0))


@T.prim_func(private=True, s_tir=True)
def two_write_one(x: T.Buffer((64,), "float32"), y: T.Buffer((32,), "float32")):
    for i in range(64):
        y[i // 2] = x[i]


@T.prim_func(private=True, s_tir=True)
def ring(x: T.Buffer((64,), "float32"), y: T.Buffer((8,), "float32")):
    for i in range(64):
        y[i % 8] = x[i]


@T.prim_func(private=True, s_tir=True)
def through_all_of_its_own(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    own = T.sblock_alloc_buffer((64,))
    for i in range(64):
        own[i] = x[i] * T.float32(2)
    for i in range(64):
        y[i] = own[63 - i]


@T.prim_func(private=True, s_tir=True)
def histogram(x: T.Buffer((64,), "int32"), y: T.Buffer((64,), "int32")):
    for i in range(64):
        y[x[i]] = y[x[i]] + 1


@pytest.mark.parametrize(
    "kernel", [running_sum, reads_the_one_before, two_write_one, ring, histogram], ids=lambda each: each.__name__
)
def test_iterations_that_depend_on_each_other_stay_in_order(kernel):
    assert parallelise_loops(kernel, 2).same_as(kernel)


def test_what_one_nest_leaves_to_the_next_is_written_by_one_thread():
    """Read by all threads, the buffer exists once."""
    made = parallelise_loops(through_all_of_its_own, 2)
    assert [int(nest.kind) for nest in nests_in(made)] == [0, 1]
    assert workspace_bytes(made, 2) == 256


def test_a_sum_over_the_outermost_loop_is_not_split_but_the_loop_inside_is_shared():
    @T.prim_func(private=True, s_tir=True)
    def columns(x: T.Buffer((5, 64), "float32"), y: T.Buffer((64,), "float32")):
        for k in range(5):
            for i in range(64):
                y[i] = y[i] + x[k, i]

    assert shared_loops(parallelise_loops(columns, 2)) == [("i", 64)]


def test_a_row_of_the_kernels_own_is_there_once_for_each_thread():
    @T.prim_func(private=True, s_tir=True)
    def rows(x: T.Buffer((6, 400), "float32"), y: T.Buffer((6, 400), "float32")):
        own = T.sblock_alloc_buffer((400,))
        for i in range(6):
            for j in range(400):
                own[j] = x[i, j] * T.float32(2)
            for j in range(400):
                y[i, j] = own[399 - j]

    made = parallelise_loops(rows, 3)
    assert shared_loops(made) == [("i", 6)]
    assert workspace_bytes(rows) == workspace_bytes(made, 1) == 1600
    assert workspace_bytes(made, 3) == 3 * 1600


@pytest.mark.parametrize(
    ("extents", "threads", "expected"), [((7, 8), 2, 56), ((8, 7), 2, 8), ((3, 5, 4), 4, 60), ((100, 3), 3, 100)]
)
def test_loops_become_one_where_iterations_do_not_divide(extents, threads, expected):
    (shared,) = shared_loops(parallelise_loops(_nest(extents, lambda *at: at), threads))
    assert shared[1] == expected


def _nest(extents, place, holds=None):
    """Build a kernel that writes element `place(i, j, …)` of y if `holds(i, j, …)`; x and y have the same shape."""
    x, y = (buffer_of(name, extents, "float32") for name in "xy")
    at = [Var(name, "int64") for name in "ijkl"[: len(extents)]]
    stmt = BufferStore(y, tirx.BufferLoad(x, at), place(*at))
    if holds is not None:
        stmt = IfThenElse(holds(*at), stmt, None)
    for var, extent in reversed(list(zip(at, extents))):
        stmt = For(var, int64(0), int64(extent), 0, stmt)
    return kernel_of([x, y], [stmt], [], None)


@given(st.integers(2, 6), st.integers(2, 6), *[st.integers(0, 3)] * 4, st.integers(2, 9))
@settings(max_examples=examples(150))
def test_the_outermost_loop_is_shared_where_no_two_iterations_write_one_element(rows, columns, a, b, c, d, below):
    """Compare with the sets of elements each iteration writes."""

    def place(i, j):
        return [(a * i + b * j) % rows, (c * i + d * j) % columns]

    def holds(i, j):
        return i + 2 * j < below

    written = [{tuple(place(i, j)) for j in range(columns) if i + 2 * j < below} for i in range(rows)]
    disjoint = sum(map(len, written)) == len(set().union(*written))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "MIN_WORK", rows * columns)  # leaves no other loop to parallelise
        patch.setattr(parallel, "_UNEVEN", np.inf)
        made = parallelise_loops(_nest((rows, columns), place, holds), 2)
    assert has_parallel_loop(made) == disjoint


def test_little_work_is_left_to_one_thread(monkeypatch):
    monkeypatch.setattr(parallel, "MIN_WORK", 1 << 17)
    assert not has_parallel_loop(parallelise_loops(_nest((1 << 8, 1 << 8), lambda *at: at), 2))
    assert has_parallel_loop(parallelise_loops(_nest((1 << 9, 1 << 8), lambda *at: at), 2))


def test_one_thread_changes_nothing():
    kernel = _nest((64, 64), lambda *at: at)
    assert parallelise_loops(kernel, 1).same_as(kernel)


# --- programs

#: a thread count no other file uses: schedules are memoised per kernel and machine
_MACHINE = Machine(threads=7)


def residual(x):
    hidden = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(8, 8, 3, 3), padding=1))
    return relax.op.nn.relu(relax.op.add(relax.op.nn.conv2d(hidden, weight(8, 8, 3, 3, seed=1), padding=1), x))


@pytest.mark.parametrize("passes", [_FUSED, ("legalize",)])
def test_what_lies_in_a_result_is_overwritten_by_the_thread_that_reads_it(passes):
    """Compute a residual sum in place by several threads: no bit differs from one thread's."""
    program = lowered([(1, 8, 9, 9)], residual, passes)
    found = []
    for machine in (Machine(), _MACHINE):
        made, _ = schedule_program(replace(program, machine=machine))
        shared = replace(made, program=share(made.program))
        assert any(shared.program.is_in_place(step, each) for step in shared.program.steps for each in step.in_place)
        assert any(map(has_parallel_loop, shared.kernels.values())) == (machine.threads > 1)
        assert [step.in_place for step in made.program.steps] == [step.in_place for step in shared.program.steps]
        found.append(run(shared, random_inputs(program)))
    assert all((one == other).all() for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("split", ["split-rows{steps=0-1}", "split-channels{steps=0-1,channels=4}"])
def test_kernels_that_run_row_by_row_share_the_loops_of_each_row(split):
    def body(x):
        wide = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(16, 3, 3, 3), padding=1))
        return relax.op.nn.relu(relax.op.nn.conv2d(wide, weight(8, 16, 3, 3, seed=1), padding=1))

    program = lowered([(1, 3, 24, 24)], body, _FUSED)
    found = []
    for machine in (Machine(), _MACHINE):
        made, _ = apply_program_passes(
            replace(program, machine=machine), Sequence.parse([*_FUSED, split, "share", "order"]).passes
        )
        assert any(map(has_parallel_loop, made.kernels.values())) == (machine.threads > 1)
        found.append(run(made, random_inputs(program)))
    assert all((one == other).all() for one, other in zip(*found, strict=True))


def test_workspace_and_stacks_of_all_threads_are_counted_and_stay_within_what_tvm_needed():
    def body(x):
        return relax.op.nn.conv2d(x, weight(16, 1, 3, 3), padding=1, groups=16)

    program = lowered([(1, 16, 40, 40)], body, _FUSED)
    one = largest_workspace(schedule_program(program)[0].program)
    made, several = schedule_program(replace(program, machine=_MACHINE))
    (kernel,) = made.kernels.values()
    assert one == workspace_bytes(kernel) > 512
    assert several == 7 * one + _MACHINE.thread_bytes


def test_a_kernel_that_would_need_more_than_tvm_does_is_left_to_one_thread():
    def body(x):
        return relax.op.nn.conv2d(x, weight(3, 1, 3, 3), padding=1, groups=3)

    program = lowered([(1, 3, 16, 16)], body, _FUSED)
    for threads, shares in ((2, True), (64, False)):
        made, workspace = schedule_program(replace(program, machine=Machine(threads=threads)))
        assert any(map(has_parallel_loop, made.kernels.values())) == shares
        most = max(workspace_bytes(kernel) for kernel in program.kernels.values())
        assert workspace <= most + shares * Machine(threads=threads).thread_bytes
