"""Make seeded inputs for verification: plausible for the dtype, with indices in range."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ModelError
from .integers.compared_integers import PASS_THROUGH, compared_sizes

if TYPE_CHECKING:
    import onnx

#: operators that index by their second input along an axis of their first
_GATHERS = ("Gather", "GatherElements")
#: operands that are scales, by operator
_SCALES = {"QuantizeLinear": (1,), "DequantizeLinear": (1,), "QLinearConv": (1, 4, 6), "QLinearMatMul": (1, 4, 6)}
#: least scale: that of integers is never 0
_LEAST_SCALE = 0.01


def make_input(model: onnx.ModelProto, seed: int, case: int) -> dict[str, np.ndarray]:
    """Make one set of inputs by name, determined by seed, case, names, shapes and dtypes.

    Floats are, depending on the case, standard normal, uniform in [0, 1), or bars and patches of 0 and 1; scales of
    integers are positive; bytes take their whole range; indices stay in range, lengths reach what they are compared
    with, other integers are 0 or 1. Raises ModelError for an unsupported dtype or a dynamic shape.
    """
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initializers]
    indexing = any(_dtype(value).kind in "iu" for value in inputs)
    sizes = compared_sizes(model) | index_sizes(model) if indexing else {}
    scales = {node.input[at] for node in model.graph.node for at in _SCALES.get(node.op_type, ()) if at < len(node.input)}
    made = {value.name: _values(value, seed, case, sizes.get(value.name)) for value in inputs}
    # arithmetic on a 0-d array gives a scalar, which ONNX Runtime rejects
    return {name: np.asarray(_scale(each) if name in scales else each) for name, each in made.items()}


def index_sizes(model: onnx.ModelProto) -> dict[str, int]:
    """Map each indexing input to the size of its smallest indexed axis (Gather, GatherElements, GatherND)."""
    shapes = _shapes(model)
    limits: dict[str, int] = {}
    for node in reversed(model.graph.node):  # from consumers to producers: nodes are sorted
        if node.op_type in PASS_THROUGH and node.output[0] in limits:
            _limit(limits, node.input[0], limits[node.output[0]])
        elif node.op_type in _GATHERS and (shape := shapes.get(node.input[0])):
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            _limit(limits, node.input[1], shape[axis])
        elif node.op_type == "GatherND" and (shape := shapes.get(node.input[0])):
            _limit(limits, node.input[1], min(shape))
    inputs = {value.name for value in model.graph.input}
    return {name: size for name, size in limits.items() if name in inputs}


def _limit(limits: dict[str, int], name: str, size: int) -> None:
    limits[name] = min(size, limits.get(name, size))


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Collect the static shapes of the model after shape inference, including initialisers."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model).graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            shapes[node.output[0]] = tuple(node.attribute[0].t.dims)
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        dims = value.type.tensor_type.shape.dim
        if all(dim.HasField("dim_value") for dim in dims):
            shapes[value.name] = tuple(dim.dim_value for dim in dims)
    return shapes


def _dtype(value: onnx.ValueInfoProto) -> np.dtype:
    import onnx

    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))


def _values(value: onnx.ValueInfoProto, seed: int, case: int, index_size: int | None) -> np.ndarray:
    tensor = value.type.tensor_type
    shape = tuple(dim.dim_value for dim in tensor.shape.dim)
    if any(not dim.HasField("dim_value") for dim in tensor.shape.dim):
        raise ModelError(f"Input '{value.name}' has no static shape.", "Give one with --shape.")
    dtype = _dtype(value)
    generator = _generator(seed, case, value.name, shape, dtype)
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(dtype)
    if index_size is not None and dtype.kind in "iu":
        return generator.integers(0, min(max(1, index_size), np.iinfo(dtype).max), shape).astype(dtype)
    if dtype in (np.int8, np.uint8):
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max + 1, shape).astype(dtype)
    if dtype.kind in "iu":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind != "f" and dtype.name != "bfloat16":
        raise ModelError(
            f"Input '{value.name}' is of type {dtype}, for which no test values can be made.", "Cast it to a number."
        )
    kinds = (generator.standard_normal, generator.random, lambda shape: _patches(generator, shape))
    return kinds[case % len(kinds)](shape).astype(dtype)


def _scale(values: np.ndarray) -> np.ndarray:
    """Return positive floats; integers as they are."""
    return np.maximum(np.abs(values), _LEAST_SCALE).astype(values.dtype) if values.dtype.kind == "f" else values


def _patches(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Make bars and patches of 0 and 1 with random widths: edges, as vision and audio networks detect."""
    total = np.zeros(shape)
    for _ in range(4):
        layer = np.full(shape, generator.standard_normal())
        for axis, extent in enumerate(shape):
            width = int(generator.integers(2, max(3, extent // 4 + 1)))
            signs = generator.choice([-1.0, 1.0], size=-(-extent // width)).repeat(width)[:extent]
            layer = layer * signs.reshape([-1 if each == axis else 1 for each in range(len(shape))])
        total = total + layer
    return (total > 0).astype(np.float64)


def _generator(seed: int, case: int, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.random.Generator:
    """Create a generator per input and case, so that inputs do not depend on each other."""
    digest = hashlib.sha256(f"{name}|{shape}|{dtype}".encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.Generator(np.random.PCG64([seed, case, math.prod(shape), *words]))
