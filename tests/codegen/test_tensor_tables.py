from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from passfit.codegen.tensor_tables import DLPACK, tensor_tables
from passfit.program import DTYPE_BYTES, Buffer, Program, Step, Tensor, Weight


@dataclass(frozen=True)
class Plan:
    offsets: tuple[int, ...]
    arena: int


@st.composite
def programs(draw) -> tuple[Program, Plan]:
    buffers = tuple(Buffer(f"b{i}", 64) for i in range(draw(st.integers(1, 4))))
    weights = tuple(Weight(f"w{i}", size, "") for i, size in enumerate(draw(st.lists(st.integers(0, 300), max_size=4))))
    shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)
    tensors = tuple(
        Tensor(shape, dtype, buffer=draw(st.integers(0, len(buffers) - 1)))
        for shape, dtype in draw(
            st.lists(st.tuples(shapes, st.sampled_from(sorted(DTYPE_BYTES))), min_size=1, max_size=6)
        )
    ) + tuple(Tensor((w.nbytes,), "uint8", weight=i) for i, w in enumerate(weights))
    numbers = st.lists(st.integers(0, len(tensors) - 1), max_size=3).map(tuple)
    steps = tuple(Step("k", draw(numbers), draw(numbers)) for _ in range(draw(st.integers(0, 4))))
    plan = Plan(tuple(draw(st.integers(0, 9)) * 64 for _ in buffers), 640)
    return Program("p", steps, tensors, buffers, weights, (), ()), plan


@given(programs())
def test_every_tensor_finds_its_shape_and_place(case):
    program, plan = case
    tables = tensor_tables(program, plan)
    for tensor, place in zip(program.tensors, tables.places, strict=True):
        assert tables.shapes[place.shape : place.shape + place.rank] == tensor.shape
        assert place.bits // 8 == DTYPE_BYTES[tensor.dtype]
        assert place.in_weights == (tensor.weight is not None)
        if not place.in_weights:
            assert place.offset == plan.offsets[tensor.buffer]


@given(programs())
def test_weights_are_aligned_and_do_not_overlap(case):
    program, plan = case
    tables = tensor_tables(program, plan)
    ends = (*tables.weight_offsets, tables.weight_bytes)[1:]
    assert tables.weight_bytes == program.weight_bytes
    for weight, start, end in zip(program.weights, tables.weight_offsets, ends, strict=True):
        assert start % 64 == 0 and start + weight.nbytes <= end


@given(programs())
def test_every_call_gets_its_reads_then_its_writes(case):
    program, plan = case
    tables = tensor_tables(program, plan)
    for step, first, count in zip(program.steps, tables.first_argument, tables.argument_count, strict=True):
        assert tables.arguments[first : first + count] == step.reads + step.writes


def test_every_dtype_of_a_program_has_a_dlpack_code():
    assert set(DLPACK) == set(DTYPE_BYTES)
