"""Sum float16 numbers in float32, as ONNX Runtime does: a float16 sum of a few hundred terms loses most of its digits.

Products and convolutions read float16 and accumulate in float32; other operators that sum read their operands cast. A
call that names its accumulator (`to-mixed-precision{sum=float16}`) keeps it. Results are rounded to float16 once.
"""

from __future__ import annotations

from tvm import relax
from tvm.ir import IRModule, Op

from ..rules.convolution.geometry import CONVOLUTIONS, TRANSPOSED, Geometry
from ..rules.dataflow import bindings_of, dtype_of, operator_of
from ..rules.replace_values import replace_values

#: products take the dtype of their accumulator
_PRODUCTS = frozenset({"relax.matmul", *CONVOLUTIONS, *TRANSPOSED})
#: other operators that sum, or take exponentials of sums
_SUMS = frozenset(
    {
        "relax.mean", "relax.sum", "relax.prod", "relax.variance", "relax.std", "relax.cumsum",
        "relax.nn.softmax", "relax.nn.log_softmax", "relax.nn.layer_norm", "relax.nn.group_norm", "relax.nn.instance_norm",
        "relax.nn.rms_norm", *(f"relax.nn.{kind}avg_pool{rank}d" for rank in (1, 2, 3) for kind in ("", "adaptive_")),
    }
)  # fmt: skip
_HALF, _SINGLE = "float16", "float32"


def sum_halves(module: IRModule) -> IRModule:
    """Return `module` with the float16 sums of `main` in float32; the same object if it has none."""
    replaced = {}
    for binding in bindings_of(module["main"]):
        call = getattr(binding, "value", None)
        if isinstance(call, relax.Call) and isinstance(call.op, Op) and dtype_of(call) == _HALF:
            wide = _wide(call)
            if wide is not None:
                replaced[binding.var] = relax.op.astype(wide, _HALF)
    return replace_values(module, replaced) if replaced else module


def _wide(call: relax.Call) -> relax.Expr | None:
    """Return `call` with a result in float32; None for one that does not sum, or names its accumulator."""
    name = operator_of(call)
    if name in _PRODUCTS and call.attrs.out_dtype:
        return None
    if name == "relax.matmul":
        return relax.op.matmul(*call.args, _SINGLE)
    geometry = Geometry.of(call)
    if geometry is not None:
        data, weight = call.args
        return geometry.call(data, weight, _SINGLE)
    if name not in _PRODUCTS | _SUMS:
        return None
    operands = [relax.op.astype(each, _SINGLE) if dtype_of(each) == _HALF else each for each in call.args]
    return relax.Call(call.op, operands, call.attrs, call.ty_args)
