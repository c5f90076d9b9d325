"""Express products and convolutions that ONNX Runtime's optimiser fused with their neighbours."""

from __future__ import annotations

import numpy as np

from ..canonical.graph_context import NodeView, Rule
from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm

#: activations, and the attributes their parameters are
_ACTIVATIONS = {
    "Elu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "LeakyRelu": ("alpha",), "Relu": (),
    "Selu": ("alpha", "gamma"), "Sigmoid": (), "Softplus": (), "Softsign": (), "Tanh": (), "ThresholdedRelu": ("alpha",),
}  # fmt: skip


def _activated(build: NodeBuilder, activation: str, value: str, parameters: list[float], result: str) -> None:
    """Build an activation of `value`; return the reason if it is not known."""
    if activation == "Clip":
        bounds = [build.number(each, np.float32) for each in parameters]
        build.node("Clip", value, *bounds, result=result)
    elif not activation:
        build.node("Identity", value, result=result)
    elif activation == "HardSwish":
        build.node("Mul", value, build.node("HardSigmoid", value, alpha=1 / 6, beta=0.5), result=result)
    elif activation in _ACTIVATIONS:
        build.node(activation, value, result=result, **dict(zip(_ACTIVATIONS[activation], parameters)))
    else:
        raise UnsupportedForm(f"its activation '{activation}' is not supported")


def _conv(node: NodeView, build: NodeBuilder) -> None:
    options = dict(node.attributes)
    activation, parameters = options.pop("activation", ""), options.pop("activation_params", [])
    x, w, bias, other = node.inputs(4)
    value = build.node("Conv", x, w, bias, **options)
    if other:
        value = build.node("Add", value, other)
    _activated(build, activation, value, parameters, node.result)


def _gemm(node: NodeView, build: NodeBuilder) -> None:
    options = dict(node.attributes)
    activation = options.pop("activation", "")
    parameters = [options.pop(f"activation_{each}", None) for each in ("alpha", "beta", "gamma")]
    value = build.node("Gemm", *node.input, **options)
    _activated(build, activation, value, [each for each in parameters if each is not None], node.result)


def _matmul(node: NodeView, build: NodeBuilder) -> None:
    """Build MatMul; `transBatch` brings the first dimension before the last."""
    operands = []
    for name, side in zip(node.input, "AB"):
        last, batch = node.get(f"trans{side}", 0), node.get(f"transBatch{side}", 0)
        rank = node.rank(name)
        if not (last or batch) or rank == 1:
            operands.append(name)
            continue
        if rank is None:
            raise UnsupportedForm("the rank of its operands is not known")
        order = list(range(rank))
        if batch:
            order = [*order[1:-1], 0, order[-1]]
        if last:
            order[-2:] = order[:-3:-1]
        operands.append(build.node("Transpose", name, perm=order))
    alpha = node.get("alpha", 1.0)
    if alpha == 1.0:
        build.node("MatMul", *operands, result=node.result)
    else:
        product = build.node("MatMul", *operands)
        build.node("Mul", product, build.number(alpha, node.dtype(0)), result=node.result)


RULES: dict[str, Rule] = {"FusedConv": _conv, "FusedGemm": _gemm, "FusedMatMul": _matmul}
