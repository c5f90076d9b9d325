"""Build the tables of the generated C: place and type of each tensor, arguments of each call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..program import Program, Tensor

if TYPE_CHECKING:
    from ..memory import ArenaPlan

#: DLPack type code and bits, <dlpack/dlpack.h> DLDataTypeCode
DLPACK = {
    "bool": (6, 8), "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64),
    "uint8": (1, 8), "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64),
    "float16": (2, 16), "float32": (2, 32), "float64": (2, 64), "bfloat16": (4, 16),
}  # fmt: skip
_WEIGHT_ALIGNMENT = 64


@dataclass(frozen=True)
class TensorPlace:
    """Place and type of a tensor.

    `offset` is in bytes, into the arena or the weights; `shape` is its first entry in the shape pool; `code` and `bits`
    are DLPack's.
    """

    offset: int
    in_weights: bool
    shape: int
    rank: int
    code: int
    bits: int


@dataclass(frozen=True)
class TensorTables:
    """Tables of one library; `arguments` are the tensor numbers of all steps, concatenated."""

    shapes: tuple[int, ...]
    places: tuple[TensorPlace, ...]
    arguments: tuple[int, ...]
    first_argument: tuple[int, ...]
    argument_count: tuple[int, ...]
    weight_offsets: tuple[int, ...]
    weight_bytes: int


def tensor_tables(program: Program, plan: ArenaPlan) -> TensorTables:
    """Build the tables of a program and its plan; deterministic."""
    weight_offsets, weight_bytes = _weights(program)
    pool: list[int] = []
    starts: dict[tuple[int, ...], int] = {}
    places = tuple(_place(t, plan, weight_offsets, pool, starts) for t in program.tensors)
    arguments = [step.reads + step.writes for step in program.steps]
    counts = tuple(len(group) for group in arguments)
    firsts = tuple(sum(counts[:i]) for i in range(len(counts)))
    flat = tuple(tensor for group in arguments for tensor in group)
    return TensorTables(tuple(pool) or (1,), places, flat, firsts, counts, weight_offsets, weight_bytes)


def _weights(program: Program) -> tuple[tuple[int, ...], int]:
    offsets, end = [], 0
    for weight in program.weights:
        offsets.append(end)
        end += -(-weight.nbytes // _WEIGHT_ALIGNMENT) * _WEIGHT_ALIGNMENT
    return tuple(offsets), end


def _place(tensor: Tensor, plan: ArenaPlan, weights: tuple[int, ...], pool: list[int], starts: dict) -> TensorPlace:
    if tensor.shape not in starts:
        starts[tensor.shape] = len(pool)
        pool.extend(tensor.shape)
    code, bits = DLPACK[tensor.dtype]
    offset = weights[tensor.weight] if tensor.buffer is None else plan.offsets[tensor.buffer] + tensor.offset
    return TensorPlace(offset, tensor.buffer is None, starts[tensor.shape], len(tensor.shape), code, bits)
