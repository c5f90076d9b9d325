"""Hold scales, zero points and biases of a quantised node: as a number in its kernel, or as an operand of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm import relax, te, tirx
from tvm.ir import Expr, GenericConst

from ...canonical.node_form import UnsupportedForm


@dataclass(frozen=True)
class Quantity:
    """Quantity of one number, else of one for each row or column: operand `place`, aligned with the last dimensions."""

    number: int | float | None = None
    place: int | None = None

    def at(self, operands: Sequence[te.Tensor], indices: Sequence[Expr], dtype: str) -> Expr:
        """Return its number at an element of a result, of type `dtype`."""
        if self.place is None:
            return tirx.const(self.number, dtype)
        tensor = operands[self.place]
        own = list(indices)[len(indices) - len(tensor.shape) :]
        value = tensor[tuple(index if int(extent) > 1 else 0 for index, extent in zip(own, tensor.shape, strict=True))]
        return value.astype(dtype)

    @property
    def is_zero(self) -> bool:
        return self.place is None and self.number == 0


class Operands:
    """Collect the operands of a kernel, tensors first."""

    def __init__(self, builder: relax.BlockBuilder, *tensors: relax.Expr):
        self.builder, self.given = builder, list(tensors)

    def quantity(self, value: relax.Expr | None, shape: Sequence[int]) -> Quantity | None:
        """Add a scalar, or numbers that broadcast to `shape`; a constant of equal numbers is not an operand."""
        if value is None:
            return None
        if isinstance(value, GenericConst):
            return self._constant(value.value.numpy(), shape)
        return self._place(shaped(self.builder, value, shape))

    def multiplier(self, scales: Sequence[relax.Expr], shapes: Sequence[Sequence[int]]) -> Quantity:
        """Add x's scale × w's scale ÷ y's scale, computed in float32 in that order; each scale takes its shape.

        Raises UnsupportedForm if that is infinite: targets round it differently.
        """
        pairs = list(zip(scales, shapes, strict=True))
        if all(isinstance(each, GenericConst) for each in scales):
            x, w, y = (
                each.value.numpy().astype(np.float32).reshape(_fitting(extents(each), shape)) for each, shape in pairs
            )
            with np.errstate(over="ignore", invalid="ignore"):
                product = np.asarray(x * w / y, np.float32)
            if not np.isfinite(product).all():
                raise UnsupportedForm("x's scale × w's scale ÷ y's scale exceeds float32; quantise the model again")
            return self._constant(product, product.shape)
        x, w, y = (shaped(self.builder, relax.op.astype(each, "float32"), shape) for each, shape in pairs)
        return self._place(self.builder.emit(relax.op.divide(self.builder.emit(relax.op.multiply(x, w)), y)))

    def _constant(self, value: np.ndarray, shape: Sequence[int]) -> Quantity:
        value = value.reshape(_fitting(value.shape, shape))
        first = value.ravel()[0]
        return Quantity(first.item()) if (value == first).all() else self._place(relax.const(_narrow(value)))

    def _place(self, value: relax.Expr) -> Quantity:
        self.given.append(value)
        return Quantity(place=len(self.given) - 1)


def _narrow(value: np.ndarray) -> np.ndarray:
    """Return integers in int16 if they fit: most biases do, and kernels widen what they read."""
    limits = np.iinfo(np.int16)
    fits = value.dtype == np.int32 and limits.min <= value.min() and value.max() <= limits.max
    return value.astype(np.int16) if fits else value


def shaped(builder: relax.BlockBuilder, value: relax.Expr, shape: Sequence[int]) -> relax.Expr:
    """Reshape `value` so that it broadcasts to `shape`. Raises ValueError if its numbers do not fit."""
    value = builder.normalize(value)
    wanted = _fitting(extents(value), shape)
    return value if extents(value) == wanted else builder.emit(relax.op.reshape(value, wanted))


def extents(value: relax.Expr) -> tuple[int, ...]:
    """Return the shape of a value."""
    return tuple(int(extent) for extent in value.ty.shape)


def _fitting(given: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to give to a quantity of shape `given`: none for one number, a line of numbers along `shape`."""
    count = int(np.prod(given))
    if count == 1:
        return ()
    if len(given) == len(shape) and all(one in (1, other) for one, other in zip(given, shape)):
        return tuple(given)
    lines = [place for place, extent in enumerate(shape) if extent == count]
    if len(given) != 1 or not lines:
        raise UnsupportedForm(f"a scale or zero point of shape {list(given)} does not fit {list(shape)}")
    return tuple(count if place == lines[-1] else 1 for place in range(len(shape)))
