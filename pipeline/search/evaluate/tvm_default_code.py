"""Code size of `tvm-default`: its kernels as TVM schedules them, compiled by LLVM for the target.

A process of its own compiles them: a crash of LLVM ends only that process, and a compilation goes on beside it.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from tvm.ir import IRModule
from tvm.tirx import PrimFunc

from ...codegen.elf import read_object
from ...codegen.objects import build_module
from ...passes.sequence.failures import failure_of
from ...support.result_store import shared_store
from ...support.temporary_folder import scratch_folder
from ...targets import Target
from ...tir.structural_key import structural_key
from .tvm_default import lowered_default

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

#: seconds after which the code counts as unknown
MOST_SECONDS = 600.0
#: name of TVM's own pipeline from kernels to LLVM
_PIPELINE = "default"


def default_code(module: IRModule, target: Target, inputs: Sequence[str], outputs: Sequence[str]) -> int:
    """Return the bytes of text and read-only data of the kernels of `tvm-default`, from the store if they are known.

    Excludes its weights, and the runtime that calls the kernels. Raises TVM's error if a kernel cannot be built.
    """
    kernels = lowered_default(module, inputs, outputs).kernels
    if not kernels:
        return 0
    asked = repr(([(name, structural_key(kernels[name])) for name in sorted(kernels)], sorted(target.tvm_config().items())))
    key = hashlib.sha256(asked.encode()).hexdigest()[:32]
    return shared_store().get_or_make(f"default code {key}", lambda: _built_bytes(kernels, target))


def _built_bytes(kernels: Mapping[str, PrimFunc], target: Target) -> int:
    with scratch_folder() as folder:
        path = folder / "kernels.o"
        build_module(kernels, target.tvm_config(), _PIPELINE).write_to_file(str(path), "o")
        return read_object(path.read_bytes()).read_only_bytes()


@contextmanager
def default_code_aside(
    module: IRModule,
    target: Target,
    inputs: Sequence[str],
    outputs: Sequence[str],
    seconds: float = MOST_SECONDS,
) -> Iterator[Callable[[], int | None]]:
    """Start `default_code` in a forked process; the function yielded waits for its bytes.

    It returns None, for unknown, if the process fails, dies, or takes longer than `seconds`. The process ends with the
    context.
    """
    try:  # before the fork: the search asks for the memory of the same kernels
        lowered_default(module, inputs, outputs)
    except Exception as error:  # the process will fail too, for an unknown size
        if failure_of(error) is None:
            raise
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, module, target, inputs, outputs), daemon=True)
    found: list[int | None] = []

    def wait() -> int | None:
        if not found:
            found.append(_received(ours, process, seconds))
        return found[0]

    # an interrupt between the fork and the child's own handler would unwind the parent's stack in the child
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    theirs.close()
    try:
        yield wait
    finally:
        process.kill()
        process.join()
        ours.close()


def _received(connection: Connection, process: BaseProcess, seconds: float) -> int | None:
    if not connection.poll(seconds):
        return None
    try:
        return connection.recv()
    except EOFError:
        return None


def _child(connection: Connection, module: IRModule, target: Target, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Compute the code size in a child: silent, and deaf to Ctrl-C, which the parent handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):
        os.dup2(nowhere, standard)
    connection.send(default_code(module, target, inputs, outputs))
