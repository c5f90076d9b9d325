"""Bind each input of a model to a static shape or a value."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ModelError, did_you_mean
from ..source.import_options import ImportOptions

if TYPE_CHECKING:
    import onnx

#: the file version from which on constants need not be inputs
_IR = 4
#: exporters' words for "some size": two dimensions of such a name need not be equal
_ANONYMOUS = frozenset({"", "?", "None", "none", "unk", "unknown", "-1"})
#: words and letters that name a length of data instead of a batch
_LENGTHS, _LETTERS = (
    ("seq", "len", "time", "frame", "step", "token", "sample", "point", "row", "width", "height"),
    frozenset("TLStls"),
)
#: example sizes in the hint for an open dimension
_EXAMPLE_IMAGE, _EXAMPLE_OTHER = 224, 16


def bind_inputs(model: onnx.ModelProto, options: ImportOptions = ImportOptions()) -> list[str]:
    """Write the shapes and constants of `options` into the inputs of `model`, in place; return assumed sizes in words.

    A named dimension with one size in one input has it in the others too. An open batch is 1, see `_assume_batches`.
    Raises ModelError for a name that is not an input, a shape or value that contradicts the model, and dimensions that stay
    open (all of them at once).
    """
    graph, shapes, fix = model.graph, options.shapes, options.fix
    constants = {tensor.name for tensor in graph.initializer}
    # Files of IR version 3 list constants among the inputs: there they are defaults, here they are constants. Of such a
    # file, inference reads no constant that is not listed.
    model.ir_version = max(model.ir_version, _IR)
    inputs = {value.name: value for value in graph.input if value.name not in constants}
    for name in (*shapes, *fix):
        if name not in inputs:
            raise ModelError(f"The model has no input '{name}'.", did_you_mean(name, inputs))
    for value in inputs.values():
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.elem_type:
            raise ModelError(f"The input '{value.name}' is not a tensor.", "Export the model with tensor inputs only.")
    declared = {name: dimensions(value) for name, value in inputs.items()}
    for name, shape in shapes.items():
        _set_shape(inputs[name], shape)
    _spread_names(inputs.values(), declared)
    for name, value in fix.items():
        graph.initializer.append(_frozen(inputs.pop(name), value))
    assumed = _assume_batches(inputs.values())
    del graph.input[:]
    graph.input.extend(inputs.values())
    _refuse_open(inputs.values())
    return assumed


def dimensions(value: onnx.ValueInfoProto) -> list[int | str] | None:
    """Return the sizes of a tensor as declared; None without a rank.

    A size is an int if static, a name (perhaps empty) if open.
    """
    if not value.type.tensor_type.HasField("shape"):
        return None
    return [
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else dim.dim_param
        for dim in value.type.tensor_type.shape.dim
    ]


def _set_shape(value: onnx.ValueInfoProto, shape: Sequence[int]) -> None:
    declared = dimensions(value)
    wanted = tuple(int(size) for size in shape)
    text = _times(wanted)
    if any(size < 1 for size in wanted):
        raise ModelError(f"The shape {text} of the input '{value.name}' has a size below 1.", "Give positive sizes.")
    if declared is not None and len(declared) != len(wanted):
        raise ModelError(
            f"The shape {text} of the input '{value.name}' has {len(wanted)} dimensions, the model's has "
            f"{len(declared)} ({_times(declared)}).",
            "Give one size for each dimension.",
        )
    for axis, (old, new) in enumerate(zip(declared or (), wanted)):
        if isinstance(old, int) and old != new:
            raise ModelError(
                f"The shape {text} of the input '{value.name}' contradicts the model: dimension {axis} is {old} "
                f"({_times(declared or ())}).",
                "Only open dimensions can be chosen.",
            )
    _write(value, wanted)


def _write(value: onnx.ValueInfoProto, shape: Sequence[int | str]) -> None:
    from onnx import helper

    sizes = [None if size == "" else size for size in shape]
    value.type.CopyFrom(helper.make_tensor_type_proto(value.type.tensor_type.elem_type, sizes))


def _spread_names(values: Collection[onnx.ValueInfoProto], declared: Mapping[str, list[int | str] | None]) -> None:
    """Write known sizes into open dimensions of the same name.

    Nothing is guessed here: a model that gives two dimensions one name says that they are equal.
    """
    known: dict[str, set[int]] = {}
    for value in values:
        for old, new in zip(declared[value.name] or (), dimensions(value) or ()):
            if isinstance(old, str) and isinstance(new, int):
                known.setdefault(old, set()).add(new)
    for value in values:
        shape = dimensions(value)
        if shape is not None:
            _write(value, [_only(known, size) if isinstance(size, str) else size for size in shape])


def _assume_batches(values: Collection[onnx.ValueInfoProto]) -> list[str]:
    """Write 1 into open leading dimensions of tensors that have further ones, unless they seem to be lengths.

    A length has a word for it in its name, or its name stands at another place of some input too.
    """
    shapes = {value.name: dimensions(value) or [] for value in values}
    elsewhere = {size for shape in shapes.values() for size in shape[1:] if size not in _ANONYMOUS}
    assumed = []
    for value in values:
        shape = shapes[value.name]
        name = shape[0] if len(shape) > 1 else 0
        if (
            isinstance(name, int)
            or name in elsewhere
            or name in _LETTERS
            or any(word in name.lower() for word in _LENGTHS)
        ):
            continue
        _write(value, [1, *shape[1:]])
        assumed.append(
            f"'{value.name}' ({_times(shape)}) has a batch of 1: --shape {value.name}={_times([2, *shape[1:]])} would make it 2"
        )
    return assumed


def _only(known: Mapping[str, set[int]], name: str) -> int | str:
    """Return the single known size of a named dimension, else the name."""
    sizes = known.get(name, set())
    return next(iter(sizes)) if len(sizes) == 1 and name not in _ANONYMOUS else name


def _frozen(value: onnx.ValueInfoProto, given: object) -> onnx.TensorProto:
    """Return the constant `given` with the dtype of the input, spread over its shape."""
    from onnx import helper, numpy_helper

    dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    shape = dimensions(value)
    try:
        array = np.asarray(given)
        typed = array.astype(dtype)
        if not np.array_equal(typed.astype(np.float64), array.astype(np.float64)):
            raise ValueError(f"it cannot be held as {dtype}")
        if shape is not None:
            given_sizes = array.shape if array.ndim == len(shape) else (1,) * len(shape)
            sizes = [size if isinstance(size, int) else new for size, new in zip(shape, given_sizes)]
            typed = np.broadcast_to(typed, sizes)
    except (ValueError, TypeError) as error:
        raise ModelError(
            f"The input '{value.name}' ({dtype}, {_times(shape or ())}) cannot be frozen to {given!r}: {error}.",
            "Give one number, or numbers in the input's shape.",
        ) from error
    return numpy_helper.from_array(np.ascontiguousarray(typed).reshape(typed.shape), value.name)


def _refuse_open(values: Collection[onnx.ValueInfoProto]) -> None:
    """Refuse inputs without a static shape: raise ModelError naming all of them."""
    said, options = [], []
    for value in values:
        shape = dimensions(value)
        if shape is None:
            said.append(f"'{value.name}' has no shape at all")
            options.append(f"--shape {value.name}=1x{_EXAMPLE_OTHER}")
        elif any(isinstance(size, str) for size in shape):
            axes = [f"{axis}{f' ({size})' if size else ''}" for axis, size in enumerate(shape) if isinstance(size, str)]
            said.append(f"'{value.name}' ({_times(shape)}) leaves dimension {', '.join(axes)} open")
            options.append(f"--shape {value.name}={_times(_example(shape))}")
    if said:
        raise ModelError(
            f"Not every input has a static shape: {'; '.join(said)}.", f"Give the sizes, such as {' '.join(options)}."
        )


def _example(shape: Sequence[int | str]) -> list[int]:
    """Return sizes for the hint.

    1 for an open leading dimension, a usual image side or a small number for the others.
    """
    usual = _EXAMPLE_IMAGE if len(shape) == 4 else _EXAMPLE_OTHER
    return [size if isinstance(size, int) else usual if axis else 1 for axis, size in enumerate(shape)]


def _times(shape: Sequence[int | str]) -> str:
    return "x".join(str(size) or "?" for size in shape) or "scalar"
