"""Compute the address of each tensor as an expression of the generated C."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from ..memory.placement.place_weights import place_weights
from ..program import Loop, Program, Tensor
from ..targets import Target
from ..targets.memory import first_of
from .names import c_identifier

if TYPE_CHECKING:
    from ..memory import ArenaPlan

_WEIGHT_ALIGNMENT = 64


@dataclass(frozen=True)
class MemoryBlock:
    """Block of memory of a library: `name` is its C expression, such as `arena` or `weights_qspi`.

    It has `nbytes`, and is in the memory `region` of a device; an empty one is that which takes such data by default. A block
    of weights holds those of the numbers in `weights`.
    """

    name: str
    region: str
    nbytes: int
    weights: tuple[int, ...] = ()

    @property
    def suffix(self) -> str:
        """Return the suffix of the block's name."""
        return self.name.removeprefix("arena").removeprefix("weights")

    def section(self, identifier: str) -> str:
        """Return the section of a block of weights: that of a memory, or one that linker scripts know as read-only data."""
        return f".rodata.weights.{self.region}" if self.region else f".rodata.{identifier}_weights"


@dataclass(frozen=True)
class TensorAddresses:
    """Addresses in one library: `tensors` are C expressions such as `arena + 64`, by tensor number.

    `weights` are those of the weights, by number, and `weight_offsets` the bytes to them from the start of their blocks.
    """

    tensors: tuple[str, ...]
    weights: tuple[str, ...]
    weight_offsets: tuple[int, ...]
    arenas: tuple[MemoryBlock, ...]
    weight_blocks: tuple[MemoryBlock, ...]

    @property
    def weight_bytes(self) -> int:
        """Return the bytes of all weights."""
        return sum(block.nbytes for block in self.weight_blocks)


def addresses_on(program: Program, plan: ArenaPlan, target: Target, code: int) -> TensorAddresses:
    """Compute the addresses of a program's tensors in the memories of a target with `code` bytes of kernels."""
    if not target.bare:
        return tensor_addresses(program, plan)
    ram, flash = first_of(target.memories, "ram").name, first_of(target.memories, "flash").name
    homes = place_weights(program, target, code)
    return tensor_addresses(program, plan, ram, tuple("" if home == flash else home for home in homes))


def tensor_addresses(program: Program, plan: ArenaPlan, first: str = "", homes: Sequence[str] = ()) -> TensorAddresses:
    """Compute the addresses of a program's tensors in its plan; deterministic.

    `first` is the memory that takes arenas by default, `homes` those of the weights, by number; without any, they are one block.
    """
    arenas = _arenas(plan, first)
    blocks, offsets = _weights(program, homes)
    of_weight = {number: block.name for block in blocks for number in block.weights}
    weights = tuple(f"{of_weight[number]} + {offset}u" for number, offset in enumerate(offsets))
    starts = [0, *accumulate(block.nbytes for block in arenas)][:-1]

    def address(tensor: Tensor) -> str:
        if tensor.buffer is None:
            return weights[tensor.weight_number]
        number = max(0, bisect_right(starts, plan.offsets[tensor.buffer]) - 1)
        return f"{arenas[number].name} + {plan.offsets[tensor.buffer] + tensor.offset - starts[number]}u"

    return TensorAddresses(tuple(map(address, program.tensors)), weights, offsets, arenas, blocks)


def _arenas(plan: ArenaPlan, first: str) -> tuple[MemoryBlock, ...]:
    if not plan.banks:
        return (MemoryBlock("arena", "", plan.arena),)
    several = len(plan.banks) > 1
    return tuple(
        MemoryBlock(
            f"arena_{c_identifier(bank.region)}" if several else "arena",
            "" if bank.region == first else bank.region,
            bank.size,
        )
        for bank in plan.banks
    )


