"""Read the activations of recurrent nodes: names in any case, alphas and betas in the order of those that take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..node_builder import NodeBuilder

#: alpha and beta without an attribute, None for an activation that takes none; implementations differ on those of `_GIVEN`
_KNOWN: dict[str, tuple[float | None, float | None]] = {
    "Affine": (1.0, 0.0), "Elu": (1.0, None), "HardSigmoid": (0.2, 0.5), "LeakyRelu": (0.01, None), "Relu": (None, None),
    "ScaledTanh": (1.0, 1.0), "Sigmoid": (None, None), "Softplus": (None, None), "Softsign": (None, None), "Tanh": (None, None),
    "ThresholdedRelu": (1.0, None),
}  # fmt: skip
_GIVEN = frozenset({"Affine", "ScaledTanh", "ThresholdedRelu"})
_BY_LOWER_CASE = {name.lower(): name for name in _KNOWN}
#: activations of one direction of each operator
DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


class Activation(NamedTuple):
    """Activation by ONNX's name, with the numbers it takes."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0

    def build(self, build: NodeBuilder, value: str, dtype: np.dtype) -> str:
        """Build the activation of a value of `dtype`."""
        if self.name in ("Affine", "Elu", "ScaledTanh", "ThresholdedRelu"):
            alpha, beta, zero, one = (build.number(each, dtype) for each in (*self[1:], 0, 1))
            if self.name == "Affine":
                return build.node("Add", build.node("Mul", value, alpha), beta)
            if self.name == "ScaledTanh":
                return build.node("Mul", build.node("Tanh", build.node("Mul", value, beta)), alpha)
            if self.name == "ThresholdedRelu":
                return build.node("Where", build.node("Greater", value, alpha), value, zero)
            below = build.node("Sub", build.node("Exp", build.node("Min", value, zero)), one)
            return build.node("Add", build.node("Relu", value), build.node("Mul", below, alpha))
        numbers: dict[str, Any] = {key: number for key, number in zip(("alpha", "beta"), self[1:]) if self.takes(key)}
        return build.node(self.name, value, **numbers)

    def takes(self, number: str) -> bool:
        """Return whether the activation takes an "alpha" or "beta"."""
        return _KNOWN[self.name][number == "beta"] is not None


def fault_of_activations(attributes: Mapping[str, Any]) -> str | None:
    """Return the reason if an activation is not known, or lacks a number on whose default implementations differ."""
    left = {key: len(attributes.get(f"activation_{key}") or ()) for key in ("alpha", "beta")}
    for given in attributes.get("activations") or ():
        name = _BY_LOWER_CASE.get(given.lower())
        if name is None:
            return f"its activation {given} is not known"
        for key in filter(Activation(name).takes, left):
            left[key] -= 1
            if left[key] < 0 and name in _GIVEN:
                return f"its attribute 'activation_{key}' has no number for {name}"
    return None


def read_activations(op: str, attributes: Mapping[str, Any], directions: int) -> tuple[tuple[Activation, ...], ...]:
    """Return the activations of each direction of a node."""
    names = [_BY_LOWER_CASE[each.lower()] for each in attributes.get("activations") or DEFAULTS[op] * directions]
    alphas, betas = (iter(attributes.get(f"activation_{each}") or ()) for each in ("alpha", "beta"))
    read = []
    for name in names:
        alpha, beta = _KNOWN[name]
        numbers = (0.0 if alpha is None else next(alphas, alpha), 0.0 if beta is None else next(betas, beta))
        read.append(Activation(name, *map(float, numbers)))
    each = len(read) // directions
    return tuple(tuple(read[number * each : (number + 1) * each]) for number in range(directions))


def direction_activations(op: str, attributes: Mapping[str, Any], number: int, directions: int) -> dict[str, Any]:
    """Return the attributes for the activations of one direction alone; none without any."""
    if not attributes.get("activations"):
        return {}
    own = read_activations(op, attributes, directions)[number]
    given: dict[str, Any] = {"activations": [each.name for each in own]}
    for place, key in enumerate(("alpha", "beta")):
        numbers = [each[1 + place] for each in own if each.takes(key)]
        if numbers:
            given[f"activation_{key}"] = numbers
    return given
