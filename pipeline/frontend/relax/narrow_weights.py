"""Convert nodes that make numbers of narrow weights into kernels, which readers take into themselves.

    bytes: length/2 × channels ─► UnpackNibbles ─► w: uint8, length × channels         the first in the low bits
    w: uint8 ─► DequantizeBlocks ─► (w − zero[block]) · scale[block]: float32          blocks of some along one axis

They are not operators of ONNX: plain_dequantisation.py makes them, just before the import. int4 numbers are stored + 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tvm import relax, te, tirx
from tvm.ir import Expr

UNPACK, BLOCKS = "UnpackNibbles", "DequantizeBlocks"
#: attributes of each
_OPTIONS = {UNPACK: ("axis", "extent", "signed"), BLOCKS: ("axis", "size")}
NARROW_WEIGHTS = frozenset(_OPTIONS)


def convert_narrow(
    builder: relax.BlockBuilder, op: str, inputs: Sequence[relax.Expr | None], attributes: Mapping[str, Any]
) -> relax.Expr:
    """Emit the kernel of a node."""
    kernel: Callable[..., te.Tensor] = _unpack if op == UNPACK else _dequantise
    options = {name: attributes[name] for name in _OPTIONS[op]}
    given = [each for each in inputs if each is not None]
    return builder.emit(builder.call_te(partial(kernel, **options), *given, primfunc_name_hint=op.lower()))


def _unpack(pairs: te.Tensor, *, axis: int, extent: int, signed: int) -> te.Tensor:
    shape = [*pairs.shape[:axis], extent, *pairs.shape[axis + 1 :]]

    def number(*indices: Expr) -> Expr:
        place = indices[axis]
        byte = pairs[(*indices[:axis], tirx.floordiv(place, 2), *indices[axis + 1 :])]
        value = (byte >> (tirx.floormod(place, 2) * 4).astype("uint8")) & tirx.const(15, "uint8")
        return value.astype("int8") - tirx.const(8, "int8") if signed else value

    return te.compute(shape, number, name="unpacked")


def _dequantise(numbers: te.Tensor, scale: te.Tensor, *zero: te.Tensor, axis: int, size: int) -> te.Tensor:
    def value(*indices: Expr) -> Expr:
        block = (*indices[:axis], tirx.floordiv(indices[axis], size), *indices[axis + 1 :])
        number = numbers[indices].astype("float32")
        return (number - zero[0][block].astype("float32") if zero else number) * scale[block]

    return te.compute(numbers.shape, value, name="dequantised")
