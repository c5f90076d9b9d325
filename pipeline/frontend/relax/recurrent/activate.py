"""Write the activations of recurrent nodes. Formulas: the ONNX operator specification of LSTM."""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx
from tvm.ir import Expr

from ...canonical.operators.recurrent_activations import Activation

_FORMULAS: dict[str, Callable[[Expr, Expr, Expr], Expr]] = {
    "Affine": lambda x, alpha, beta: alpha * x + beta,
    "Elu": lambda x, alpha, beta: tirx.Select(x >= 0, x, alpha * (tirx.exp(tirx.min(x, _zero(x))) - 1)),
    "HardSigmoid": lambda x, alpha, beta: tirx.max(tirx.min(alpha * x + beta, _zero(x) + 1), _zero(x)),
    "LeakyRelu": lambda x, alpha, beta: tirx.Select(x >= 0, x, alpha * x),
    "Relu": lambda x, alpha, beta: tirx.max(x, _zero(x)),
    "ScaledTanh": lambda x, alpha, beta: alpha * tirx.tanh(beta * x),
    "Sigmoid": lambda x, alpha, beta: tirx.sigmoid(x),
    "Softplus": lambda x, alpha, beta: tirx.max(x, _zero(x)) + tirx.log(tirx.exp(-tirx.abs(x)) + 1),
    "Softsign": lambda x, alpha, beta: x / (tirx.abs(x) + 1),
    "Tanh": lambda x, alpha, beta: tirx.tanh(x),
    "ThresholdedRelu": lambda x, alpha, beta: tirx.Select(x >= alpha, x, _zero(x)),
}


def activate(activation: Activation, value: Expr) -> Expr:
    """Return the activation of a value."""
    alpha, beta = (tirx.const(each, _dtype(value)) for each in activation[1:])
    return _FORMULAS[activation.name](value, alpha, beta)


def _zero(value: Expr) -> Expr:
    return tirx.const(0, _dtype(value))


def _dtype(value: Expr) -> str:
    return str(value.ty.dtype)
