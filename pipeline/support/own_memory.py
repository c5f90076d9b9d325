"""Tune the memory of a program's own process: Python's garbage collector and the C library's heap."""

from __future__ import annotations

import ctypes
import gc

#: new objects before the youngest generation is collected, and collections of one generation before the next
_OBJECTS, _COLLECTIONS = 50_000, 20
#: glibc's parameter, and the bytes of a block from which on it is mapped by itself
_M_MMAP_THRESHOLD, _LARGE = -3, 1 << 20
#: bytes of a model from which on blocks that are freed are given back
_MUCH = 64 << 20


def collect_rarely() -> None:
    """Collect garbage rarely; call it from a program's start.

    Compilers make many objects and few cycles: with the usual thresholds, collections take 4 % of a search, most of them over
    TVM's own Python objects. Forks inherit it.
    """
    gc.set_threshold(_OBJECTS, _COLLECTIONS, _COLLECTIONS)


def give_back_blocks(nbytes: int) -> None:
    """Give back large blocks once they are freed, from now on, if a model of `nbytes` is read.

    glibc maps larger and larger blocks from its heap, which keeps them: a session of ONNX Runtime with weights in blocks of 4 MiB
    took twice as much. Pages that are given back are cleared anew, which doubles the system's time of a small model. Forks inherit it.
    """
    if nbytes >= _MUCH and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
