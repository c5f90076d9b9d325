"""Raise operators whose attributes became inputs, changed their defaults, or spread operands along an axis."""

from __future__ import annotations

import numpy as np

from ..node_form import UnsupportedForm
from .old_form import OldForm, Rule, raise_at

_BINARY = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSumSquare",
)  # fmt: skip


def _binary(form: OldForm) -> None:
    """Give the second operand the dimensions it is spread over.

    Below set 7 it may begin at any `axis` of the first.
    """
    attributes = {name: value for name, value in form.attributes.items() if name not in ("axis", "broadcast")}
    first, second, *others = form.input
    axis = form.get("axis")
    if form.get("broadcast") and axis is not None:
        ranks = form.rank(first), form.rank(second)
        if ranks[0] is None or ranks[1] is None:
            raise UnsupportedForm("the rank of an operand that is spread along an axis is not known")
        behind = ranks[0] - int(axis) % ranks[0] - ranks[1]
        if behind > 0:
            second = _unsqueeze(form, second, list(range(ranks[1], ranks[1] + behind)))
    form.keep(first, second, *others, **attributes)


def _unsqueeze(form: OldForm, value: str, axes: list[int]) -> str:
    """Insert axes; a constant stays one, which rules of the newer operator ask for."""
    known = form.constant(value)
    if known is not None:
        return form.build.constant(np.expand_dims(known, tuple(axes)))
    if form.wanted < 13:
        return form.build.node("Unsqueeze", value, axes=axes)
    return form.build.node("Unsqueeze", value, form.build.integers(*axes))


def _prelu(form: OldForm) -> None:
    """Give slopes by channel the dimensions behind the channels.

    Since set 7 they are spread as any operand, from the last dimension.
    """
    x, slope = form.input
    rank, slopes = form.rank(x), form.shape(slope)
    if rank is None or slopes is None:
        raise UnsupportedForm("the shapes of its operands are not known")
    if len(slopes) == 1 and slopes[0] > 1 and rank > 2:
        slope = _unsqueeze(form, slope, list(range(1, rank - 1)))
    form.keep(x, slope)


def _as_inputs(since: int, *names: str) -> Rule:
    """Make inputs of attributes, which they are since set `since`: numbers are of the operand's dtype, lists integers."""

    def rule(form: OldForm) -> None:
        values = [form.attributes.pop(name, None) for name in names]
        if not form.crosses(since) or all(value is None for value in values):
            return
        dtype = form.dtype(0) if any(isinstance(value, float) for value in values) else np.dtype(np.int64)
        inputs = [
            "" if value is None else form.build.number(value if isinstance(value, float) else np.ravel(value), dtype)
            for value in values
        ]
        form.keep(form.input[0], *inputs, **form.attributes)

    return rule


def _cast(form: OldForm) -> None:
    from onnx import TensorProto

    if form.crosses(6) and isinstance(form.attributes["to"], str):
        form.keep(form.input[0], to=TensorProto.DataType.Value(form.attributes["to"].upper()))


def _pad(form: OldForm) -> None:
    pads = form.attributes.pop("pads", form.attributes.pop("paddings", None))
    value = form.attributes.pop("value", 0.0)
    if pads is None:
        raise UnsupportedForm("it has no paddings")
    amount = form.build.integers(*pads)
    filling = form.build.number(value, form.dtype(0)) if value else ""
    form.keep(form.input[0], amount, filling, **form.attributes)


def _split(form: OldForm) -> None:
    """Make an input of the sizes of parts, and say how many there are since set 18."""
    sizes = form.attributes.pop("split", None)
    parts = form.name(1) or (form.build.integers(*sizes) if sizes and form.crosses(13) else "")
    if form.crosses(18) and not parts and not sizes:
        form.attributes["num_outputs"] = len(form.output)
    if form.crosses(13) or form.crosses(18):
        form.keep(form.input[0], parts, **form.attributes)


def _tile(form: OldForm) -> None:
    """Repeat one axis: the inputs of set 1 are a number and an axis."""
    if not form.crosses(6) or len(form.input) < 3:
        return
    times, axis, rank = form.constant(1), form.constant(2), form.rank(0)
    if times is None or axis is None or rank is None:
        raise UnsupportedForm("its repetitions are not constant")
    repeats = [1] * rank
    repeats[int(axis.item())] = int(times.item())
    form.keep(form.name(0), form.build.integers(*repeats))


def _default(since: int, **values: object) -> Rule:
    """Write out defaults that are others since set `since`."""

    def rule(form: OldForm) -> None:
        if form.crosses(since) and not values.keys() <= form.attributes.keys():
            form.keep(*form.input, **{**values, **form.attributes})

    return rule


def _spelled(since: int, attribute: str, **words: str) -> Rule:
    """Spell a word of an attribute as it is since set `since`."""

    def rule(form: OldForm) -> None:
        if form.crosses(since) and form.get(attribute) in words:
            form.keep(*form.input, **{**form.attributes, attribute: words[form.attributes[attribute]]})

    return rule


def _whole_norm(form: OldForm) -> None:
    """Give the norm of a pooling as an integer, as it is since set 2."""
    if form.crosses(2):
        norm = float(form.get("p", 2.0))
        if norm != int(norm):
            raise UnsupportedForm(f"its norm {norm} is not a whole number")
        form.keep(*form.input, **{**form.attributes, "p": int(norm)})


def _fourier(form: OldForm) -> None:
    """Make an input of the axis of a Fourier transform, 1 by default."""
    if form.crosses(20):
        axis = form.build.number(form.attributes.pop("axis", 1), np.int64)
        form.keep(form.name(0), form.name(1), axis, **form.attributes)


def _scan(form: OldForm) -> None:
    """Refuse a Scan of a batch with lengths, as set 8 has it."""
    raise UnsupportedForm("it runs through each sequence of a batch")


OPERANDS: dict[str, Rule] = {
    **dict.fromkeys(_BINARY, raise_at(7, _binary)),
    **dict.fromkeys(_REDUCTIONS, _as_inputs(18, "axes")),
    "Cast": _cast,
    "Clip": _as_inputs(11, "min", "max"),
    "Concat": _default(4, axis=1),
    "DFT": _fourier,
    "GRU": _spelled(3, "direction", foward="forward"),
    "Gemm": raise_at(7, _binary),
    "GlobalLpPool": _whole_norm,
    "GridSample": _spelled(20, "mode", bilinear="linear", bicubic="cubic"),
    "LpPool": _whole_norm,
    "PRelu": raise_at(7, _prelu),
    "Pad": raise_at(11, _pad),
    "ReduceSum": _as_inputs(13, "axes"),
    "Reshape": _as_inputs(5, "shape"),
    "RoiAlign": _default(16, coordinate_transformation_mode="output_half_pixel"),
    "Scan": raise_at(9, _scan),
    "Scatter": raise_at(11, lambda form: form.keep(*form.input, op="ScatterElements", **form.attributes)),
    "Selu": _default(6, alpha=1.6732, gamma=1.0507),
    "Slice": _as_inputs(10, "starts", "ends", "axes"),
    "Split": _split,
    "Squeeze": _as_inputs(13, "axes"),
    "Tile": _tile,
    "TopK": _as_inputs(10, "k"),
    "Unsqueeze": _as_inputs(13, "axes"),
}
