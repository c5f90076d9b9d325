"""Tune the memory of a program's own process: Python's garbage collector and the C library's heap."""

from __future__ import annotations

import ctypes
import gc

#: new objects before the youngest generation is collected, and collections of one generation before the next
_OBJECTS, _COLLECTIONS = 50_000, 20
#: glibc's parameter, and the bytes of a block from which on it is mapped by itself
_M_MMAP_THRESHOLD, _LARGE = -3, 1 << 20


def tune_memory() -> None:
    """Collect garbage rarely, and give back large blocks once they are freed; call it from a program's start.

    Compilers make many objects and few cycles: with the usual thresholds, collections take 4 % of a search, most of them over
    TVM's own Python objects. glibc maps larger and larger blocks from its heap, which keeps them: a session of ONNX Runtime
    with weights in blocks of 4 MiB took twice as much. Forks inherit both.
    """
    gc.set_threshold(_OBJECTS, _COLLECTIONS, _COLLECTIONS)
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
