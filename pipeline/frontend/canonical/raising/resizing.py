"""Raise Upsample, and Resize of set 10: positions are scaled from the first element's corner (`asymmetric`)."""

from __future__ import annotations

import numpy as np

from ..node_form import UnsupportedForm
from .old_form import OldForm, Rule, raise_at

#: below set 11 the nearest element is the one before; ONNX Runtime takes the one after along an axis that shrinks
_MORE, _FEWER = "floor", "ceil"


def _upsample(form: OldForm) -> None:
    scales = form.get("scales")
    if form.version < 7:
        if "height_scale" not in form.attributes or "width_scale" not in form.attributes:
            raise UnsupportedForm("it has no scales")
        scales = [1, 1, form.attributes["height_scale"], form.attributes["width_scale"]]
    if scales is None:
        return _build_resize(form, form.name(1), form.constant(1))
    known = np.asarray(scales, np.float32)
    _build_resize(form, form.build.constant(known), known)


def _resize(form: OldForm) -> None:
    _build_resize(form, form.name(1), form.constant(1))


def _build_resize(form: OldForm, scales: str, known: np.ndarray | None) -> None:
    """Build a Resize; one of the nearest elements that grows and shrinks becomes two."""
    mode = form.get("mode", "nearest")
    mode = {"bilinear": "linear"}.get(mode, mode)
    settings = {"coordinate_transformation_mode": "asymmetric", "mode": mode}
    x = form.input[0]
    if mode != "nearest":
        form.keep(x, "", scales, op="Resize", **settings)
        return
    if known is None:
        raise UnsupportedForm("its scales are not constant")
    shrinks = known < 1
    if shrinks.any() and (known > 1).any():
        fewer = form.build.constant(np.where(shrinks, known, 1).astype(np.float32))
        scales = form.build.constant(np.where(shrinks, 1, known).astype(np.float32))
        x = form.build.node("Resize", x, "", fewer, nearest_mode=_FEWER, **settings)
        shrinks[:] = False
    form.keep(x, "", scales, op="Resize", nearest_mode=_FEWER if shrinks.any() else _MORE, **settings)


RESIZING: dict[str, Rule] = {"Resize": raise_at(11, _resize), "Upsample": raise_at(10, _upsample)}
