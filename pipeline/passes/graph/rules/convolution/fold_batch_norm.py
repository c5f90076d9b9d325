"""`fold-batch-norm`: compute a batch norm as one scale and one shift per channel, however it is written.

    batch_norm(x, g, b, m, v)  =  x · s + t        s = g / √(v + ε)    t = b − m · s
    ((x − m) / √(v + ε)) · g + b    and any chain of sums, differences, products, quotients with constants

Legal for inference, parameters that are constants or computed from constants, float dtypes, values along one axis.
The chain shrinks, and each of its values but the last has one reader. s and t are computed in float64 and rounded
once. `fold-scale-axis` then takes them into the weights of convolutions and dense layers before or behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow


class FoldBatchNorm(Rule):
    """Replace batch norms, and chains of arithmetic with constants, by a product and a sum."""

    name = "fold-batch-norm"
    summary = "compute a batch norm, or a chain of arithmetic with constants, as one scale and one shift"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        found: dict[Var, Expr] = {}
        inside: set[Var] = set()
        for var, call in reversed(list(graph.calls())):
            if var not in inside:
                found |= _operator(var, call, graph) or _chain(var, call, graph, inside)
        return found


def _operator(var: Var, call: Call, graph: Dataflow) -> dict[Var, Expr]:
    """Return the items of a batch norm's result: the scaled value, and mean and variance as they were."""
    import numpy as np
    from tvm import relax

    from ..dataflow import dtype_of, operator_of, shape_of
    from .channels import Affine, Channels
    from .constants import FLOATS

    if operator_of(call) != "relax.nn.batch_norm" or call.attrs.training or dtype_of(call.args[0]) not in FLOATS:
        return {}
    items = {user: graph.value(user) for user in graph.users(var)}
    if len(items) != graph.uses(var) or not all(isinstance(item, relax.TupleGetItem) for item in items.values()):
        return {}
    given = [graph.constant(each) for each in call.args[1:]]
    parameters = [each.astype("float64") for each in given if each is not None]
    shape = shape_of(call.args[0])
    if shape is None or len(parameters) < len(given):
        return {}
    gamma, beta, mean, variance = parameters
    with np.errstate(all="ignore"):
        scale = (gamma if call.attrs.scale else 1.0) / np.sqrt(variance + call.attrs.epsilon)
        shift = (beta if call.attrs.center else 0.0) - mean * scale
    axis = int(call.attrs.axis) % len(shape)
    new = Affine(Channels(axis, scale), Channels(axis, shift)).reduced().of(call.args[0])
    if new is None:
        return {}
    return {user: (new, call.args[3], call.args[4])[item.index] for user, item in items.items()}


def _chain(var: Var, call: Call, graph: Dataflow, inside: set[Var]) -> dict[Var, Expr]:
    """Return the last value of a chain as one scale and shift; nothing if that is no shorter."""
    from .channels import STEPS, Affine, affine_step

    whole, operand, count = Affine(), None, 0
    passed: list[Var] = []
    while (step := affine_step(call, graph)) is not None and (joined := whole.after(step[1])) is not None:
        operand, whole, count = step[0], joined, count + 1
        inner = graph.call(operand, *STEPS)
        if graph.uses(operand) != 1 or inner is None:
            break
        passed.append(graph.variable(operand))
        call = inner
    if operand is None or count <= (whole.scale is not None) + (whole.shift is not None):
        return {}
    new = whole.of(operand)
    if new is None:
        return {}
    inside.update(passed)
    return {var: new}
