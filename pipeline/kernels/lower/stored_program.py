"""Keep lowered programs in a store: searches for other targets make no modules again.

    "program 1f3a…" : ["eJy…", ["3c07…", "9d52…"]]        the program, and the keys of its kernels by name
    "kernel 3c07…"  : "eJx…"                              a kernel as TVM made it

Values of weights are not kept: whoever asks for them lowers the module.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from functools import cached_property

from tvm.tirx import PrimFunc
from tvm_ffi.serialization import from_json_graph_str, to_json_graph_str

from ...program.serial import program_from_json, program_to_json
from ...support.result_store import ResultStore
from ...targets import Machine
from ...tir.structural_key import structural_key
from ..weights.deferred_weights import DeferredWeights
from .lower import Lowered


class StoredPrograms:
    """Read lowered programs from a store, or make and keep them. Equal kernels read from it are one object."""

    def __init__(self, store: ResultStore, machine: Machine):
        self._store, self._machine = store, machine
        self._kernels: dict[str, PrimFunc] = {}

    def get_or_make(self, key: str, make: Callable[[], Lowered]) -> Lowered:
        """Return the unscheduled program of a key; one that was read equals that of `make` but for names."""
        if not self._store.on_disk:
            return make()
        once = _Once(make)
        text, keys = self._store.get_or_make(f"program {key}", lambda: self._write(once.made))
        if once.is_made:
            return once.made
        kernels = {name: self._kernel(kernel, once) for name, kernel in keys.items()}
        if once.is_made:
            return once.made  # a line of the store was lost
        program = program_from_json(json.loads(_unpack(text)))
        weights = DeferredWeights(lambda: once.made.weights, len(program.weights))
        return Lowered(program, kernels, weights, machine=self._machine)

    def _write(self, lowered: Lowered) -> list:
        keys = {name: structural_key(kernel) for name, kernel in lowered.kernels.items()}
        for name, key in keys.items():
            if key not in self._kernels:
                self._kernels[key] = lowered.kernels[name]
                self._text(key, self._kernels.__getitem__)
        return [_pack(json.dumps(program_to_json(lowered.program))), keys]

    def _kernel(self, key: str, once: _Once) -> PrimFunc:
        if key not in self._kernels:
            found = from_json_graph_str(_unpack(self._text(key, once.kernel)))
            self._kernels[key] = found if structural_key(found) == key else once.kernel(key)
        return self._kernels[key]

    def _text(self, key: str, kernel: Callable[[str], PrimFunc]) -> str:
        return self._store.get_or_make(f"kernel {key}", lambda: _pack(to_json_graph_str(kernel(key))))


class _Once:
    """Make a lowered program when it is first asked for."""

    def __init__(self, make: Callable[[], Lowered]):
        self._make = make

    @cached_property
    def made(self) -> Lowered:
        return self._make()

    @property
    def is_made(self) -> bool:
        return "made" in vars(self)

    def kernel(self, key: str) -> PrimFunc:
        """Return the kernel of a structural key."""
        return next(kernel for kernel in self.made.kernels.values() if structural_key(kernel) == key)


def _pack(text: str) -> str:
    # base85 is 7 % shorter, and takes Python 70 times as long to read
    return base64.b64encode(zlib.compress(text.encode(), 1)).decode()


def _unpack(text: str) -> str:
    return zlib.decompress(base64.b64decode(text)).decode()
