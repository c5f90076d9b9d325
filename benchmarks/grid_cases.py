"""List the single-operator models of the kernel grid: shapes of real networks, weights from a seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

#: opset of the models
_OPSET = 17
_Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One operator: shapes of its inputs, then those of its weights; attributes; multiply-adds × 2, if it has any.

    `indices` are int64 weights given by value, after the others.
    """

    kind: str
    name: str
    op: str
    inputs: tuple[_Shape, ...]
    weights: tuple[_Shape, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    indices: tuple[tuple[int, ...], ...] = ()
    flops: int = 0

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}"

    def model(self) -> onnx.ModelProto:
        """Build the model; weights are uniform, scaled to keep results near 1."""
        rng = np.random.default_rng([len(self.title), *self.title.encode()])
        names = [f"x{number}" for number in range(len(self.inputs))]
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip(names, self.inputs)
        ]
        constants = []
        for number, shape in enumerate(self.weights):
            # a variance has to be positive
            low = 0.5 if self.op == "BatchNormalization" else -1.0
            value = rng.uniform(low, 1.0, shape).astype(np.float32)
            constants.append(numpy_helper.from_array(value, f"w{number}"))
        for number, values in enumerate(self.indices):
            constants.append(numpy_helper.from_array(np.asarray(values, np.int64), f"i{number}"))
        node = helper.make_node(self.op, [*names, *(each.name for each in constants)], ["y"], **self.attributes)
        output = helper.make_empty_tensor_value_info("y")
        graph = helper.make_graph([node], "grid", inputs, [output], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def cases() -> list[Case]:
    """Return all cases, by kind."""
    found = [
        *_products(), *_convolutions(), *_one_dimension(), *_three_dimensions(), *_depthwise(), *_grouped(),
        *_transposed(), *_poolings(), *_normalisations(), *_reductions(), *_moves(),
    ]  # fmt: skip
    assert len({case.title for case in found}) == len(found)
    return found


def _times(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


#: height, depth and width: heads and projections of transformers, classifiers, patches, attention
_PRODUCTS = (
    (1, 512, 1000), (1, 1280, 1000), (1, 2048, 1000), (1, 64, 256), (1, 768, 768), (2, 256, 256), (2, 512, 512),
    (4, 128, 512), (4, 768, 768), (7, 256, 1024), (8, 512, 512), (12, 64, 64), (16, 128, 128), (16, 384, 1536),
    (16, 1536, 384), (25, 120, 360), (32, 256, 256), (40, 120, 97), (49, 320, 320), (50, 512, 2048), (64, 64, 64),
    (64, 768, 768), (64, 96, 6625), (128, 312, 312), (197, 192, 576), (197, 192, 768), (256, 256, 256), (1024, 32, 32),
    (4096, 16, 8), (6400, 8, 1),
)  # fmt: skip
#: batch, height, depth, width: attention over heads, both products of activations
_BATCHED = (
    (8, 40, 15, 40), (8, 40, 40, 15), (12, 12, 64, 12), (12, 12, 12, 64), (3, 197, 64, 197), (3, 197, 197, 64), (4, 64, 32, 64),
    (2, 256, 16, 256), (16, 7, 64, 128), (100, 4, 8, 4), (1, 512, 21, 512), (6, 49, 32, 49), (6, 49, 49, 32),
)  # fmt: skip


def _products() -> Iterator[Case]:
    for m, k, n in _PRODUCTS:
        yield Case("matmul", f"{m}x{k}x{n}", "MatMul", ((m, k),), ((k, n),), flops=2 * m * k * n)
    for m, k, n in _PRODUCTS[::3]:
        yield Case(
            "gemm-transposed", f"{m}x{k}x{n}", "Gemm", ((m, k),), ((n, k), (n,)), {"transB": 1}, flops=2 * m * k * n
        )
    for b, m, k, n in _BATCHED:
        yield Case("matmul-batched", f"{b}x{m}x{k}x{n}", "MatMul", ((b, m, k), (b, k, n)), flops=2 * b * m * k * n)
    for m, k, n in ((8, 64, 64), (64, 64, 64), (40, 120, 80), (197, 64, 197)):
        yield Case(
            "gemm-activations", f"{m}x{k}x{n}t", "Gemm", ((m, k), (n, k)), (), {"transB": 1}, flops=2 * m * k * n
        )
        yield Case(
            "gemm-activations", f"t{m}x{k}x{n}", "Gemm", ((k, m), (k, n)), (), {"transA": 1}, flops=2 * m * k * n
        )


def _convolution(
    kind: str, data: _Shape, filters: int, window: _Shape, strides: int | _Shape = 1, pads: int | _Shape | None = None,
    groups: int = 1, dilation: int = 1,
) -> Case:  # fmt: skip
    """Build a convolution of `data` [channels, *plane], padded to keep its plane, unless told otherwise."""
    rank = len(window)
    steps = (strides,) * rank if isinstance(strides, int) else strides
    before = tuple(dilation * (size - 1) // 2 for size in window)
    around = before if pads is None else (pads,) * rank if isinstance(pads, int) else pads
    attributes = {
        "kernel_shape": window,
        "strides": steps,
        "pads": (*around, *around),
        "group": groups,
        "dilations": (dilation,) * rank,
    }
    plane = [
        (extent + 2 * pad - dilation * (size - 1) - 1) // step + 1
        for extent, pad, size, step in zip(data[1:], around, window, steps)
    ]
    weight = (filters, data[0] // groups, *window)
    name = f"{_times(data)} to {filters}, {_times(window)}, stride {_times(steps)}"
    name += f", {groups} groups" if groups not in (1, data[0]) else ""
    name += f", dilation {dilation}" if dilation > 1 else ""
    name += "" if pads is None else f", pad {_times(around)}"
    return Case(
        kind, name, "Conv", ((1, *data),), (weight, (filters,)), attributes, flops=2 * prod(plane) * prod(weight)
    )  # fmt: skip


def _convolutions() -> Iterator[Case]:
    planes = ((64, 56), (128, 28), (256, 14), (512, 7), (24, 40), (96, 10), (256, 4), (512, 2), (32, 3), (16, 80))
    for channels, side in planes:
        yield _convolution("conv3x3", (channels, side, side), channels, (3, 3))
    for channels, side in planes[:6]:
        yield _convolution("conv3x3", (channels, side, side), channels, (3, 3), 2)
    for channels, filters, side in (
        (64, 256, 56), (256, 64, 56), (16, 64, 40), (96, 24, 20), (24, 144, 56), (960, 160, 7), (320, 1280, 7), (512, 128, 28),
        (120, 480, 1), (256, 256, 2), (64, 18, 40), (8, 1, 80), (1024, 255, 13), (58, 58, 28),
    ):  # fmt: skip
        yield _convolution("conv1x1", (channels, side, side), filters, (1, 1))
    for data, filters, window, stride in (
        ((3, 224, 224), 64, 7, 2), ((3, 224, 224), 16, 3, 2), ((3, 320, 320), 8, 3, 2), ((1, 28, 28), 6, 5, 1), ((3, 32, 32), 32, 5, 1),
        ((3, 224, 224), 192, 16, 16), ((1, 96, 64), 32, 3, 1), ((3, 48, 192), 16, 3, 2), ((3, 227, 227), 96, 11, 4),
    ):  # fmt: skip
        yield _convolution("conv-first", data, filters, (window, window), stride, 0 if window == 16 else None)
    for data, filters, window in (
        ((64, 17, 17), 64, (1, 7)), ((64, 17, 17), 64, (7, 1)), ((96, 1, 40), 120, (1, 3)), ((1, 40, 76), 24, (3, 3)),
        ((64, 12, 80), 64, (3, 3)),
    ):  # fmt: skip
        yield _convolution("conv-odd", data, filters, window)
    for dilation in (2, 4, 8):
        yield _convolution("conv-dilated", (64, 28, 28), 64, (3, 3), dilation=dilation)


def _one_dimension() -> Iterator[Case]:
    for data, filters, taps, stride, pad, dilation in (
        ((1, 16000), 257, 512, 160, 256, 1), ((1, 16000), 514, 400, 160, 200, 1), ((1, 16000), 64, 80, 16, 0, 1),
        ((1, 1280), 322, 320, 160, 0, 1), ((1, 576), 258, 256, 64, 0, 1), ((1, 16000), 512, 10, 5, 0, 1), ((512, 800), 512, 3, 2, 0, 1),
        ((80, 100), 256, 3, 1, 1, 1), ((256, 100), 256, 3, 1, 1, 1), ((129, 4), 128, 3, 1, 1, 1), ((128, 4), 64, 3, 2, 1, 1),
        ((64, 128), 64, 7, 1, 3, 1), ((32, 1000), 32, 11, 1, 5, 1), ((64, 200), 64, 3, 1, 4, 4), ((40, 101), 64, 1, 1, 0, 1),
        ((512, 64), 256, 1, 1, 0, 1),
    ):  # fmt: skip
        yield _convolution("conv1d", data, filters, (taps,), stride, pad, dilation=dilation)
    for channels, length, taps in ((256, 100, 31), (64, 200, 9), (192, 400, 3)):
        yield _convolution("conv1d-depthwise", (channels, length), channels, (taps,), groups=channels)


def _three_dimensions() -> Iterator[Case]:
    for data, filters, window, stride in (
        ((3, 16, 112, 112), 16, (3, 7, 7), (1, 2, 2)), ((16, 8, 28, 28), 32, (3, 3, 3), 1), ((64, 4, 14, 14), 64, (3, 3, 3), 1),
        ((32, 8, 14, 14), 64, (1, 3, 3), 1), ((64, 8, 14, 14), 64, (3, 1, 1), 1), ((64, 4, 7, 7), 128, (1, 1, 1), 1),
        ((1, 32, 32, 32), 16, (3, 3, 3), 1), ((32, 8, 8, 8), 32, (2, 2, 2), 2),
    ):  # fmt: skip
        yield _convolution("conv3d", data, filters, window, stride, 0 if window == (2, 2, 2) else None)


def _depthwise() -> Iterator[Case]:
    for channels, side, window, stride in (
        (32, 112, 3, 1), (96, 112, 3, 2), (144, 56, 3, 1), (192, 28, 3, 2), (384, 14, 3, 1), (960, 7, 3, 1), (240, 14, 5, 1),
        (672, 14, 5, 2), (1152, 7, 5, 1), (64, 40, 7, 1), (768, 7, 7, 1), (256, 4, 3, 1), (512, 2, 3, 1), (32, 5, 5, 1),
    ):  # fmt: skip
        yield _convolution("depthwise", (channels, side, side), channels, (window, window), stride, groups=channels)
    yield _convolution("depthwise", (64, 24, 96), 64, (3, 3), (2, 1), groups=64)
    yield _convolution("depthwise", (96, 6, 80), 96, (5, 5), (1, 1), groups=96)


def _grouped() -> Iterator[Case]:
    for channels, side, filters, window, groups, stride in (
        (128, 56, 128, 3, 32, 1), (256, 28, 256, 3, 32, 1), (1024, 7, 1024, 3, 32, 1), (60, 28, 240, 1, 3, 1), (240, 28, 60, 1, 3, 1),
        (64, 28, 64, 3, 2, 1), (64, 28, 128, 3, 16, 2), (48, 14, 48, 5, 8, 1), (32, 28, 64, 3, 32, 1), (192, 13, 256, 3, 2, 1),
    ):  # fmt: skip
        yield _convolution("grouped", (channels, side, side), filters, (window, window), stride, groups=groups)


def _transposed() -> Iterator[Case]:
    for channels, plane, filters, window, stride, pad, groups, *dilation in (
        (256, (14, 14), 128, 2, 2, 0, 1), (64, (28, 28), 32, 2, 2, 0, 1), (24, (80, 80), 24, 2, 2, 0, 1), (24, (80, 80), 1, 2, 2, 0, 1),
        (64, (16, 16), 32, 4, 2, 1, 1), (128, (8, 8), 64, 4, 2, 1, 1), (32, (28, 28), 16, 3, 2, 1, 1), (100, (1, 1), 256, 4, 1, 0, 1),
        (64, (28, 28), 64, 3, 1, 1, 1), (21, (20, 20), 21, 4, 2, 1, 21), (64, (50,), 32, 4, 2, 1, 1), (256, (40,), 128, 16, 8, 4, 1),
        (257, (101,), 1, 512, 160, 0, 1), (32, (16, 16), 32, 3, 3, 1, 1, 2), (32, (16, 16), 32, 3, 2, 1, 1, 2), (32, (16, 16), 32, 3, 1, 4, 1, 4),
        (32, (100,), 32, 3, 2, 1, 1, 2),
    ):  # fmt: skip
        rank, (apart,) = len(plane), dilation or (1,)
        attributes = {
            "kernel_shape": (window,) * rank,
            "strides": (stride,) * rank,
            "pads": (pad,) * 2 * rank,
            "group": groups,
            "dilations": (apart,) * rank,
        }
        weight = (channels, filters // groups, *(window,) * rank)
        yield Case(
            "transposed", f"{channels}x{_times(plane)} to {filters}, {window}, stride {stride}, pad {pad}{f', dilation {apart}' if apart > 1 else ''}", "ConvTranspose",
            ((1, channels, *plane),), (weight, (filters,)), attributes, flops=2 * prod(plane) * prod(weight),
        )  # fmt: skip


def _poolings() -> Iterator[Case]:
    for channels, side, window, stride in (
        (64, 112, 3, 2),
        (64, 56, 2, 2),
        (32, 24, 3, 2),
        (128, 7, 2, 2),
        (256, 13, 5, 1),
        (512, 4, 2, 2),
    ):
        around = {"kernel_shape": (window, window), "strides": (stride, stride), "pads": ((window - 1) // 2,) * 4}
        for op in ("MaxPool", "AveragePool"):
            yield Case(
                "pooling",
                f"{op} {channels}x{side}, {window}, stride {stride}",
                op,
                ((1, channels, side, side),),
                (),
                around,
            )
    for channels, side in ((1280, 7), (512, 14), (96, 80), (960, 5)):
        yield Case("pooling", f"GlobalAveragePool {channels}x{side}", "GlobalAveragePool", ((1, channels, side, side),))
    yield Case("pooling", "GlobalMaxPool 512x14", "GlobalMaxPool", ((1, 512, 14, 14),))


def _normalisations() -> Iterator[Case]:
    for shape in ((1, 197, 192), (40, 120), (128, 312), (1, 768), (64, 1000), (1, 49, 7)):
        yield Case(
            "normalisation",
            f"LayerNormalization {_times(shape)}",
            "LayerNormalization",
            (shape,),
            (shape[-1:],) * 2,
            {"axis": -1},
        )
    for shape in ((1, 32, 80, 80), (1, 64, 28, 28), (1, 128, 7, 7), (1, 64, 200)):
        yield Case(
            "normalisation",
            f"InstanceNormalization {_times(shape)}",
            "InstanceNormalization",
            (shape,),
            (shape[1:2],) * 2,
        )
    for shape in ((1, 64, 56, 56), (1, 128, 7, 7), (40, 120)):
        yield Case(
            "normalisation", f"BatchNormalization {_times(shape)}", "BatchNormalization", (shape,), (shape[1:2],) * 4
        )
    for shape, axis in (
        ((1, 1000), 1),
        ((8, 40, 40), 2),
        ((3, 197, 197), 2),
        ((40, 6625), 1),
        ((1, 21, 64, 64), 1),
        ((1, 2, 12800), 1),
        ((12, 12, 12), 2),
    ):
        yield Case("softmax", f"Softmax {_times(shape)}, axis {axis}", "Softmax", (shape,), (), {"axis": axis})
    yield Case("softmax", "LogSoftmax 50x1000, axis 1", "LogSoftmax", ((50, 1000),), (), {"axis": 1})
    for shape in ((1, 64, 56, 56), (1, 96, 13, 13)):
        yield Case("normalisation", f"LRN {_times(shape)}", "LRN", (shape,), (), {"size": 5})


def _reductions() -> Iterator[Case]:
    for op in ("ReduceMean", "ReduceMax", "ReduceL2"):
        for shape, axes in (
            ((1, 64, 56, 56), (2, 3)),
            ((1, 197, 192), (2,)),
            ((1, 197, 192), (1,)),
            ((64, 7, 100), (0,)),
            ((1, 512, 7, 7), (1,)),
        ):
            yield Case(
                "reduction",
                f"{op} {_times(shape)}, axes {_times(axes)}",
                op,
                (shape,),
                (),
                {"axes": axes, "keepdims": 1},
            )
    yield Case("reduction", "ReduceSum 128x1000, axis 1", "ReduceSum", ((128, 1000),), (), {}, ((1,),))
    yield Case("reduction", "ArgMax 40x6625, axis 1", "ArgMax", ((40, 6625),), (), {"axis": 1})
    yield Case("reduction", "ArgMax 1x21x64x64, axis 1", "ArgMax", ((1, 21, 64, 64),), (), {"axis": 1})
    yield Case("reduction", "CumSum 64x200, axis 1", "CumSum", ((64, 200),), (), {}, ((1,),))


def _moves() -> Iterator[Case]:
    for shape, order in (
        ((1, 64, 56, 56), (0, 2, 3, 1)),
        ((1, 197, 3, 64), (0, 2, 1, 3)),
        ((1, 3, 197, 64), (0, 1, 3, 2)),
        ((512, 512), (1, 0)),
        ((1, 8, 40, 15), (0, 2, 1, 3)),
    ):
        yield Case("transpose", f"{_times(shape)} by {_times(order)}", "Transpose", (shape,), (), {"perm": order})
    ids = tuple((7 * n) % 100 for n in range(64))
    for shape, axis in (((100, 312), 0), ((64, 128, 4), 1), ((32, 128), 1)):
        yield Case("gather", f"{_times(shape)}, axis {axis}", "Gather", (shape,), (), {"axis": axis}, (ids,))
    scales = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for shape in ((1, 64, 28, 28), (1, 24, 80, 80)):
        upper = (*shape[:2], *(2 * extent for extent in shape[2:]))
        yield Case("resize", f"nearest {_times(shape)}", "Resize", (shape,), ((0,), (0,)), scales, (upper,))
        linear = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        yield Case("resize", f"linear {_times(shape)}", "Resize", (shape,), ((0,), (0,)), linear, (upper,))
    for op in ("Relu", "Sigmoid", "Tanh", "Erf", "HardSwish", "Exp", "Sqrt"):
        yield Case("element-wise", f"{op} 1x64x56x56", op, ((1, 64, 56, 56),))
    for shapes in (((1, 64, 56, 56), (1, 64, 56, 56)), ((1, 64, 56, 56), (1, 64, 1, 1)), ((197, 192), (192,))):
        yield Case("element-wise", f"Add {_times(shapes[0])} + {_times(shapes[1])}", "Add", shapes)
    yield Case("concat", "1x64x28x28 + 1x32x28x28", "Concat", ((1, 64, 28, 28), (1, 32, 28, 28)), (), {"axis": 1})
    yield Case("concat", "40x64 + 40x64, axis 1", "Concat", ((40, 64), (40, 64)), (), {"axis": 1})
