"""Read the values of tensors: arrays without a copy, and digests, computed once for each tensor."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
import tvm


def array_of(tensor: tvm.runtime.Tensor) -> np.ndarray:
    """Return the values of a tensor, not to be written to: its own memory, but for dtypes that DLPack lacks."""
    try:
        return np.from_dlpack(tensor)
    except (TypeError, RuntimeError, ValueError, BufferError, AttributeError):
        return tensor.numpy()


@lru_cache(1 << 10)
def tensor_digest(tensor: tvm.runtime.Tensor) -> str:
    """Return the sha256 of a tensor's bytes: the graphs of a search hold the same tensors many times."""
    return array_digest(array_of(tensor))


def array_digest(array: np.ndarray) -> str:
    """Return the sha256 of an array's bytes, in the order of its axes."""
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8)).hexdigest()
