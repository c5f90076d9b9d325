from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from passfit.codegen.tensor_addresses import tensor_addresses
from passfit.memory import Bank
from passfit.program import DTYPE_BYTES, Buffer, Program, Step, Tensor, Weight


@dataclass(frozen=True)
class Plan:
    offsets: tuple[int, ...]
    arena: int
    banks: tuple[Bank, ...] = ()


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
def test_every_tensor_is_in_the_arena_or_the_weights_at_its_offset(case):
    program, plan = case
    addresses = tensor_addresses(program, plan)
    for tensor, address in zip(program.tensors, addresses.tensors, strict=True):
        if tensor.weight is None:
            assert address == f"arena + {plan.offsets[tensor.buffer]}u"
        else:
            assert address == f"weights + {addresses.weight_offsets[tensor.weight]}u"


@given(programs())
def test_weights_are_aligned_and_do_not_overlap(case):
    program, plan = case
    addresses = tensor_addresses(program, plan)
    ends = (*addresses.weight_offsets, addresses.weight_bytes)[1:]
    assert addresses.weight_bytes == program.weight_bytes
    for weight, start, end in zip(program.weights, addresses.weight_offsets, ends, strict=True):
        assert start % 64 == 0 and start + weight.nbytes <= end


@given(programs(), st.lists(st.integers(1, 4), min_size=2, max_size=3))
def test_each_bank_is_a_block_of_its_own(case, pieces):
    program, plan = case
    sizes = [64 * piece for piece in pieces]
    banks = tuple(Bank(f"m-{number}", size) for number, size in enumerate((*sizes, max(64, 640 - sum(sizes)))))
    addresses = tensor_addresses(program, replace(plan, banks=banks), first="m-0")
    assert [(block.name, block.region, block.nbytes) for block in addresses.arenas] == [
        (f"arena_m_{number}", bank.region if number else "", bank.size) for number, bank in enumerate(banks)
    ]  # fmt: skip
    for tensor, address in zip(program.tensors, addresses.tensors, strict=True):
        if tensor.weight is None:
            number, offset = map(int, address.removeprefix("arena_m_").removesuffix("u").split(" + "))
            assert (
                sum(bank.size for bank in banks[:number]) + offset == plan.offsets[tensor.buffer]
                and 0 <= offset < banks[number].size
            )


@given(programs(), st.data())
def test_weights_have_offsets_in_the_blocks_of_their_memories(case, data):
    program, plan = case
    homes = tuple(data.draw(st.sampled_from(["", "qspi", "nor-1"])) for _ in program.weights)
    addresses = tensor_addresses(program, plan, homes=homes)
    assert addresses.weight_bytes == program.weight_bytes
    for block in addresses.weight_blocks:
        assert block.name == {"": "weights", "qspi": "weights_qspi", "nor-1": "weights_nor_1"}[block.region]
        ends = [*(addresses.weight_offsets[number] for number in block.weights), block.nbytes][1:]
        assert all(
            addresses.weight_offsets[number] + program.weights[number].nbytes <= end
            for number, end in zip(block.weights, ends, strict=True)
        )
    assert [addresses.weights[number] for block in addresses.weight_blocks for number in block.weights] == [
        f"{block.name} + {addresses.weight_offsets[number]}u" for block in addresses.weight_blocks for number in block.weights
    ]  # fmt: skip
