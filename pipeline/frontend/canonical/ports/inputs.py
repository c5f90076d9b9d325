"""Convert inputs from the form in which the device writes them, by nodes in front of the file's own.

    image uint8 1×96×96×3 ─► Transpose ─► Slice (BGR) ─► Cast ─► Sub mean ─► Mul 1/std ─► float 1×3×96×96, as in the file

Each form is a table that the model carries in its metadata: headers, cards and conversions of samples read it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ModelError
from ....params.ports import InputPort
from ..node_builder import Names, NodeBuilder, replace_nodes
from ..read_onnx import operator_set
from .values import dtype_name, elem_type, rename_reads, static_sizes, write_type

if TYPE_CHECKING:
    import onnx

#: numbers of channels by which a picture with channels last is told
_CHANNELS = (1, 3, 4)
#: first operator sets in which Slice has steps, Sub spreads by itself, and Cast takes a number
_STEPS, _SPREADS, _CASTS = 10, 7, 6
_TO_FILE, TO_DEVICE = (0, 3, 1, 2), (0, 2, 3, 1)


def convert_input(model: onnx.ModelProto, name: str, port: InputPort) -> dict[str, Any]:
    """Give the input `name` of `model` the form of `port`, in place; return the form. Raises ModelError."""
    graph = model.graph
    value = next(each for each in graph.input if each.name == name)
    if any(each.name == name for each in graph.output):
        raise ModelError(f"The input '{name}' is an output as well.", "Leave its form as it is in the file.")
    form = input_form(name, static_sizes(value), dtype_name(value), port)
    build = NodeBuilder(name, Names(graph))
    inside = build.names.new(f"{name}/as_in_file")
    converted = convert(build, name, form, operator_set(model.opset_import))
    rename_reads(graph, name, inside)
    if build.nodes:
        build.nodes[-1].output[0] = inside
    else:
        build.node("Identity", converted, result=inside)
    nodes = [*build.nodes, *graph.node]
    replace_nodes(graph, nodes)
    graph.initializer.extend(build.initializers)
    write_type(value, form["dtype"], form["shape"])
    return form


def input_form(name: str, shape: Sequence[int], dtype: str, port: InputPort) -> dict[str, Any]:
    """Return the table of a form: how the device's numbers become the file's. Raises ModelError."""
    axis = _channel_axis(shape)
    last = len(shape) == 4 and axis == 3
    if port.layout and len(shape) != 4:
        raise ModelError(
            f"The input '{name}' has {len(shape)} axes, and nhwc is a form of four.", "Leave the layout out."
        )
    channels = shape[axis] if shape else 1
    if port.channels and (len(shape) != 4 or channels not in (3, 4)):
        raise ModelError(
            f"The input '{name}' has {channels} channel{'s' * (channels != 1)}, and bgr is an order of three.",
            "Leave the order of channels out.",
        )
    if (port.mean or port.std) and (port.scale is not None or port.zero_point is not None):
        raise ModelError(f"The input '{name}' has mean or std, and scale or zero point.", "Give one pair of both.")
    if port.computes and np.dtype(dtype).kind != "f" and (port.mean or port.std or port.scale or port.zero_point):
        raise ModelError(
            f"The input '{name}' is {dtype} in the file, and numbers are computed for floats alone.",
            "Give its dtype, layout or order of channels alone.",
        )
    for key, numbers in (("mean", port.mean), ("std", port.std)):
        if len(numbers) not in (0, 1, channels):
            raise ModelError(
                f"The input '{name}' has {channels} channel{'s' * (channels != 1)}, and {len(numbers)} numbers of {key}.",
                "Give one number, or one of each channel.",
            )
    turned = port.layout == "nhwc" and not last
    std = port.std or ((1 / port.scale,) if port.scale is not None else ())
    return {
        "dtype": port.dtype or dtype,
        "shape": [shape[each] for each in TO_DEVICE] if turned else list(shape),
        "file": {"dtype": dtype, "shape": list(shape)},
        "axis": axis,
        "turned": turned,
        "last": last or turned,
        "bgr": port.channels == "bgr",
        "mean": list(port.mean or ((float(port.zero_point),) if port.zero_point else ())),
        "factor": [port.scale] if port.scale is not None else [1 / each for each in std],
        "std": list(std),
        **({"scale": port.scale or 1.0, "zero_point": port.zero_point or 0} if port.scale or port.zero_point else {}),
    }


def _channel_axis(shape: Sequence[int]) -> int:
    """Return the axis of channels: the last of pictures that end in a number of colours and do not begin with one, or of rows."""
    if len(shape) == 4 and shape[1] not in _CHANNELS and shape[3] in _CHANNELS:
        return 3
    return 1 if len(shape) > 2 else max(len(shape) - 1, 0)


def convert(build: NodeBuilder, value: str, form: Mapping[str, Any], version: int) -> str:
    """Add the nodes that convert `value` to the form of the file; return the result's name."""
    rank, axis, dtype = len(form["shape"]), form["axis"], form["dtype"]
    if form.get("quantised"):
        scale, zero = np.float32(form["scale"]), np.asarray(form["zero_point"], form["dtype"])
        value = build.node("DequantizeLinear", value, build.constant(np.asarray(scale)), build.constant(zero))
        dtype = "float32"
    if form["turned"]:
        value = build.node("Transpose", value, perm=list(_TO_FILE))
    if form["bgr"]:
        value = _reversed(build, value, form["file"]["shape"][axis], axis, version)

    def constant(numbers: list[float], alone: bool) -> tuple[str, dict[str, Any]]:
        found = np.asarray(numbers, np.float32)
        if alone or version < _SPREADS:
            attributes = {"broadcast": 1} | ({} if alone else {"axis": axis})
            return build.constant(found.reshape(() if alone else -1)), attributes if version < _SPREADS else {}
        return build.constant(found.reshape([-1 if each == axis else 1 for each in range(rank)])), {}

    kept = form["file"]["dtype"]
    if form["mean"] or form["factor"]:
        value, dtype = _cast(build, value, dtype, "float32", version), "float32"
        for operator, numbers in (("Sub", form["mean"]), ("Mul", form["factor"])):
            if numbers:
                name, attributes = constant(numbers, len(numbers) == 1)
                value = build.node(operator, value, name, **attributes)
    return _cast(build, value, dtype, kept, version)


def _cast(build: NodeBuilder, value: str, dtype: str, wanted: str, version: int) -> str:
    if dtype == wanted:
        return value
    to: object = elem_type(wanted) if version >= _CASTS else wanted.upper().replace("FLOAT32", "FLOAT")
    return build.cast(value, to)


def _reversed(build: NodeBuilder, value: str, channels: int, axis: int, version: int) -> str:
    """Swap the first three channels; a fourth stays."""
    if version < _STEPS or channels != 3:
        return build.node("Gather", value, build.integers(2, 1, 0, *range(3, channels)), axis=axis)
    ends = (build.integers(number) for number in (-1, np.iinfo(np.int64).min, axis, -1))
    return build.node("Slice", value, *ends)