def _weights(program: Program, homes: Sequence[str]) -> tuple[tuple[MemoryBlock, ...], tuple[int, ...]]:
    """Return the blocks of weights, the first memory's first, and the offset of each weight in its block."""
    offsets, ends = [], dict.fromkeys(homes or ("",), 0)
    inside: dict[str, list[int]] = {home: [] for home in ends}
    for number, weight in enumerate(program.weights):
        home = homes[number] if homes else ""
        offsets.append(ends[home])
        ends[home] += -(-weight.nbytes // _WEIGHT_ALIGNMENT) * _WEIGHT_ALIGNMENT
        inside[home].append(number)
    blocks = (
        MemoryBlock(f"weights_{c_identifier(home)}" if home else "weights", home, ends[home], tuple(inside[home]))
        for home in sorted(ends)
    )
    return tuple(block for block in blocks if block.weights), tuple(offsets)


def lost_inputs(program: Program, plan: ArenaPlan) -> tuple[bool, ...]:
    """Return for each input whether a run overwrites it: some step writes into its memory."""
    written = {tensor for step in program.steps for tensor in step.writes}
    ranges = [
        _range(program.tensors[tensor], plan)
        for tensor in sorted(written)
        if program.tensors[tensor].buffer is not None
    ]
    return tuple(_meets(_range(program.tensors[port.tensor], plan), ranges) for port in program.inputs)


def lost_outputs(program: Program, plan: ArenaPlan) -> tuple[bool, ...]:
    """Return for each output whether writing an input overwrites it."""
    inputs = [_range(program.tensors[port.tensor], plan) for port in program.inputs]
    tensors = [program.tensors[port.tensor] for port in program.outputs]
    return tuple(each.buffer is not None and _meets(_range(each, plan), inputs) for each in tensors)


def _range(tensor: Tensor, plan: ArenaPlan) -> range:
    """Return the bytes of a tensor in the arena."""
    start = plan.offsets[tensor.buffer_number] + tensor.offset
    return range(start, start + tensor.nbytes)


def _meets(one: range, others: list[range]) -> bool:
    return any(max(one.start, each.start) < min(one.stop, each.stop) for each in others)


def addresses_in_loop(loop: Loop, addresses: TensorAddresses, trip: str) -> TensorAddresses:
    """Compute the addresses of a body's tensors in the trip of this name; `addresses` are those around the loop."""
    around = [addresses.tensors[tensor] for tensor in (*loop.reads, *loop.results)]
    outside = {
        each.tensor: _behind(around[each.place], each.offset) + f" + {trip} * {each.stride}" * bool(each.stride)
        for each in loop.windows
    }
    tensors = [
        outside.get(number)
        or (addresses.weights[each.weight_number] if each.buffer is None else _inside(loop, each, addresses))
        for number, each in enumerate(loop.body.tensors)
    ]
    return replace(addresses, tensors=tuple(tensors))


def stop_of(loop: Loop, addresses: TensorAddresses, trip: str) -> dict | None:
    """Return the slice that ends a loop by 0, and the slices to clear then; None without one."""
    sliced = [each for each in loop.windows if each.stride and each.place >= len(loop.reads)]
    if not loop.stops or any(each.stride < 0 for each in sliced):
        return None
    first = min(sliced, key=lambda each: each.place)
    slices = addresses_in_loop(loop, addresses, trip).tensors
    base = addresses.tensors[loop.results[first.place - len(loop.reads)]]
    return {
        "slice": slices[first.tensor], "bytes": loop.body.tensors[first.tensor].nbytes, "rest": f"{base} + ({trip} + 1) * {first.stride}",
        "count": f"({loop.trips - 1} - {trip}) * {first.stride}",
    }  # fmt: skip


def _inside(loop: Loop, tensor: Tensor, addresses: TensorAddresses) -> str:
    """Return the address of a tensor of a body in the loop's workspaces."""
    if not loop.workspaces:
        return ""
    number = tensor.buffer_number
    return _behind(addresses.tensors[loop.workspace_of(number)], loop.offsets[number] + tensor.offset)


def _behind(address: str, offset: int) -> str:
    return f"{address} + {offset}u" if offset else address
