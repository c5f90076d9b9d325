"""Compute the address of each tensor as an expression of the generated C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..program import Loop, Program, Tensor

if TYPE_CHECKING:
    from ..memory import ArenaPlan

_WEIGHT_ALIGNMENT = 64


@dataclass(frozen=True)
class TensorAddresses:
    """Addresses in one library: `tensors` are C expressions such as `arena + 64`, by tensor number.

    `weight_offsets` are in bytes, into the section of the weights, which has `weight_bytes`.
    """

    tensors: tuple[str, ...]
    weight_offsets: tuple[int, ...]
    weight_bytes: int


def tensor_addresses(program: Program, plan: ArenaPlan) -> TensorAddresses:
    """Compute the addresses of a program's tensors in its plan; deterministic."""
    weight_offsets, weight_bytes = _weights(program)
    tensors = tuple(_address(tensor, plan, weight_offsets) for tensor in program.tensors)
    return TensorAddresses(tensors, weight_offsets, weight_bytes)


def lost_inputs(program: Program, plan: ArenaPlan) -> tuple[bool, ...]:
    """Tell of each input whether a run overwrites it: some step writes into its memory."""
    written = {tensor for step in program.steps for tensor in step.writes}
    ranges = [_range(program.tensors[tensor], plan) for tensor in sorted(written) if program.tensors[tensor].buffer is not None]
    return tuple(_meets(_range(program.tensors[port.tensor], plan), ranges) for port in program.inputs)


def lost_outputs(program: Program, plan: ArenaPlan) -> tuple[bool, ...]:
    """Tell of each output whether writing an input overwrites it."""
    inputs = [_range(program.tensors[port.tensor], plan) for port in program.inputs]
    tensors = [program.tensors[port.tensor] for port in program.outputs]
    return tuple(each.buffer is not None and _meets(_range(each, plan), inputs) for each in tensors)


def _range(tensor: Tensor, plan: ArenaPlan) -> range:
    """Return the bytes of a tensor in the arena."""
    start = plan.offsets[tensor.buffer] + tensor.offset
    return range(start, start + tensor.nbytes)


def _meets(one: range, others: list[range]) -> bool:
    return any(max(one.start, each.start) < min(one.stop, each.stop) for each in others)


def addresses_in_loop(loop: Loop, addresses: TensorAddresses, trip: str) -> TensorAddresses:
    """Compute the addresses of a body's tensors in the trip of this name; `addresses` are those around the loop."""
    around = [addresses.tensors[tensor] for tensor in (*loop.reads, *loop.results)]
    outside = {each.tensor: _behind(around[each.place], each.offset) + f" + {trip} * {each.stride}" * bool(each.stride) for each in loop.windows}
    tensors = [
        outside.get(number)
        or (f"weights + {addresses.weight_offsets[each.weight]}u" if each.buffer is None else _inside(loop, each, addresses))
        for number, each in enumerate(loop.body.tensors)
    ]
    return TensorAddresses(tuple(tensors), addresses.weight_offsets, addresses.weight_bytes)


def _inside(loop: Loop, tensor: Tensor, addresses: TensorAddresses) -> str:
    """Return the address of a tensor of a body in the loop's workspaces."""
    assert tensor.buffer is not None
    if not loop.workspaces:
        return ""
    return _behind(addresses.tensors[loop.workspace_of(tensor.buffer)], loop.offsets[tensor.buffer] + tensor.offset)


def _behind(address: str, offset: int) -> str:
    return f"{address} + {offset}u" if offset else address


def _weights(program: Program) -> tuple[tuple[int, ...], int]:
    offsets, end = [], 0
    for weight in program.weights:
        offsets.append(end)
        end += -(-weight.nbytes // _WEIGHT_ALIGNMENT) * _WEIGHT_ALIGNMENT
    return tuple(offsets), end


def _address(tensor: Tensor, plan: ArenaPlan, weights: tuple[int, ...]) -> str:
    if tensor.buffer is None:
        return f"weights + {weights[tensor.weight]}u"
    return f"arena + {plan.offsets[tensor.buffer] + tensor.offset}u"
