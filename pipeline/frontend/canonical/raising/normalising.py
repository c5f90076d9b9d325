"""Raise normalisations and Dropout: Softmax over several dimensions, statistics by element, training."""

from __future__ import annotations

import numpy as np

from ..node_form import UnsupportedForm
from .old_form import OldForm, Rule, raise_at

_TRAINING = "it is in training mode"


def _softmax(form: OldForm) -> None:
    """Take all dimensions from `axis` on as one, as below set 13."""
    x, rank = form.input[0], form.rank(0)
    axis = int(form.get("axis", 1))
    if rank is not None and axis in (rank - 1, -1):
        form.keep(x, axis=-1)
        return
    if rank is None and axis < 0:
        raise UnsupportedForm("the rank of its operand is not known")
    shape = form.build.node("Shape", x)
    flat = form.build.node("Flatten", x, axis=axis if axis >= 0 or rank is None else axis + rank)
    rows = form.build.node(form.op_type, flat, axis=-1)
    form.keep(rows, shape, op="Reshape")


def _batch_normalization(form: OldForm) -> None:
    """Normalise each element by statistics of its own if they are not by channel (`spatial` = 0)."""
    if any(form.output[1:]) or (form.version < 7 and not form.get("is_test")):
        raise UnsupportedForm(_TRAINING)
    x, scale, bias, mean, variance = form.input
    epsilon = form.get("epsilon", 1e-5)
    if form.get("spatial", 1):
        form.keep(
            x,
            scale,
            bias,
            mean,
            variance,
            **{name: form.attributes[name] for name in ("epsilon", "momentum") if name in form.attributes},
        )
        return
    build = form.build
    deviation = build.node("Sqrt", build.node("Add", variance, build.number(epsilon, form.dtype(variance))))
    shifted = build.node("Div", build.node("Sub", x, mean), deviation)
    form.build.node("Add", build.node("Mul", shifted, scale), bias, result=form.result)


def _dropout(form: OldForm) -> None:
    """Pass values on; drop none, as in inference."""
    if form.version < 7 and not form.get("is_test"):
        raise UnsupportedForm(_TRAINING)
    x, build = form.input[0], form.build
    form.build.node("Identity", x, result=form.result)
    if len(form.output) > 1 and form.output[1]:
        # ONNX Runtime marks nothing as dropped
        from onnx import helper

        dtype = np.dtype(bool) if form.version >= 10 else form.dtype(x)
        none = helper.make_tensor("value", helper.np_dtype_to_tensor_dtype(dtype), [1], [0])
        build.node("ConstantOfShape", build.node("Shape", x), result=form.output[1], value=none)


NORMALISING: dict[str, Rule] = {
    "BatchNormalization": raise_at(9, _batch_normalization),
    "Dropout": raise_at(12, _dropout),
    "Hardmax": raise_at(13, _softmax),
    "LogSoftmax": raise_at(13, _softmax),
    "Softmax": raise_at(13, _softmax),
}
