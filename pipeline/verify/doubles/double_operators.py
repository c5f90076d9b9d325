"""Vectorise windowed operators in numpy, for ONNX's reference evaluator.

Its own pooling and transposed convolution are loops in Python. Here a convolution is a matrix product for some lines of
its windows, copied into columns; each position of a transposed one is a product, of a pooling a maximum, over a strided
view of the whole input. Convolution: ONNX operators Conv-11 and ConvTranspose-11;
pooling: MaxPool-12 and AveragePool-19.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx.reference.op_run import OpRun

#: elements of windows copied at once, which a cache holds, for at least so many pixels
_COPIED, _PIXELS = 1 << 18, 256


@dataclass(frozen=True)
class PaddedWindows:
    """Sliding windows over spatial axes, by axis; `begin` and `end` are the padding before and after."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]
    out: tuple[int, ...]

    @classmethod
    def of(
        cls,
        extents: tuple[int, ...],
        kernel: tuple[int, ...],
        strides: tuple[int, ...] | None,
        dilations: tuple[int, ...] | None,
        pads: tuple[int, ...] | None,
        auto_pad: str | None,
        ceil_mode: int = 0,
    ) -> PaddedWindows:
        """Derive the windows from an operator's attributes and the spatial extents of its input."""
        rank = len(extents)
        strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
        spans = [(size - 1) * step + 1 for size, step in zip(kernel, dilations)]
        before, after = (pads[:rank], pads[rank:]) if pads else ((0,) * rank, (0,) * rank)
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            out = [-(-extent // stride) for extent, stride in zip(extents, strides)]
            total = [max(0, (n - 1) * s + span - e) for n, s, span, e in zip(out, strides, spans, extents)]
            half = [each // 2 if auto_pad == "SAME_UPPER" else each - each // 2 for each in total]
            before, after = tuple(half), tuple(each - part for each, part in zip(total, half))
        else:
            if auto_pad == "VALID":
                before = after = (0,) * rank
            out = []
            for e, b, a, span, s in zip(extents, before, after, spans, strides):
                steps = (e + b + a - span) / s
                count = (math.ceil(steps) if ceil_mode else math.floor(steps)) + 1
                # drop a window that would begin in the padding after the input
                out.append(count - 1 if ceil_mode and (count - 1) * s >= e + b else count)
        return cls(tuple(kernel), tuple(strides), tuple(dilations), tuple(before), tuple(after), tuple(out))

    def padded(self, x: np.ndarray, value: float) -> np.ndarray:
        """Pad `x` with `value`, as far as the last window reaches."""
        sides = [(0, 0), (0, 0)]
        for axis, extent in enumerate(x.shape[2:]):
            reach = (self.out[axis] - 1) * self.strides[axis] + (self.kernel[axis] - 1) * self.dilations[axis] + 1
            sides.append((self.begin[axis], max(self.end[axis], reach - extent - self.begin[axis])))
        return np.pad(x, sides, constant_values=value)

    def positions(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yield each kernel position with its slices of a padded input, one element per window."""
        for position in itertools.product(*map(range, self.kernel)):
            starts = [at * step for at, step in zip(position, self.dilations)]
            yield (
                position,
                tuple(
                    slice(start, start + (n - 1) * stride + 1, stride)
                    for start, n, stride in zip(starts, self.out, self.strides)
                ),
            )


class OnnxOperator(OpRun):
    """Operator of ONNX's own domain."""

    op_domain = ""


class Conv(OnnxOperator):
    def _run(self, X, W, B=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):
        windows = PaddedWindows.of(X.shape[2:], W.shape[2:], strides, dilations, pads, auto_pad)
        group, padded, taps = group or 1, windows.padded(X, 0), list(windows.positions())
        batch, channels, inner, line = X.shape[0], W.shape[0] // group, W.shape[1], math.prod(windows.out[1:])
        weights = np.stack([W[(..., *position)] for position, _ in taps], axis=1).reshape(group, channels, -1)
        source = padded.reshape(batch, group, inner, *padded.shape[2:])
        total = np.empty((batch, group, channels, windows.out[0] * line), np.result_type(X, W))
        rows = max(1, _COPIED // max(1, weights.shape[2] * group * line), -(-_PIXELS // max(1, line)))
        for first in range(0, windows.out[0], rows):
            count = min(rows, windows.out[0] - first)
            seen = np.empty((batch, group, len(taps), inner, count, *windows.out[1:]), X.dtype)
            for number, (_, (outer, *others)) in enumerate(taps):
                start = outer.start + first * outer.step
                lines = slice(start, start + (count - 1) * outer.step + 1, outer.step)
                seen[:, :, number] = source[(..., lines, *others)]
            part = total[..., first * line : (first + count) * line]
            np.matmul(weights, seen.reshape(batch, group, weights.shape[2], -1), out=part)
        result = total.reshape(batch, -1, *windows.out)
        if B is not None:
            result += B.reshape(-1, *(1,) * len(windows.out))
        return (result,)


class ConvTranspose(OnnxOperator):
    def _run(
        self, X, W, B=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, output_padding=None,
        output_shape=None, pads=None, strides=None,
    ):  # fmt: skip
        rank, group = X.ndim - 2, group or 1
        strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
        extra = output_padding or (0,) * rank
        full = [(e - 1) * s + (k - 1) * d + 1 for e, s, k, d in zip(X.shape[2:], strides, W.shape[2:], dilations)]
        before, out = _cropping(X.shape[2:], full, strides, extra, output_shape, pads, auto_pad)
        batch, channels = X.shape[0], W.shape[1]
        room = [max(f, b + o) for f, b, o in zip(full, before, out)]
        total = np.zeros((batch, group * channels, *room), X.dtype)
        source = X.reshape(batch, group, X.shape[1] // group, -1)
        windows = PaddedWindows(W.shape[2:], tuple(strides), tuple(dilations), (0,) * rank, (0,) * rank, X.shape[2:])
        for position, slices in windows.positions():
            weights = W[(..., *position)].reshape(group, -1, channels).swapaxes(1, 2)
            total[(..., *slices)] += (weights @ source).reshape(batch, group * channels, *X.shape[2:])
        result = total[(..., *(slice(b, b + o) for b, o in zip(before, out)))]
        return (result if B is None else result + B.reshape(-1, *(1,) * rank),)


def _cropping(extents, full, strides, extra, output_shape, pads, auto_pad) -> tuple[list[int], list[int]]:
    """Return, per spatial axis, the elements cropped before the result, and its extent."""
    rank = len(full)
    if output_shape or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = list(output_shape or [e * s for e, s in zip(extents, strides)])[-rank:]
        total = [max(0, f + x - o) for f, x, o in zip(full, extra, wanted)]
        return [each // 2 if auto_pad == "SAME_UPPER" else each - each // 2 for each in total], wanted
    before, after = (pads[:rank], pads[rank:]) if pads else ((0,) * rank, (0,) * rank)
    return list(before), [f + x - b - a for f, x, b, a in zip(full, extra, before, after)]


class MaxPool(OnnxOperator):
    def _run(
        self, X, auto_pad=None, ceil_mode=None, dilations=None, kernel_shape=None, pads=None, storage_order=None,
        strides=None,
    ):  # fmt: skip
        if len([name for name in self.onnx_node.output if name]) > 1:
            raise NotImplementedError("the indices of MaxPool")
        windows = PaddedWindows.of(X.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode or 0)
        padded = windows.padded(X, -np.inf if X.dtype.kind == "f" else np.iinfo(X.dtype).min)
        found = None
        for _, slices in windows.positions():
            seen = padded[(..., *slices)]
            found = seen if found is None else np.maximum(found, seen)
        return (found,)


class AveragePool(OnnxOperator):
    def _run(
        self, X, auto_pad=None, ceil_mode=None, count_include_pad=None, dilations=None, kernel_shape=None, pads=None,
        strides=None,
    ):  # fmt: skip
        windows = PaddedWindows.of(X.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode or 0)
        ones = np.ones((1, 1, *X.shape[2:]), X.dtype)
        if count_include_pad:
            sides = zip(windows.begin, windows.end)
            ones = np.pad(ones, [(0, 0), (0, 0), *sides], constant_values=1)
            inner = PaddedWindows(
                windows.kernel, windows.strides, windows.dilations, *((0,) * len(windows.out),) * 2, windows.out
            )
        else:
            inner = windows
        return (_sums(windows, X) / _sums(inner, ones),)


def _sums(windows: PaddedWindows, x: np.ndarray) -> np.ndarray:
    padded = windows.padded(x, 0)
    return sum(padded[(..., *slices)] for _, slices in windows.positions())


class BatchNormalization(OnnxOperator):
    """Batch normalisation for inference.

    Before opset 14, ONNX's evaluator treats a node with a momentum as training.
    """

    def _run(
        self, x, scale, bias, mean, var, epsilon=None, is_test=None, momentum=None, spatial=None, training_mode=None
    ):
        if training_mode:
            raise NotImplementedError("training_mode of BatchNormalization")
        per_channel = (-1, *(1,) * (x.ndim - 2))
        factor = scale / np.sqrt(var + (1e-5 if epsilon is None else epsilon))
        return ((x - mean.reshape(per_channel)) * factor.reshape(per_channel) + bias.reshape(per_channel),)


class LRN(OnnxOperator):
    """Responses divided by their neighbours among the channels; ONNX's evaluator computes as many channels as there are images."""

    def _run(self, x, alpha=None, beta=None, bias=None, size=None):
        before, channels = (size - 1) // 2, x.shape[1]
        squares = np.pad(x * x, [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
        total = sum(squares[:, first : first + channels] for first in range(size))
        return ((x / (bias + alpha / size * total) ** beta).astype(x.dtype),)


class Relu(OnnxOperator):
    """Rectified values; ONNX's evaluator copies them once more."""

    def _run(self, x):
        return (np.maximum(x, np.zeros((), x.dtype)),)


class GatherElements(OnnxOperator):
    """Elements at indices along an axis; ONNX's evaluator takes no negative axis."""

    def _run(self, data, indices, axis=None):
        axis = (axis or 0) % data.ndim
        within = tuple(slice(None) if each == axis else slice(extent) for each, extent in enumerate(indices.shape))
        wrapped = np.where(indices < 0, indices + data.shape[axis], indices)
        return (np.take_along_axis(data[within], wrapped, axis),)


class Scan(OnnxOperator):
    """Scan-11 of a canonical model: along leading axes, in both directions, with a closed body."""

    def _run(
        self, *values, body=None, num_scan_inputs=1, scan_input_directions=None, scan_output_directions=None, **_unused
    ):
        states = list(values[:-num_scan_inputs])
        sequences = [_turn(each, place, scan_input_directions) for place, each in enumerate(values[-num_scan_inputs:])]
        rows = []
        for slices in zip(*sequences):
            made = self.body.run(None, dict(zip(self.body.input_names, (*states, *slices))))
            states, row = made[: len(states)], made[len(states) :]
            rows.append(row)
        results = [_turn(np.stack(each), place, scan_output_directions) for place, each in enumerate(zip(*rows))]
        return (*states, *results)


def _turn(sequence: np.ndarray, place: int, directions: list[int] | None) -> np.ndarray:
    return sequence[::-1] if directions and directions[place] else sequence


#: replacements for the evaluator's own operators
OPERATORS = (Conv, ConvTranspose, MaxPool, AveragePool, BatchNormalization, LRN, Relu, GatherElements, Scan)
