"""Name the traits of ONNX's operators: those that only move elements, compute each alone, or on integers; follow an axis through them."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: operators that keep all elements in their order
VIEWS = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
#: operators that pass all numbers on in their order, perhaps in another dtype
PASSES = VIEWS | {"Cast", "Identity"}
#: operators whose result holds elements of their first operand, as they are
MOVES = VIEWS | frozenset(
    "DepthToSpace Expand Gather GatherElements GatherND Identity Slice SpaceToDepth Split Tile Transpose".split()
)
#: operators of each element that every implementation rounds alike
EXACT = frozenset(
    "Abs Add Cast Ceil Clip DequantizeLinear Div Floor Max Min Mul Neg PRelu LeakyRelu Relu Round Sqrt Sub Where".split()
)
#: comparisons and logic of each element
LOGIC = frozenset(
    """
    And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Mod Not Or Sign
    Xor
    """.split()
)
#: all operators that work on each element alone
ELEMENTWISE = (
    EXACT
    | LOGIC
    | frozenset(
        """
    Acos Acosh Asin Asinh Atan Atanh Celu Cos Cosh Dropout Elu Erf Exp Gelu HardSigmoid HardSwish Identity Log Mean Mish Pow
    QuantizeLinear Reciprocal Selu Shrink Sigmoid Sin Sinh Softplus Softsign Sum Tan Tanh ThresholdedRelu
    """.split()
    )
)
#: operators that make integers of floats
QUANTISES = frozenset({"DynamicQuantizeLinear", "QuantizeLinear"})
#: layers on integers: the places of both operands, each with its scale and zero point; results of QLinear ones have them at 6 and 7
_QLINEAR, _INTEGER = ((0, 1, 2), (3, 4, 5)), ((0, None, 2), (1, None, 3))
INTEGER_LAYERS: dict[str, tuple[tuple[int, int | None, int], ...]] = {
    "ConvInteger": _INTEGER, "MatMulInteger": _INTEGER, "QLinearConv": _QLINEAR, "QLinearMatMul": _QLINEAR,
}  # fmt: skip


def follow_axis(
    operator: str, axis: int, before: Sequence[int] | None, after: Sequence[int] | None, order: Sequence[int] | None
) -> int | None:
    """Return the axis of the result that holds `axis` of the operand; None if no axis does.

    `before` and `after` are the shapes, as far as they are known, `order` is that of a Transpose, if it has one.
    """
    if before is None or after is None:
        return None
    if operator == "Identity":
        return axis
    if operator == "Transpose":
        return list(order or range(len(before))[::-1]).index(axis)
    if operator not in VIEWS:
        return None
    outer = math.prod(before[:axis])
    places = (place for place, size in enumerate(after) if size == before[axis] and math.prod(after[:place]) == outer)
    return next(places, None)
