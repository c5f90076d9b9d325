"""Define convolutions by numpy, for the interpreter: any layout by moving axes, transposed ones by adding taps."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray


def in_any_layout(convolve: Callable[..., Array], kernel: str) -> Callable[..., Array]:
    """Return the convolution for all layouts, given that for NC… data and weights whose layout starts with `kernel`."""

    def moved(attrs: Any, x: Array, weight: Array) -> Array:
        spatial = "".join(letter for letter in attrs.data_layout if letter not in "NC")
        axes = [str(attrs.data_layout).index(letter) for letter in "NC" + spatial]
        result = convolve(
            attrs,
            x.transpose(axes),
            weight.transpose([str(attrs.kernel_layout).index(each) for each in kernel + spatial]),
        )
        return result.transpose(np.argsort(axes))

    return moved


def convolve_transposed(attrs: Any, x: Array, weight: Array) -> Array:
    """Add every element times every tap where it belongs, then crop the padding."""
    count, groups = x.ndim - 2, int(attrs.groups)
    strides, dilation, extra = (
        [int(each) for each in given] for given in (attrs.strides, attrs.dilation, attrs.output_padding)
    )
    padding = [int(each) for each in attrs.padding]
    sizes, taps = x.shape[2:], weight.shape[2:]
    whole = [(n - 1) * s + (k - 1) * d + 1 + e for n, s, k, d, e in zip(sizes, strides, taps, dilation, extra)]
    results = []
    for part, own in zip(np.split(x, groups, 1), np.split(weight, groups, 0)):
        result = np.zeros((len(x), own.shape[1], *whole), x.dtype)
        for tap in itertools.product(*map(range, taps)):
            at = [slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in zip(tap, dilation, sizes, strides)]
            result[(..., *at)] += np.einsum("ni...,io->no...", part, own[(..., *tap)])
        results.append(result)
    crop = [slice(before, size - after) for before, after, size in zip(padding[:count], padding[count:], whole)]
    return np.concatenate(results, 1)[(..., *crop)]
