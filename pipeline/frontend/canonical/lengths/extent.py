"""Compute sizes in which lengths occur that the data decide: numbers, and multiples of one length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from ..graph_context import Context


@dataclass(frozen=True)
class Extent:
    """Size `scale` × length + `offset`; `length` names its value, int64 [1], which is at most `bound`.

    It may be that of a `number`, int64 [1] too, which may be below 0: a size is `scale` × number + `offset` then.
    """

    length: str
    bound: int
    scale: int = 1
    offset: int = 0
    number: str = ""

    @property
    def largest(self) -> int:
        """Return the size of the longest result."""
        return self.scale * self.bound + self.offset

    @property
    def is_length(self) -> bool:
        return (self.scale, self.offset) == (1, 0)

    def __add__(self, other: int | Extent) -> int | Extent:
        if not isinstance(other, Extent):
            return replace(self, offset=self.offset + int(other))
        if other.length != self.length:
            raise TypeError("two lengths")
        scale, offset = self.scale + other.scale, self.offset + other.offset
        return replace(self, scale=scale, offset=offset) if scale else offset

    def __mul__(self, other: int) -> int | Extent:
        if isinstance(other, Extent):
            raise TypeError("a product of lengths")
        scale = self.scale * int(other)
        return replace(self, scale=scale, offset=self.offset * int(other)) if scale else 0

    def __neg__(self) -> int | Extent:
        return self * -1

    def __sub__(self, other: int | Extent) -> int | Extent:
        return self + -other

    def __rsub__(self, other: int) -> int | Extent:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__


#: sizes of a tensor: an array of numbers and extents
Sizes: TypeAlias = np.ndarray


def at_bound(sizes: Sizes) -> np.ndarray:
    """Return sizes as they are for the longest results."""
    return np.vectorize(lambda each: each.largest if isinstance(each, Extent) else int(each), otypes=[np.int64])(sizes)


def is_open(sizes: Sizes) -> bool:
    """Return whether the data decide one of the sizes."""
    return any(isinstance(each, Extent) for each in sizes.flat)


def _equal(one: Sizes, other: Sizes) -> Sizes:
    """Compare sizes; a length is not a negative number, and may be any other."""
    return np.frompyfunc(_same, 2, 1)(one, other)


def _same(one: object, other: object) -> bool:
    for size, number in ((one, other), (other, one)):
        if isinstance(size, Extent):
            if not isinstance(number, int) or number >= 0 or min(size.scale, size.offset) < 0:
                raise TypeError("a length that may be equal")
            return False
    return one == other


def _where(condition: Sizes, one: Sizes, other: Sizes) -> Sizes:
    if is_open(condition):
        raise TypeError("a length decides")
    return np.where(condition.astype(bool), one, other)


def _slice(data: Sizes, starts: Sizes, ends: Sizes, axes: Sizes | None = None, steps: Sizes | None = None) -> Sizes:
    chosen = [slice(None)] * data.ndim
    for number, start in enumerate(starts):
        axis = number if axes is None else int(axes[number])
        step = 1 if steps is None else int(steps[number])
        stop = int(ends[number])
        chosen[axis] = slice(int(start), None if step < 0 and stop < -data.shape[axis] else stop, step)
    return data[tuple(chosen)]


def _squeeze(data: Sizes, axes: Sizes | None = None) -> Sizes:
    return np.squeeze(data, None if axes is None else tuple(int(each) for each in axes))


def _unsqueeze(data: Sizes, axes: Sizes) -> Sizes:
    return np.expand_dims(data, tuple(int(each) for each in axes.flat))


#: ONNX's numbers of int32 and int64, which hold every size
_INTEGERS = (6, 7)
#: operators of sizes, by their attributes
_ARITHMETIC: dict[str, Callable[..., Callable[..., Sizes] | None]] = {
    "Add": lambda **_: lambda one, other: one + other,
    "Sub": lambda **_: lambda one, other: one - other,
    "Mul": lambda **_: lambda one, other: one * other,
    "Cast": lambda to, **_: (lambda data: data) if to in _INTEGERS else None,
    "Equal": lambda **_: _equal,
    "Where": lambda **_: _where,
    "Identity": lambda **_: lambda data: data,
    "Concat": lambda axis, **_: lambda *data: np.concatenate(data, axis),
    "Gather": lambda axis=0, **_: lambda data, places: np.take(data, places.astype(np.int64), axis),
    "Reshape": lambda **_: lambda data, shape: data.reshape([int(each) for each in shape]),
    "Slice": lambda **_: _slice,
    "Squeeze": lambda **_: _squeeze,
    "Transpose": lambda perm=None, **_: lambda data: data.transpose(perm),
    "Unsqueeze": lambda **_: _unsqueeze,
}


def compute_sizes(operator: str, operands: Sequence[Sizes], attributes: dict[str, Any]) -> Sizes | None:
    """Return the sizes that an operator makes of sizes; None if they are no multiples of one length."""
    if operator not in _ARITHMETIC:
        return None
    try:
        compute = _ARITHMETIC[operator](**attributes)
        return None if compute is None else np.asarray(compute(*operands), dtype=object)
    except (IndexError, TypeError, ValueError):
        return None


#: operands that are shapes, by operator
SHAPED = {
    "ConstantOfShape": (0,), "Expand": (1,), "Loop": (0,), "Pad": (1,), "Range": (0, 1, 2), "Reshape": (1,), "Slice": (1, 2), "Tile": (1,), "TopK": (1,),
}  # fmt: skip
#: operators that leave one number as it is
_KEEP = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")


def deciding_numbers(context: Context) -> dict[str, str]:
    """Return the int64 numbers that the data compute for shapes which are not known, by the results that have them."""
    numbers: dict[str, str] = {}
    for name, node in context.producers.items():
        if name and context.shape(name) is None:
            places = SHAPED.get(node.op_type, ())
            own = (_number_behind(each, context) for place, each in enumerate(node.input) if place in places)
            before = (numbers.get(each, "") for each in node.input)
            numbers[name] = next(filter(None, (*own, *before)), "")
    return numbers


def _number_behind(name: str, context: Context) -> str:
    node = context.producers.get(name)
    if node is None or context.constant(name) is not None:
        return ""
    if context.shape(name) not in ((), (1,)):
        # exporters write the shape of an Expand as Where(shape == -1, 1, shape)
        parts = node.input if node.op_type == "Concat" else node.input[1:] if node.op_type == "Where" else ()
        return next(filter(None, (_number_behind(part, context) for part in parts)), "")
    moved = _number_behind(node.input[0], context) if node.op_type in _KEEP else ""
    return moved or (name if context.dtype(name) == np.int64 else "")
