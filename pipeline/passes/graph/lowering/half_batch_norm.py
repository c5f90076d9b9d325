"""Normalise batches of float16 in float32, as ONNX Runtime does, and round once: TVM's rule returns float32 numbers.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

from tvm import relax, te, topi

_HALF, _SINGLE = "float16", "float32"


def legalize_batch_norm(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize by TVM's own rule, of operands in float32 if the data are in float16; a rule for LegalizeOps."""
    if str(call.args[0].ty.dtype) != _HALF:
        return call.op.get_attr("FLegalize")(builder, call)
    options = {
        name: getattr(call.attrs, name) for name in ("axis", "epsilon", "center", "scale", "training", "momentum")
    }

    def normalized(*operands: te.Tensor) -> list[te.Tensor]:
        data, _, _, mean, variance = operands
        results = topi.nn.batch_norm(*(topi.cast(each, _SINGLE) for each in operands), **options)
        return [topi.cast(result, like.dtype) for result, like in zip(results, (data, mean, variance), strict=True)]

    return builder.call_te(normalized, *call.args, primfunc_name_hint="batch_norm")
