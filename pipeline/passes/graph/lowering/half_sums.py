"""Sum float16 numbers in float32, as ONNX Runtime does: a float16 sum of a few hundred terms loses most of its digits.

Products and convolutions read float16 and accumulate in float32; other operators that sum read their operands cast. A
call that names its accumulator (`to-mixed-precision{sum=float16}`) keeps it. Results are rounded to float16 once.
"""

from __future__ import annotations

from tvm import relax
from tvm.ir import IRModule, Op

from ..rules.replace_values import replace_values

#: products, by operator: they take the dtype of their accumulator
_PRODUCTS = frozenset(
    {"relax.matmul", *(f"relax.nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose"))}
)
#: other operators that sum, or take exponentials of sums
_SUMS = frozenset(
    {
        "relax.mean", "relax.sum", "relax.prod", "relax.variance", "relax.std", "relax.cumsum",
        "relax.nn.softmax", "relax.nn.log_softmax", "relax.nn.layer_norm", "relax.nn.group_norm", "relax.nn.instance_norm",
        "relax.nn.rms_norm", *(f"relax.nn.{kind}avg_pool{rank}d" for rank in (1, 2, 3) for kind in ("", "adaptive_")),
    }
)  # fmt: skip
#: attributes of a convolution but for its accumulator
_GEOMETRY = (
    "strides", "padding", "output_padding", "dilation", "groups", "data_layout", "kernel_layout", "out_layout",
)  # fmt: skip
_HALF, _SINGLE = "float16", "float32"


def sum_halves(module: IRModule) -> IRModule:
    """Return `module` with the float16 sums of `main` in float32; the same object if it has none."""
    replaced = {}
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            call = getattr(binding, "value", None)
            if isinstance(call, relax.Call) and isinstance(call.op, Op) and _is_half(call):
                wide = _wide(call)
                if wide is not None:
                    replaced[binding.var] = relax.op.astype(wide, _HALF)
    return replace_values(module, replaced) if replaced else module


def _wide(call: relax.Call) -> relax.Expr | None:
    """Return `call` with a result in float32; None for one that does not sum, or names its accumulator."""
    name = str(call.op.name)
    if name in _PRODUCTS and not call.attrs.out_dtype:
        return _product(call, name)
    if name in _SUMS:
        operands = [relax.op.astype(each, _SINGLE) if _is_half(each) else each for each in call.args]
        return relax.Call(call.op, operands, call.attrs, call.ty_args)
    return None


def _product(call: relax.Call, name: str) -> relax.Expr:
    """Return a product or convolution with a float32 accumulator."""
    if name == "relax.matmul":
        return relax.op.matmul(*call.args, _SINGLE)
    attrs = call.attrs
    told = {each: getattr(attrs, each) for each in _GEOMETRY if hasattr(attrs, each)}
    return getattr(relax.op.nn, name.removeprefix("relax.nn."))(*call.args, **told, out_dtype=_SINGLE)


def _is_half(value: relax.Expr) -> bool:
    return isinstance(value.ty, relax.TensorType) and str(value.ty.dtype) == _HALF
