"""Fit the value of a sample to an input of the model: add axes of length 1, and cast without loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError

#: what else to write where values are of another kind than the input
CONVERT = "Declare the input in the form of the samples (dtype, layout, mean and std), or give a `FILE.py:function` that converts them."


@dataclass(frozen=True)
class InputForm:
    """Input of a model: its name, dtype and static shape; of quantised numbers, also their scale and zero point."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    quantisation: tuple[float, int] | None = None

    def __str__(self) -> str:
        """Return dtype and shape, as messages show them."""
        return f"{self.dtype}{list(self.shape)}"


def fit_value(value: np.ndarray, form: InputForm, where: str) -> tuple[np.ndarray, str]:
    """Return the value in the input's shape and dtype, and a remark on a cast; empty for none.

    Raises ConfigError for another shape, a cast that loses something, or NaN; `where` names the sample.
    """
    shaped = _fit_shape(value, form, where)
    if _is_float(shaped.dtype) and (nan := np.isnan(shaped.astype(np.float64))).any():
        place = np.argwhere(nan)[0].tolist()
        raise ConfigError(
            f"{where}: input '{form.name}' is NaN at {place}.", "Leave the sample out, or give a number there."
        )
    cast, remark = _fit_dtype(shaped, form, where)
    return np.ascontiguousarray(cast).reshape(form.shape), remark


def _fit_shape(value: np.ndarray, form: InputForm, where: str) -> np.ndarray:
    lead = len(form.shape) - value.ndim
    if lead >= 0 and form.shape[lead:] == value.shape and set(form.shape[:lead]) <= {1}:
        return value.reshape(form.shape)
    hint = "Give samples of that shape, with or without its first axes of length 1."
    if lead == 1 and form.shape[1:] == value.shape:
        single = "x".join(map(str, (1, *value.shape)))
        hint = (
            f"The model takes {form.shape[0]} at once: set --shape {form.name}={single}, "
            f"or give as many in each sample."
        )
    raise ConfigError(
        f"{where}: input '{form.name}' is {value.dtype}{list(value.shape)}, the model takes {form}.", hint
    )


def _fit_dtype(value: np.ndarray, form: InputForm, where: str) -> tuple[np.ndarray, str]:
    given, wanted = value.dtype, form.dtype
    if given == wanted:
        return value, ""
    if form.quantisation is not None and _is_integer(wanted) and _is_float(given):
        scale, zero_point = form.quantisation
        return _quantise(value, scale, zero_point, wanted), f"input '{form.name}': {given} is quantised by {scale:g}"
    refusal = ConfigError(f"{where}: input '{form.name}' is {given}, the model takes {wanted}.", CONVERT)
    if given.kind in "OSUMmcV" and not _is_float(given):
        raise refusal
    same_sign = given.itemsize > 1 or np.can_cast(given, wanted) or wanted.itemsize > 1  # bytes are pictures
    if _is_integer(wanted) and not (_is_integer(given) and same_sign):
        raise refusal
    with np.errstate(over="ignore", invalid="ignore"):
        cast = value.astype(wanted)
        changed = cast.astype(given) != value
    if not changed.any():
        scaled = given.itemsize == 1 and _is_float(wanted)
        return cast, f"input '{form.name}': {given} is read as {wanted}, not scaled" if scaled else ""
    if given == np.float64 and wanted == np.float32 and np.isfinite(cast[np.isfinite(value)]).all():
        return cast, f"input '{form.name}': float64 is rounded to float32"
    first = value[tuple(np.argwhere(changed)[0])]
    raise ConfigError(
        f"{where}: input '{form.name}' is {given}, the model takes {wanted}, which cannot hold {first!s}.", CONVERT
    )


def _quantise(value: np.ndarray, scale: float, zero_point: int, dtype: np.dtype) -> np.ndarray:
    """Quantise floats as QuantizeLinear does: in float32, half to even, saturated."""
    limits = np.iinfo(dtype)
    steps = np.rint(value.astype(np.float32) / np.float32(scale)).astype(np.float64) + zero_point
    return np.clip(steps, limits.min, limits.max).astype(dtype)


def _is_integer(dtype: np.dtype) -> bool:
    return dtype.kind in "iub" or dtype.name in ("int4", "uint4")


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"
