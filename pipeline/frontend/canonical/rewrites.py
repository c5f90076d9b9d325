"""Rewrite single operators into forms the compiler reads rightly and cheaply.

Each has one small rule. A rule gets the node and a builder; it builds the nodes that replace the node, or none to leave
it. Every rule names the defect of the form it replaces (found by running ONNX's operator tests through TVM 0.27).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .graph_context import NodeView, Rule, apply_rules
from .node_builder import NodeBuilder, spliced
from .operators import activations, neighbourhoods, operand_forms
from .operators.auto_pad import kernel_shape, pooling_pads
from .operators.elimination import determinant
from .operators.expanded_indices import gather_lines, scatter_lines, scatter_steps
from .operators.fourier import discrete_fourier, short_time_fourier
from .operators.normalisation import normalise_by_means, normalise_deviation, softmax_of_one
from .operators.powers import power
from .operators.reductions import REDUCTIONS, last_extreme, reduce
from .operators.resize import resize
from .operators.reverse_sequence import reverse_sequence
from .ports.values import elem_type

if TYPE_CHECKING:
    import onnx


def rewrite(model: onnx.ModelProto) -> onnx.ModelProto:
    """Apply all rules to `model` (with inferred shapes); nodes without replacement stay."""
    return spliced(model, apply_rules(model, RULES))


def _sum(node: NodeView, build: NodeBuilder) -> None:
    """Replace Sum by a chain of Add, which needs no workspace.

    TVM makes broadcast + stack + sum of it, with a workspace of all inputs.
    """
    _chain(build, list(node.input), node.result)


def _mean(node: NodeView, build: NodeBuilder) -> None:
    """Replace Mean by a chain of Add, for the same reason as Sum."""
    count = build.number(len(node.input), node.dtype(0))
    total = _chain(build, list(node.input), "") if len(node.input) > 1 else node.input[0]
    build.node("Div", total, count, result=node.result)


def _chain(build: NodeBuilder, terms: list[str], result: str) -> str:
    if len(terms) == 1:
        return build.node("Identity", terms[0], result=result)
    total = terms[0]
    for number, term in enumerate(terms[1:], start=2):
        total = build.node("Add", total, term, result=result if number == len(terms) else "")
    return total


def _multiply_in_single(node: NodeView, build: NodeBuilder) -> None:
    """Multiply float16 numbers in float32, as ONNX Runtime does.

    TVM's squares are infinite from 256 on, and its sums of products lose digits.
    """
    halves = [bool(name) and node.dtype(name) == np.float16 for name in node.input]
    if halves[0]:
        wide = [build.cast(name, np.float32) if half else name for name, half in zip(node.input, halves)]
        result = build.node(node.op_type, *wide, **node.attributes)
        build.cast(result, np.float16, node.result)


def _isinf(node: NodeView, build: NodeBuilder) -> None:
    """Replace IsInf for one sign or none, since TVM ignores its attributes."""
    positive, negative = node.get("detect_positive", 1), node.get("detect_negative", 1)
    shape = node.shape(0)
    if positive and negative:
        return
    if positive or negative:
        infinity = np.asarray(np.inf if positive else -np.inf, node.dtype(0))
        build.node("Equal", node.input[0], build.constant(infinity), result=node.result)
    elif shape is not None:
        build.node("Expand", build.constant(np.asarray(False)), build.integers(*shape), result=node.result)


def _conv_transpose(node: NodeView, build: NodeBuilder) -> None:
    """Replace `output_shape`, which TVM ignores, by the paddings it stands for.

    The formula is that of the ConvTranspose specification.
    """
    wanted = node.get("output_shape")
    shape, weight = node.shape(0), node.shape(1)
    if not wanted or shape is None or weight is None:
        return
    rank = len(shape) - 2
    kernel = node.get("kernel_shape") or list(weight[2:])
    strides, dilations = node.get("strides") or [1] * rank, node.get("dilations") or [1] * rank
    extra = list(node.get("output_padding") or [0] * rank)
    begins, ends = [], []
    for axis in range(rank):
        whole = strides[axis] * (shape[2 + axis] - 1) + extra[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        total = whole - wanted[-rank:][axis]
        extra[axis] += max(0, -total)
        less, more = max(0, total) // 2, max(0, total) - max(0, total) // 2
        upper = node.get("auto_pad") == "SAME_UPPER"
        begins.append(less if upper else more)
        ends.append(more if upper else less)
    kept = {name: value for name, value in node.attributes.items() if name not in ("output_shape", "auto_pad")}
    kept |= {"pads": begins + ends, "output_padding": extra}
    build.node("ConvTranspose", *node.input, result=node.result, **kept)


def _lp_normalization(node: NodeView, build: NodeBuilder) -> None:
    """Replace LpNormalization, which TVM lacks, by a division by the norm."""
    x, axis = node.input[0], build.integers(node.get("axis", -1))
    if node.get("p", 2) == 1:
        norm = build.node("ReduceSum", build.node("Abs", x), axis, keepdims=1)
    else:
        norm = build.node("Sqrt", build.node("ReduceSum", build.node("Mul", x, x), axis, keepdims=1))
    dtype = node.dtype(x)
    none = build.node("Equal", norm, build.number(0, dtype))
    build.node("Div", x, build.node("Where", none, build.number(1, dtype), norm), result=node.result)


def _mod(node: NodeView, build: NodeBuilder) -> None:
    """Give the remainder of floats the sign of the divisor, which TVM ignores: that of truncation, moved where signs differ."""
    dtype = node.dtype(0)
    if node.get("fmod") or dtype.kind != "f":
        return
    zero, negative_zero = (build.number(each, dtype) for each in (0.0, -0.0))
    left, negative = build.node("Mod", *node.input, fmod=1), build.node("Less", node.input[1], zero)
    crossed = build.node("Xor", build.node("Less", left, zero), negative)
    moved = build.node("Where", crossed, build.node("Add", left, node.input[1]), left)
    none = build.node("Where", negative, negative_zero, zero)
    build.node("Where", build.node("Equal", left, zero), none, moved, result=node.result)


def _bit_shift(node: NodeView, build: NodeBuilder) -> None:
    """Shift the bits of signed integers, which sets before 28 lack: those of ~x right of a negative x, and back."""
    dtype = node.dtype(0)
    if dtype.kind != "i":
        return
    unsigned = f"u{dtype.name}"
    x, by = node.input[0], build.cast(node.input[1], unsigned)
    if node.attributes["direction"] == "LEFT":
        shifted = build.node("BitShift", build.cast(x, unsigned), by, direction="LEFT")
        build.cast(shifted, dtype, node.result)
        return
    negative = build.node("Less", x, build.number(0, dtype))
    bits = build.cast(build.node("Where", negative, build.node("BitwiseNot", x), x), unsigned)
    shifted = build.cast(build.node("BitShift", bits, by, direction="RIGHT"), dtype)
    build.node("Where", negative, build.node("BitwiseNot", shifted), shifted, result=node.result)


def _space_to_depth(node: NodeView, build: NodeBuilder) -> None:
    """Write the order of depths, which sets before 28 lack, as a transposition."""
    shape, size = node.shape(0), node.attributes["blocksize"]
    if shape is None or "mode" not in node.attributes:
        return
    batch, depth, height, width = shape
    parts = build.node(
        "Reshape", node.input[0], build.integers(batch, depth, height // size, size, width // size, size)
    )
    columns_first = node.attributes["mode"] == "CRD"
    parts = build.node("Transpose", parts, perm=[0, 1, 3, 5, 2, 4] if columns_first else [0, 3, 5, 1, 2, 4])
    whole = build.integers(batch, depth * size * size, height // size, width // size)
    build.node("Reshape", parts, whole, result=node.result)


def _one_hot(node: NodeView, build: NodeBuilder) -> None:
    """Replace OneHot by a comparison of the indices with 0, 1, … depth - 1.

    TVM does not take depth and values as ONNX gives them.
    """
    depth, shape = node.constant(1), node.shape(0)
    if depth is None or shape is None:
        return
    count = int(depth.reshape(-1)[0])
    axis = int(node.get("axis", -1)) % (len(shape) + 1)
    indices = build.cast(node.input[0], np.int64)
    negative = build.node("Less", indices, build.number(0, np.int64))
    wrapped = build.node("Where", negative, build.node("Add", indices, build.constant(np.asarray(count))), indices)
    line = np.arange(count, dtype=np.int64).reshape([count if each == axis else 1 for each in range(len(shape) + 1)])
    hit = build.node("Equal", build.node("Unsqueeze", wrapped, build.integers(axis)), build.constant(line))
    off, on = (build.node("Gather", node.input[2], build.constant(np.asarray(each)), axis=0) for each in (0, 1))
    build.node("Where", hit, on, off, result=node.result)


def _top_k(node: NodeView, build: NodeBuilder) -> None:
    """Sort the result of a TopK that leaves its order open, a form that TVM refuses."""
    if not node.attributes.pop("sorted", 1):
        build.many("TopK", node.input, node.output, **node.attributes)


def _quantize_linear(node: NodeView, build: NodeBuilder) -> None:
    """Drop the precision of a division in float32, which TVM refuses as it does others."""
    if node.attributes.pop("precision", 0) == elem_type("float32"):
        build.many("QuantizeLinear", node.input, node.output, **node.attributes)


#: operators of float16 that TVM computes in float16, losing digits, or not at all
_SINGLE = ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Einsum", "GlobalLpPool", "Mish", "Sinh")
RULES: dict[str, Rule] = {
    "AveragePool": pooling_pads,
    "BitShift": _bit_shift,
    "CastLike": operand_forms.cast_like,
    "Clip": activations.clip,
    "Col2Im": neighbourhoods.columns_to_image,
    "Conv": kernel_shape,
    "ConvTranspose": _conv_transpose,
    "DFT": discrete_fourier,
    "Det": determinant,
    "Equal": operand_forms.equal,
    "EyeLike": operand_forms.eye_like,
    "GatherElements": gather_lines,
    "Gelu": activations.gelu,
    "IsInf": _isinf,
    "LRN": neighbourhoods.local_response,
    "LayerNormalization": normalise_by_means,
    "LeakyRelu": activations.leaky_relu,
    "LpNormalization": _lp_normalization,
    "LpPool": neighbourhoods.lp_pool,
    "MaxPool": pooling_pads,
    "MaxUnpool": neighbourhoods.max_unpool,
    "Mean": _mean,
    "MeanVarianceNormalization": normalise_deviation,
    "Mod": _mod,
    "OneHot": _one_hot,
    "PRelu": activations.parametric_relu,
    "Pad": operand_forms.pad_with_computed,
    "Pow": power,
    "QuantizeLinear": _quantize_linear,
    "RMSNormalization": normalise_by_means,
    "Resize": resize,
    "ReverseSequence": reverse_sequence,
    "ScatterElements": scatter_lines,
    "ScatterND": operand_forms.scatter_places,
    "STFT": short_time_fourier,
    "Shrink": activations.shrink,
    "Sign": activations.sign,
    "SpaceToDepth": _space_to_depth,
    "Softplus": activations.softplus,
    "Sum": _sum,
    "TensorScatter": scatter_steps,
    "ThresholdedRelu": activations.thresholded_relu,
    "TopK": _top_k,
    **dict.fromkeys(_SINGLE, _multiply_in_single),
    **dict.fromkeys(("ArgMax", "ArgMin"), last_extreme),
    **dict.fromkeys(("LogSoftmax", "Softmax"), softmax_of_one),
    **dict.fromkeys(("Squeeze", "Unsqueeze"), operand_forms.axes_in_a_line),
    **dict.fromkeys(("Div", "Mul"), operand_forms.zero_in_a_line),
    **dict.fromkeys(("Celu", "Elu", "Selu"), activations.exponential_unit),
    **dict.fromkeys(REDUCTIONS, reduce),
}
