"""Name kernels in short for tables and pictures: `k07 conv2d+relu`."""

from __future__ import annotations

import re

#: names of operators with an underscore inside
_OPERATORS = frozenset({
    "adaptive_avg_pool2d", "adaptive_max_pool2d", "avg_pool1d", "avg_pool2d", "batch_norm", "broadcast_to",
    "conv1d_transpose", "conv2d_transpose", "cumulative_sum", "expand_dims", "floor_mod", "floor_divide",
    "gather_elements", "gather_nd", "greater_equal", "group_norm", "instance_norm", "layer_norm", "layout_transform",
    "leaky_relu", "less_equal", "log_softmax", "logical_and", "logical_not", "logical_or", "max_pool1d", "max_pool2d",
    "not_equal", "one_hot", "reverse_sequence", "rms_norm", "scatter_elements", "scatter_nd", "strided_slice",
})  # fmt: skip
_LONGEST = max(each.count("_") for each in _OPERATORS) + 1
#: of kernels made for other places of their operands, and of kernels whose name another one had
_SUFFIX = re.compile(r"(_in_place(_\d+)+)?_*$")
#: prefix of the names of regions; see memory/streaming/region.py
REGION = "streamed_"
#: operators shown; of more only the first and the last
PARTS = 3


def kernel_label(step: int, kernel: str) -> str:
    """Name a kernel call in a few characters: its step, its operators without TVM's numbers, and if it is a region."""
    return f"{kernel_number(step)} {_operators(kernel)}"


def kernel_number(step: int) -> str:
    """Number a kernel call by its step: `k07`."""
    return f"k{step:02d}"


def is_region(kernel: str) -> bool:
    """Return whether a kernel is several steps run as one."""
    return kernel.startswith(REGION)


def _operators(kernel: str) -> str:
    bare = kernel
    while is_region(bare):
        bare = bare.removeprefix(REGION)
    words = _SUFFIX.sub("", bare.removeprefix("fused_")).split("_")
    found: list[str] = []
    while words:
        taken = next((n for n in range(_LONGEST, 1, -1) if _joined(words[:n]) in _OPERATORS), 1)
        found.append(_joined(words[:taken]))
        del words[:taken]
    parts = [each for each in found if each not in ("", "tir")] or [kernel]
    if len(parts) > PARTS:
        parts = [parts[0], "…", parts[-1]]
    return "+".join(parts) + (" region" if is_region(kernel) else "")


def _joined(words: list[str]) -> str:
    """Join words to an operator's name, without the number that tells kernels apart: `conv2d12` is `conv2d`."""
    name = "_".join(words)
    return name.rstrip("0123456789") or name
