"""Read static shapes and dtypes off the types of Relax expressions."""

from __future__ import annotations

from tvm import relax

#: types kept, each with its shape and dtype, by handle: rules ask for those of the same values again and again
_MOST_TYPES = 1 << 14
_TYPES: dict[int, tuple[object, tuple[tuple[int, ...] | None, str]]] = {}


def shape_of(expr: relax.Expr) -> tuple[int, ...] | None:
    """Return the static shape of an expression with a type; None if it has none."""
    return _read_type(expr)[0]


def static_shape(expr: relax.Expr) -> tuple[int, ...]:
    """Return the shape of an expression that is known to have a static one."""
    shape = shape_of(expr)
    if shape is None:
        raise TypeError(f"a value of type {getattr(expr, 'ty', None)} has no static shape")
    return shape


def dtype_of(expr: relax.Expr) -> str:
    """Return the dtype of an expression with a tensor type; empty if it has none."""
    return _read_type(expr)[1]


def _read_type(expr: relax.Expr) -> tuple[tuple[int, ...] | None, str]:
    """Return shape and dtype of an expression's type.

    Types never change. The table holds each, so that no other gets its handle.
    """
    kind = getattr(expr, "ty", None)
    if kind is None:
        return None, ""
    known = _TYPES.get(kind.__chandle__())
    if known is None:
        if len(_TYPES) >= _MOST_TYPES:
            _TYPES.clear()
        known = _TYPES[kind.__chandle__()] = (
            kind,
            (_static(getattr(kind, "shape", None)), str(getattr(kind, "dtype", ""))),
        )
    return known[1]


def _static(shape: relax.Expr | None) -> tuple[int, ...] | None:
    extents = getattr(shape, "values", None)
    if extents is None:
        return None
    numbers = [int(extent.value) for extent in extents if hasattr(extent, "value")]
    return tuple(numbers) if len(numbers) == len(extents) else None
