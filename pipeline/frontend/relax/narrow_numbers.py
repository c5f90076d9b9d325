"""Convert casts from and to numbers of few bits: integer arithmetic on codes, in uint8 or uint16, on any target.

    x: float32 ─► EncodeBits ─► codes: uint8 of float8_e4m3fn, uint16 of bfloat16 … ─► DecodeBits ─► y: float32

They are not operators of ONNX: `code_narrow_casts` makes them just before the import. Integers of 2 and 4 bits are
themselves in int8 or uint8. Halves are rounded to even ones; integers away from 0, their low bits, as ONNX Runtime does.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper
from tvm import relax, te, tirx
from tvm.ir import Expr

from ..canonical.node_builder import attributes_of
from ..canonical.ports.values import NARROW, dtype_of, elem_type

ENCODE, DECODE = "EncodeBits", "DecodeBits"
NARROW_CASTS = frozenset({ENCODE, DECODE})
_CASTS = frozenset({"BitCast", "Cast"})
#: of float32
_MANTISSA, _BIAS, _INFINITY = 23, 127, 0xFF << 23


class _Format(NamedTuple):
    """Floats of a sign, an exponent and a mantissa: its bits, the bias, and codes of the largest number, NaN and infinity."""

    mantissa: int
    bias: int
    largest: int
    nan: int
    infinity: int | None = None
    width: int = 8

    @property
    def sign(self) -> int:
        """Return the place of the bit of the sign."""
        return self.width - 1

    @property
    def one_zero(self) -> bool:
        """Return whether the code of a negative zero means NaN."""
        return self.width == 8 and self.nan == 1 << self.sign

    @property
    def carrier(self) -> str:
        """Return the dtype of codes."""
        return "uint16" if self.width > 8 else "uint8"


#: Micikevicius et al., "FP8 formats for deep learning" (2022); Noune et al., "8-bit numerical formats for deep neural networks"
#: (2022), for those of one zero; "OCP microscaling formats" (2023) for four bits
_FORMATS = {
    "bfloat16": _Format(7, 127, 0x7F7F, 0x7FC0, 0x7F80, width=16),
    "float8_e4m3fn": _Format(3, 7, 0x7E, 0x7F),
    "float8_e4m3fnuz": _Format(3, 8, 0x7F, 0x80),
    "float8_e5m2": _Format(2, 15, 0x7B, 0x7F, 0x7C),
    "float8_e5m2fnuz": _Format(2, 16, 0x7F, 0x80),
    "float4_e2m1fn": _Format(1, 1, 7, 8, width=4),
}


def code_narrow_casts(graph: onnx.GraphProto) -> onnx.GraphProto:
    """Return `graph` with narrow constants as codes, and nodes of this module for casts from and to narrow numbers."""
    narrow = {tensor.name: dtype_of(tensor.data_type) for tensor in graph.initializer}
    narrow = {name: dtype for name, dtype in narrow.items() if dtype in NARROW}
    targets = {node.output[0]: dtype_of(attributes_of(node)["to"]) for node in graph.node if node.op_type in _CASTS}
    narrow |= {name: dtype for name, dtype in targets.items() if dtype in NARROW}
    if not narrow:
        return graph
    coded = deepcopy(graph)
    for tensor in coded.initializer:
        if tensor.name in narrow:
            tensor.CopyFrom(numpy_helper.from_array(_codes(numpy_helper.to_array(tensor)), tensor.name))
    for node in coded.node:
        if node.op_type == "BitCast" and (dtype := targets[node.output[0]]) in _FORMATS:
            node.attribute[0].i = elem_type(_FORMATS[dtype].carrier)
        elif node.op_type == "Cast":
            _code(node, narrow.get(node.input[0]), narrow.get(node.output[0]))
    return coded


def _codes(numbers: np.ndarray) -> np.ndarray:
    form = _FORMATS.get(numbers.dtype.name)
    return numbers.astype(NARROW[numbers.dtype.name]) if form is None else numbers.view(form.carrier)


def _code(node: onnx.NodeProto, before: str | None, after: str | None) -> None:
    """Make a Cast, in place, a node of this module; integers need none to be read."""
    if after is not None:
        # only floats of eight bits and fewer may stay within their largest number
        limited = bool(attributes_of(node).get("saturate", 1)) and after != "bfloat16"
        options, operator = {"dtype": after, "limited": int(limited)}, ENCODE
    elif before in _FORMATS:
        options, operator = {"dtype": before}, DECODE
    else:
        return
    node.CopyFrom(helper.make_node(operator, node.input, node.output, name=node.name, **options))


def convert_narrow_cast(
    builder: relax.BlockBuilder, op: str, value: relax.Expr, attributes: Mapping[str, Any]
) -> relax.Expr:
    """Emit the kernel of a node."""
    dtype = attributes["dtype"].decode()
    form = _FORMATS.get(dtype)
    if form is None:
        bits = int(dtype[-1])
        floats = "float" in str(value.ty.dtype)
        convert = partial(_whole, floats=floats, bits=bits, signed=not dtype.startswith("u"))
    elif op == DECODE:
        convert = partial(_decoded, form=form)
    else:
        convert = partial(_encoded, form=form, limited=bool(attributes["limited"]))
    return builder.emit(builder.call_te(partial(_kernel, convert=convert), value, primfunc_name_hint=op.lower()))


def convert_bit_cast(builder: relax.BlockBuilder, value: relax.Expr, dtype: str) -> relax.Expr:
    """Emit the kernel that reads the bits of numbers as another dtype."""
    given = str(value.ty.dtype)
    if "bool" in (given, dtype):
        return builder.emit(relax.op.astype(value, dtype))

    def bits(number: Expr) -> Expr:
        return tirx.reinterpret(dtype, number)

    return builder.emit(builder.call_te(partial(_kernel, convert=bits), value, primfunc_name_hint="bit_cast"))


def _kernel(values: te.Tensor, convert: Any) -> te.Tensor:
    return te.compute(values.shape, lambda *indices: convert(values[indices]), name="bits")


def _word(number: int) -> Expr:
    return tirx.const(number, "uint32")


def _encoded(number: Expr, form: _Format, limited: bool) -> Expr:
    """Return the code of a float32; those beyond the largest number get its code if `limited`."""
    word = tirx.reinterpret("uint32", number)
    size, sign = word & _word(0x7FFFFFFF), word >> _word(31)
    exponent = tirx.max(size >> _word(_MANTISSA), _word(1))
    hidden = tirx.Select(size >= _word(1 << _MANTISSA), _word(1 << _MANTISSA), _word(0))
    digits = (size & _word((1 << _MANTISSA) - 1)) | hidden
    least = _word(1 - form.bias + _BIAS)  # exponent of the least normal number
    # bounded by its operands alone, so that no kernel checks its shifts
    lost = _word(_MANTISSA - form.mantissa) + (least - tirx.min(least, exponent))
    lost = tirx.min(lost, _word(_MANTISSA + 2))
    odd = (digits >> lost) & _word(1)
    kept = (digits + (_word(1) << (lost - _word(1))) - _word(1) + odd) >> lost
    code = kept + ((tirx.max(least, exponent) - least) << _word(form.mantissa))
    beyond = form.largest if limited else form.infinity or form.nan
    code = tirx.Select(code > _word(form.largest), _word(beyond), code)
    code = tirx.Select(size > _word(_INFINITY), _word(form.nan), code)
    signed = code | (sign << _word(form.sign))
    if form.one_zero:
        signed = tirx.Select(tirx.Or(code.equal(_word(0)), code.equal(_word(form.nan))), code, signed)
    return signed.astype(form.carrier)


def _decoded(code: Expr, form: _Format) -> Expr:
    """Return the float32 of a code."""
    word = code.astype("uint32")
    size, sign = word & _word((1 << form.sign) - 1), word >> _word(form.sign)
    if form.bias == _BIAS:  # bfloat16 is the upper half
        return tirx.reinterpret("float32", word << _word(16))
    normal = (size << _word(_MANTISSA - form.mantissa)) + _word((_BIAS - form.bias) << _MANTISSA)
    small = size.astype("float32") * tirx.const(2.0 ** (1 - form.bias - form.mantissa), "float32")
    small = tirx.reinterpret("uint32", small)
    bits = tirx.Select(size < _word(1 << form.mantissa), small, normal)
    not_a_number = _word(_INFINITY | 1 << (_MANTISSA - 1))
    if form.infinity is not None:
        bits = tirx.Select(size.equal(_word(form.infinity)), _word(_INFINITY), bits)
    if form.largest < (1 << form.sign) - 1:
        above = form.largest if form.infinity is None else form.infinity
        bits = tirx.Select(size > _word(above), not_a_number, bits)
    bits = bits | (sign << _word(31))
    if form.one_zero:
        bits = tirx.Select(word.equal(_word(form.nan)), not_a_number, bits)
    return tirx.reinterpret("float32", bits)


def _whole(number: Expr, floats: bool, bits: int, signed: bool) -> Expr:
    """Return the low bits of an integer, or of a float rounded away from 0."""
    if floats:
        size = tirx.min(tirx.abs(number), tirx.const(float(1 << 30), "float32"))
        whole = size.astype("int32")
        up = size - whole.astype("float32") >= tirx.const(0.5, "float32")
        whole = whole + tirx.Select(up, tirx.const(1, "int32"), tirx.const(0, "int32"))
        nothing = tirx.const(0, "float32")
        whole = tirx.Select(number < nothing, tirx.const(0, "int32") - whole, whole)
        whole = tirx.Select(tirx.isnan(number), tirx.const(0, "int32"), whole)
    else:
        whole = number.astype("int32")
    half = tirx.const(1 << (bits - 1), "int32")
    low = whole & tirx.const((1 << bits) - 1, "int32")
    return ((low ^ half) - half).astype("int8") if signed else low.astype("uint8")
