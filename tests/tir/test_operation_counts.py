"""Instructions of scheduled kernels, against counts by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

from tvm import te
from tvm.script import tirx as T

from passfit.frontend.relax.checked import checked
from passfit.targets import Machine
from passfit.targets.cycles import KernelWork
from passfit.tir.counts.instructions import DIVISION, SOFT
from passfit.tir.counts.operation_counts import kernel_work
from passfit.tir.operators.quads import neighbours

pytestmark = pytest.mark.tvm

AVX2 = Machine()
SCALAR = Machine(lanes=1)


def totals(work: KernelWork) -> tuple[float, float, float]:
    kinds = ("arithmetic", "loads", "stores")
    return tuple(sum(getattr(each, kind) for each in work.statements) for kind in kinds)  # type: ignore[return-value]


@T.prim_func(private=True, s_tir=True)
def tile(x: T.Buffer((32, 48), "float32"), w: T.Buffer((4, 32), "float32"), y: T.Buffer((4, 48), "float32")):
    for i in range(2):
        for k in range(32):
            for j in T.unroll(4):
                for u in T.unroll(3):
                    for v in T.vectorized(8):
                        y[j, i * 24 + u * 8 + v] = y[j, i * 24 + u * 8 + v] + x[k, i * 24 + u * 8 + v] * w[j, k]


def test_a_register_tile_loads_each_operand_once_a_step_and_its_sums_once():
    work = kernel_work(tile, AVX2)
    (statement,) = work.statements
    steps = 2 * 32
    assert statement.arithmetic == steps * 4 * 3
    assert statement.loads == steps * 3 + steps * 4 + 2 * 4 * 3
    assert statement.stores == 2 * 4 * 3
    assert statement.chain == steps and statement.steps == 32
    assert work.nbytes == 4 * (32 * 48 + 4 * 32 + 4 * 48)


@T.prim_func(private=True, s_tir=True)
def scaled(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for i in range(64):
        y[i] = x[i] * T.float32(2) + T.float32(1)


def test_contiguous_loops_count_as_vectorized_and_not_without_vectors():
    assert totals(kernel_work(scaled, AVX2)) == (8, 8, 8)
    assert totals(kernel_work(scaled, SCALAR)) == (64, 64, 64)


def test_floats_in_software_take_a_function_for_each_operation():
    arithmetic, *others = totals(kernel_work(scaled, Machine(lanes=1, soft_floats=True)))
    assert arithmetic == 64 + 64 * 2 * SOFT and others == [64, 64]


@T.prim_func(private=True, s_tir=True)
def transposed(x: T.Buffer((16, 64), "float32"), y: T.Buffer((64, 16), "float32")):
    for i in range(64):
        for j in range(16):
            y[i, j] = x[j, i]


def test_strided_loads_are_scalar():
    assert totals(kernel_work(transposed, AVX2)) == (0, 1024, 1024)


@T.prim_func(private=True, s_tir=True)
def summed(x: T.Buffer((64,), "float32"), y: T.Buffer((1,), "float32")):
    for k in range(64):
        y[0] = y[0] + x[k]


def test_a_sum_is_no_vector_loop_and_stays_in_a_register():
    (work,) = kernel_work(summed, AVX2).statements
    assert (work.arithmetic, work.loads, work.stores) == (64, 65, 1)
    assert (work.chain, work.steps) == (64, 64)


@T.prim_func(private=True, s_tir=True)
def halved(x: T.Buffer((10, 8), "float32"), y: T.Buffer((10, 8), "float32")):
    for tick in range(10):
        if tick % 2 == 0 and tick >= 4:
            for i in range(8):
                y[tick, i] = x[tick, i] * T.float32(2)


def test_conditions_on_loops_are_counted_exactly():
    assert totals(kernel_work(halved, SCALAR)) == pytest.approx((3 * 8, 3 * 8, 3 * 8))


def test_the_iterations_of_threads_run_side_by_side():
    @T.prim_func(private=True, s_tir=True)
    def shared(x: T.Buffer((8, 8), "float32"), y: T.Buffer((8, 8), "float32")):
        for i in T.parallel(8):
            for j in range(8):
                y[i, j] = x[i, j] * T.float32(2)

    alone, four = kernel_work(shared, SCALAR), kernel_work(shared, Machine(lanes=1, threads=4))
    assert sum(each.arithmetic for each in four.statements) * 4 == sum(each.arithmetic for each in alone.statements)


@T.prim_func(private=True, s_tir=True)
def from_ring(
    ring: T.Buffer((8, 32), "float32"),
    fresh: T.Buffer((32,), "float32"),
    w: T.Buffer((8, 32, 8), "float32"),
    y: T.Buffer((8,), "float32"),
):
    for r in range(8):
        for k in range(32):
            for v in T.vectorized(8):
                y[v] = y[v] + T.Select(r >= 7, fresh[k], ring[r, k]) * w[r, k, v]


def test_a_load_from_one_of_two_places_chooses_its_address():
    (statement,) = kernel_work(from_ring, AVX2).statements
    steps = 8 * 32
    assert statement.control == steps + 2 * steps
    (plain,) = kernel_work(tile, AVX2).statements
    assert plain.control == 2 * 32


@T.prim_func(private=True, s_tir=True)
def from_strided_ring(
    ring: T.Buffer((3, 32), "float32"),
    fresh: T.Buffer((32,), "float32"),
    w: T.Buffer((3, 32, 8), "float32"),
    y: T.Buffer((8,), "float32"),
):
    for r in range(3):
        for k in range(32):
            for v in T.vectorized(8):
                y[v] = y[v] + T.Select(r * 2 - 4 >= 0, fresh[k], ring[r, k]) * w[r, k, v]


def test_arithmetic_on_positions_is_none_of_the_values():
    (statement,) = kernel_work(from_strided_ring, AVX2).statements
    assert statement.arithmetic == 3 * 32


@T.prim_func(private=True, s_tir=True)
def flattened(x: T.Buffer((32, 100, 15), "float32"), y: T.Buffer((100, 480), "float32")):
    for i in range(100):
        for j in range(480):
            y[i, j] = x[j // 15, i, j % 15]


def test_quotients_and_remainders_make_no_vectors_and_take_instructions():
    (statement,) = kernel_work(flattened, AVX2).statements
    assert totals(kernel_work(flattened, AVX2)) == (0, 48000, 48000)
    assert statement.control == 48000 * (1 + 2 * DIVISION)


@T.prim_func(private=True, s_tir=True)
def mirrored(x: T.Buffer((64,), "float32"), y: T.Buffer((72,), "float32")):
    for i in range(72):
        y[i] = x[T.min(T.max(i - 4, 4 - i), 130 - i)]


def test_a_clamped_index_makes_no_vectors():
    assert totals(kernel_work(mirrored, AVX2)) == (0, 72, 72)


@T.prim_func(private=True, s_tir=True)
def padded(x: T.Buffer((64, 16), "float32"), y: T.Buffer((66, 18), "float32")):
    for i in range(66):
        for j in range(18):
            y[i, j] = T.if_then_else(i >= 1 and j >= 1 and j < 17, x[i - 1, j - 1], T.float32(0))


def test_conditions_that_the_innermost_loop_decides_are_evaluated_in_each_iteration():
    (statement,) = kernel_work(padded, SCALAR).statements
    assert statement.control == 66 * 18 * (1 + 2)


@T.prim_func(private=True, s_tir=True)
def recomputed(x: T.Buffer((64, 32), "float32"), w: T.Buffer((32, 16), "float32"), y: T.Buffer((64, 16), "float32")):
    for i in range(64):
        for j in range(16):
            for k in range(32):
                y[i, j] = y[i, j] + T.sigmoid(x[i, k]) * w[k, j]


def test_an_operand_recomputed_in_a_sum_counts_in_each_step():
    (statement,) = kernel_work(recomputed, AVX2).statements
    steps = 64 * 16 * 32
    assert statement.arithmetic > 20 * steps and statement.chain == steps


@T.prim_func(private=True, s_tir=True)
def normalised(x: T.Buffer((64, 32), "float32"), s: T.Buffer((64,), "float32"), y: T.Buffer((64, 32), "float32")):
    for i in range(64):
        for j in range(32):
            y[i, j] = x[i, j] * T.sqrt(s[i])


def test_a_root_of_what_the_innermost_loop_leaves_alone_is_hoisted():
    (statement,) = kernel_work(normalised, AVX2).statements
    assert 64 * 4 < statement.arithmetic <= 64 * 4 + 64 * 10
    (alone,) = kernel_work(scaled, AVX2).statements
    assert alone.arithmetic == 8


@T.prim_func(private=True, s_tir=True)
def powers(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for i in T.vectorized(64):
        y[i] = T.pow(x[i], T.float32(1.5))


def test_functions_of_the_library_take_one_element_a_call():
    (vectors,), (elements,) = kernel_work(powers, AVX2).statements, kernel_work(powers, SCALAR).statements
    assert vectors.arithmetic == elements.arithmetic >= 64 * 20


@T.prim_func(private=True, s_tir=True)
def rows_of_fifteen(x: T.Buffer((64, 15), "float32"), y: T.Buffer((64, 16), "float32")):
    for i in range(64):
        for j in range(15):
            y[i, j] = x[i, j]


def test_what_is_left_of_a_vector_is_single_elements():
    assert totals(kernel_work(rows_of_fifteen, AVX2)) == (0, 64 * 8, 64 * 8)


@T.prim_func(private=True, s_tir=True)
def unrolled(x: T.Buffer((8, 32), "float32"), w: T.Buffer((32,), "float32"), y: T.Buffer((8,), "float32")):
    for k in range(32):
        for j in T.unroll(8):
            y[j] = y[j] + x[j, k] * w[k]


def test_unrolled_sums_beside_each_other_are_a_vector_whose_operand_is_gathered():
    (statement,) = kernel_work(unrolled, AVX2).statements
    assert statement.arithmetic == 32 and statement.loads >= 32 * 8


@T.prim_func(private=True, s_tir=True)
def narrowed(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "uint8")):
    for i in range(64):
        y[i] = T.Cast("uint8", x[i] + T.float32(1))


def test_as_many_lanes_as_of_the_widest_element():
    assert totals(kernel_work(narrowed, AVX2)) == (2 * 8, 8, 8)


@T.prim_func(private=True, s_tir=True)
def scattered(x: T.Buffer((4096,), "float32"), y: T.Buffer((4096, 64), "float32")):
    for i in range(4096):
        y[i, 0] = x[i]


def test_a_long_row_is_brought_in_once_and_stores_far_apart_bring_a_line_each():
    (statement,) = kernel_work(scattered, AVX2).statements
    assert statement.refilled == pytest.approx(4096 * 4 + 4096 * 64, rel=0.01)


@T.prim_func(private=True, s_tir=True)
def gathered(table: T.Buffer((100, 64), "float32"), at: T.Buffer((32,), "int32"), y: T.Buffer((32, 64), "float32")):
    for i in range(32):
        for j in range(64):
            y[i, j] = table[at[i], j]


def test_rows_that_data_choose_are_read_in_vectors():
    (statement,) = kernel_work(gathered, AVX2).statements
    assert statement.stores == 32 * 8 and statement.loads <= 32 * 8 + 32


@T.prim_func(private=True, s_tir=True)
def sampled(x: T.Buffer((64,), "float32"), at: T.Buffer((16,), "float32"), y: T.Buffer((16, 8), "float32")):
    for i in range(16):
        for j in range(8):
            y[i, j] = x[T.Cast("int64", T.floor(at[i])) + T.int64(j)]


def test_places_may_be_computed_of_floats():
    loads = totals(kernel_work(sampled, AVX2))[1]
    assert 16 <= loads <= 3 * 16


def test_a_check_costs_instructions_and_its_reason_none():
    counted, length = te.placeholder((64,), "float32"), te.placeholder((1,), "int32")
    bounded = te.compute(
        (64,), lambda i: counted[i] * checked(length(0), 0, 9, "a length is out of range").astype("float32")
    )
    statements = kernel_work(te.create_prim_func([counted, length, bounded]), AVX2).statements
    assert sum(each.arithmetic for each in statements) > 0


@T.prim_func(private=True, s_tir=True)
def sampled_sums(count: T.Buffer((1,), "int32"), x: T.Buffer((64, 8), "float32"), y: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, count[0]):
        with T.sblock("sum"):
            column, row = T.axis.spatial(8, i), T.axis.reduce(count[0], k)
            with T.init():
                y[column] = T.float32(0)
            y[column] = y[column] + x[row, column]


def test_a_sum_whose_length_data_decide_counts_one_step():
    assert sum(each.arithmetic for each in kernel_work(sampled_sums, AVX2).statements) <= 8 * 2


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_neighbours_read_as_one_integer_are_one_load(dtype):
    """Compare with a kernel that reads the same bytes as integers of their own."""
    number = 32 // int(dtype[3:])
    bytes_ = te.placeholder((5, 16 * number), dtype, "x")
    words = te.placeholder((5, 16), "int32", "x")

    def of_bytes(i, j):
        return neighbours(*(bytes_(i, j * number + each) for each in range(number)))

    for machine, loads in ((AVX2, 5 * 2), (SCALAR, 5 * 16)):
        found = [
            totals(kernel_work(te.create_prim_func([operand, te.compute((5, 16), value)]), machine))
            for operand, value in ((bytes_, of_bytes), (words, lambda i, j: words[i, j]))
        ]
        assert found[0] == found[1] and found[0][:2] == (0, loads)


@T.prim_func(private=True, s_tir=True)
def in_ring(
    number: T.int32, x: T.Buffer((12, 8), "float32"), w: T.Buffer((8, 9), "float32"), y: T.Buffer((4,), "float32")
):
    for c in range(8):
        for k in range(9):
            for j in T.unroll(4):
                y[j] = y[j] + x[(T.max(T.min(number, 5), 0) + j + k) % 12, c] * w[c, k]


@T.prim_func(private=True, s_tir=True)
def out_of_ring(
    number: T.int32, x: T.Buffer((12, 8), "float32"), w: T.Buffer((8, 9), "float32"), y: T.Buffer((4,), "float32")
):
    for k in range(9):
        for c in range(8):
            for j in T.unroll(4):
                y[j] = y[j] + x[(T.max(T.min(number, 5), 0) + j + k) % 12, c] * w[c, k]


def test_each_row_of_a_tile_has_its_own_place_in_a_ring_unless_the_loop_that_moves_it_is_outside():
    (inside,), (outside,) = (kernel_work(each, AVX2).statements for each in (in_ring, out_of_ring))
    assert inside.control == 8 * 9 + DIVISION * 8 * 9 * 4
    assert outside.control == 8 * 9 + DIVISION * 9 * 4


@T.prim_func(private=True, s_tir=True)
def guarded(
    number: T.int32, x: T.Buffer((8, 9), "float32"), w: T.Buffer((8, 8), "float32"), y: T.Buffer((4, 8), "float32")
):
    for c in range(8):
        for j in T.unroll(4):
            if T.max(T.min(number, 5), 0) + j < 7:
                for v in T.vectorized(8):
                    y[j, v] = y[j, v] + x[c, T.max(T.min(number, 5), 0) + j] * w[c, v]


def test_rows_with_a_guard_each_share_no_loads():
    """Each row loads the weights; 21 of 24 rows of the six calls are inside. Sums stay in registers from call to call."""
    (statement,) = kernel_work(guarded, AVX2).statements
    inside = 21 / 24
    assert statement.loads == pytest.approx(inside * (8 * 4 + 8 * 4 + 4 / 6))
    assert statement.control == pytest.approx(inside * (8 + 8 * 4))
